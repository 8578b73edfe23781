package log

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"moontide/trace/jsonscan"
)

// Layout is how a log writes an entry.
type Layout uint8

const (
	unknown    Layout = iota
	row               // a request and its response
	Batch             // a request of a batch, or the response to one
	span              // of OpenTelemetry
	spanRecord        // an OpenTelemetry log record with messages of a span
	envelope          // an object of OTLP that contains others
)

// Entry is a request and what a log has about its response. Its slices refer to the log.
type Entry struct {
	ID string // of the request in the log
	// Joins names the key that joins the entry with parts elsewhere in the log: the
	// response to a batch request, or the log records of a span. "" for none.
	Joins string
	Part  bool // it is such a part

	// Body has the members of the request, as its API has them; Prompt says whether they
	// include the prompt.
	Body   map[string][]byte
	Prompt Prompt
	API    string // by which the prompt is read; "" if unknown
	// Endpoint is the API of the request, if the log keeps its body.
	Endpoint string
	Fields   map[string][]byte
	// Session is the name of the conversation, if the layout has a place for it.
	Session string

	Begin, First, End time.Time // zero if unknown; First is the first token
	// BeginCreated says that Begin is the time of the response, in whole seconds.
	BeginCreated bool
	Usage
	// Response has the texts of the response, if there is no usage.
	Response string
	// Outcome is OK or the class of the failure, as in package replay.
	Outcome string
	Status  int
	// CacheHit says that the gateway answered without the server.
	CacheHit bool
}

// Prompt says whether the log has the prompt of a request.
type Prompt uint8

const (
	NoPrompt Prompt = iota
	HasPrompt
	Redacted   // replaced by the gateway
	Cut        // shortened by the gateway
	Unreadable // several prompts, or one that a tokenizer refuses; set by readers
)

// NoRequest is an error that is no fault of a log: a part of it is left out. It says what such
// parts are.
type NoRequest string

func (parts NoRequest) Error() string { return string(parts) + " left out" }

const (
	otherCall NoRequest = "calls that generate no text, such as embeddings,"
	otherSpan NoRequest = "spans and observations that are no requests"
	noMessage NoRequest = "log records without messages"
)

// containers are the members of an object that are arrays of entries, or of objects with
// such members.
var containers = map[string]Layout{
	"resourceSpans": envelope, "resource_spans": envelope, "batches": envelope,
	"scopeSpans": envelope, "scope_spans": envelope, "instrumentationLibrarySpans": envelope,
	"resourceLogs": envelope, "resource_logs": envelope, "scopeLogs": envelope, "scope_logs": envelope,
	"spans": span, "logRecords": spanRecord, "log_records": spanRecord,
	"data": unknown, // a page of an API
}

// layoutOf returns the layout of an entry with these members.
func layoutOf[V any](m map[string]V) Layout {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { _, ok := m[key]; return ok })
	}
	switch {
	case has("custom_id"):
		return Batch
	case has("trace_id") && has("span_id") && has("body") && has("attributes"): // as console exporters print it
		return spanRecord
	case has("traceId", "trace_id", "context") && has("spanId", "span_id", "context") && has("attributes"):
		return span
	case has("standard_logging_object"), has("call_type") && has("startTime", "start_time"),
		has("request") && has("response"), has("request_body") && has("response_body"):
		return row
	}
	return unknown
}

// IsLog reports whether an object with these keys is an entry of a request log, or
// contains some.
func IsLog(keys map[string]bool) bool {
	for key := range keys {
		if containers[key] == envelope {
			return true
		}
	}
	return layoutOf(keys) != unknown
}

// Split calls visit for each entry of an object: the object itself, or those that it
// contains, with their offset. The object must be valid JSON.
func Split(object []byte, visit func(layout Layout, at int, raw []byte) error) error {
	m, err := membersOf(object)
	if err != nil {
		return err
	}
	if layout := layoutOf(m); layout != unknown {
		return visit(layout, 0, object)
	}
	found := false
	var split func(object []byte, base int) error
	split = func(object []byte, base int) error {
		return jsonscan.Members(object, func(key []byte, at int, raw []byte) error {
			layout, known := containers[string(key)]
			if !known || string(raw) == "null" {
				return nil
			}
			if found = true; raw[0] != '[' {
				return fmt.Errorf("%s is not an array", key)
			}
			return jsonscan.Elements(raw, func(in int, element []byte) error {
				switch {
				case layout == unknown:
					m, _ := membersOf(element)
					return visit(layoutOf(m), base+at+in, element)
				case layout != envelope:
					return visit(layout, base+at+in, element)
				case element[0] != '{':
					return fmt.Errorf("an element of %s is not an object", key)
				}
				return split(element, base+at+in)
			})
		})
	}
	if err := split(object, 0); err != nil || found {
		return err
	}
	return errors.New("not an entry of a known request log: it has the keys of none")
}

// Parse parses an entry, which must be valid JSON, with its parts in their order. Its error is
// a NoRequest, or says what is wrong.
func Parse(layout Layout, raw []byte, parts ...[]byte) (*Entry, error) {
	m, err := membersOf(raw)
	if err != nil {
		return nil, err
	}
	var wrong error
	f := &fields{m, &wrong}
	if f.has("standard_logging_object") {
		f = f.object("standard_logging_object")
	}
	if f.has("call_type") { // LiteLLM's is a duration: to the end, or to the first token of a stream
		delete(f.members, "response_time")
	}
	e := &Entry{Body: map[string][]byte{}, Fields: f.members}
	unread := false // messages without their content
	switch layout {
	case Batch:
		for _, part := range parts {
			response, _ := membersOf(part)
			maps.Copy(f.members, response)
		}
		if e.Part = !f.has("body"); e.Part || !f.has("response") && !f.has("error") {
			e.Joins = f.text(requestIDs)
		}
	case spanRecord:
		e.Part, parts = true, [][]byte{raw}
		fallthrough
	case span:
		e.Joins = f.span()
		e.Fields, unread = f.addMessages(parts)
		delete(f.members, "body") // of a log record, not of a request
	}
	err = e.read(f, layout)
	if err == nil && layout == spanRecord && e.Prompt == NoPrompt && e.Response == "" && !unread {
		err = noMessage
	}
	if err := cmp.Or(err, wrong); err != nil { // of what is no request, nothing else matters
		return nil, err
	}
	return e, nil
}

// read reads the facts of an entry.
func (e *Entry) read(f *fields, layout Layout) error {
	request := e.readRequest(f)
	switch call := cmp.Or(f.text(calls), request.text(calls)); {
	case layout == spanRecord, generates(call), call == "" && (layout != span || f.has("gen_ai.request.model")):
	case layout == span && !strings.HasPrefix(call, "embed") && !strings.HasPrefix(call, "rerank"):
		return otherSpan // as those of agents and tools, which have attributes of models, too
	default:
		return otherCall
	}
	e.ID, e.Session = f.text(requestIDs), f.text(sessions)
	e.Begin, e.First, e.End = f.time(begins), f.time(firsts), f.time(ends)
	if e.First.IsZero() {
		e.First = f.after(e.Begin, firstsAfter)
	}
	if e.End.IsZero() {
		e.End = f.after(e.Begin, endsAfter)
	}
	if err := e.readResponse(f); err != nil {
		return err
	}
	_, hit := f.first(cacheHits)
	e.CacheHit = strings.EqualFold(bare(hit), "true")
	e.readPrompt()
	if layout != span {
		e.Endpoint = e.API
	}
	if !e.End.After(e.Begin) || e.Begin.IsZero() {
		e.End = time.Time{}
	}
	whole := !e.End.IsZero() && !e.First.Before(e.End) && string(e.Body["stream"]) != "true"
	if !e.First.After(e.Begin) || whole {
		e.First = time.Time{} // some write the begin or the end if they do not know it
	}
	return nil
}

// Names of calls, and ends of paths of APIs, that generate text, and parts of names that do
// not.
var (
	generating    = strings.Fields("completion completions responses messages generate chat generate_content generatecontent generate_content_stream pass_through_endpoint passthrough_route")
	notGenerating = strings.Fields("get_ delete_ list_ cancel_")
)

// generates reports whether the name of a call, or the path of an API, is one that
// generates text.
func generates(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), "?")
	return slices.ContainsFunc(generating, func(end string) bool { return strings.HasSuffix(name, end) }) &&
		!slices.ContainsFunc(notGenerating, func(part string) bool { return strings.Contains(name, part) })
}

// readRequest collects the body of the request. It returns the object that has it.
func (e *Entry) readRequest(f *fields) (request *fields) {
	for _, name := range []string{"model_parameters", "optional_params", "proxy_server_request"} {
		of, _ := membersOf(unwrap(f.members[name])) // some rows have other things there
		maps.Copy(e.Body, of)
	}
	for member, names := range bodyMembers {
		if _, raw := f.first(names); raw != nil {
			e.Body[member] = unwrap(raw)
		}
	}
	if _, stream := f.first(streams); stream != nil {
		e.Body["stream"] = bytes.ToLower(bytes.Trim(stream, `"`)) // some write True
	}
	_, raw := f.first(allMessages)
	switch raw = unwrap(raw); {
	case len(raw) <= 2: // none, [] or {}
	case raw[0] == '{': // such as {"messages": [...]}
		in, _ := membersOf(raw)
		maps.Copy(e.Body, in)
	case raw[0] == '[':
		e.Body["messages"] = raw
	default:
		e.Body["prompt"] = raw
	}
	request = f.object("request", "request_body", "body")
	body := request
	if name, wrapped := request.first(wrappers); wrapped != nil && !request.has("messages") {
		body = request.object(name)
	}
	maps.Copy(e.Body, body.members)
	if limit := e.Body["max_tokens"]; limit != nil {
		e.Body["max_tokens"] = bytes.Trim(limit, `"`) // some write a string
	}
	return request
}

// apis are the members that have a prompt, with the API of each.
var apis = [][2]string{{"messages", Chat}, {"input", Responses}, {"prompt", Completions}, {"input_ids", Generate}, {"text", Generate}}

// readPrompt finds the API of the body, and whether it has its prompt.
func (e *Entry) readPrompt() {
	of := slices.IndexFunc(apis, func(api [2]string) bool { return len(e.Body[api[0]]) > 0 })
	if of < 0 {
		return
	}
	if e.API = apis[of][1]; e.API == Chat && len(e.Body["system"]) > 0 {
		e.API = Messages
	}
	switch raw := e.Body[apis[of][0]]; {
	case len(raw) <= 2: // "", [] or {}
	case bytes.Contains(raw, []byte(`"redacted-by-litellm"`)):
		e.Prompt = Redacted
	case bytes.Contains(raw, []byte("litellm_truncated")): // where a text is cut
		e.Prompt = Cut
	default:
		e.Prompt = HasPrompt
	}
}
