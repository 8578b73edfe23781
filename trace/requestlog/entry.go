package requestlog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"moontide/trace"
	"moontide/trace/jsonscan"
	"moontide/trace/record"
)

// Layout is how a log writes an entry.
type Layout uint8

// The layouts.
const (
	Unknown Layout = iota
	Exchange
	Batch
	LiteLLM
	Langfuse
	OTel
	OTelRecord // a log record with messages of a span
)

// Entry is a request and what a log has about its answer. Its slices refer to the log.
type Entry struct {
	ID   string // of the request in the log
	Half Half   // of a batch

	// Body has the members of the request, as its API has them; Prompt says whether they
	// include the prompt.
	Body   map[string][]byte
	Prompt Prompt
	API    string // by which the prompt is read: see package record; "" if unknown
	// Endpoint is the API of the request, if the log keeps its body.
	Endpoint string
	Fields   map[string][]byte
	// Span names the span, in its trace, that OTel is and OTelRecord belongs to.
	Span string
	// Session is the name of the conversation, if the layout has a place for it.
	Session string

	Begin, First, End time.Time // zero if unknown; First is the first token
	// BeginCreated says that Begin is the time of the answer, in whole seconds.
	BeginCreated bool
	Usage
	// Answer has the texts of the answer, if there is no usage.
	Answer string
	// Outcome is record.OK or the class of the failure, as in package replay.
	Outcome string
	Status  int
	// CacheHit says that the gateway answered without the server.
	CacheHit bool

	list bool // the answer is a list, such as of embeddings
}

// Half is what an entry of a batch is: the request, or the answer to it.
type Half uint8

const (
	Whole Half = iota
	RequestHalf
	AnswerHalf
)

// Prompt says whether the log has the prompt of a request.
type Prompt uint8

const (
	NoPrompt Prompt = iota
	HasPrompt
	Redacted   // replaced by the gateway
	Cut        // shortened by the gateway
	Unreadable // several prompts, or one that a tokenizer refuses; set by readers
)

// Usage are numbers of tokens.
type Usage struct{ Input, Output, Cached, Reasoning trace.Opt[int] }

// Errors that say that a part of a log is no request. They are no faults of the log.
var (
	ErrOtherCall = errors.New("a call that generates no text")
	ErrNoRequest = errors.New("a span or observation that is no request")
	ErrNoMessage = errors.New("a log record without messages")
)

var errNotJSON = errors.New("not a JSON object")

// Split calls visit for each entry of an object: the object itself, or those that it
// contains, with their offset. The object must be valid JSON.
func Split(object []byte, visit func(layout Layout, at int, raw []byte) error) error {
	m, err := membersOf(object)
	if err != nil {
		return err
	}
	for _, in := range envelopes {
		if m.has(in.path[0]) {
			return walk(object, 0, in.path, in.layout, visit)
		}
	}
	if layout := layoutOf(m); layout != Unknown {
		return visit(layout, 0, object)
	}
	for _, key := range []string{"data", "observations"} {
		if raw := m[key]; len(raw) > 0 && raw[0] == '[' {
			return walk(object, 0, []string{key}, Langfuse, func(_ Layout, at int, raw []byte) error {
				m, _ := membersOf(raw)
				return visit(cmp.Or(layoutOf(m), Langfuse), at, raw)
			})
		}
	}
	return errors.New("not an entry of a known request log: it has the keys of none")
}

// envelopes are the objects of OTLP, which have arrays within arrays.
var envelopes = []struct {
	path   []string
	layout Layout
}{
	{[]string{"resourceSpans", spansOfScopes, "spans"}, OTel},
	{[]string{"resource_spans", spansOfScopes, "spans"}, OTel},
	{[]string{"batches", spansOfScopes, "spans"}, OTel},
	{[]string{"resourceLogs", "scopeLogs", "logRecords"}, OTelRecord},
	{[]string{"resource_logs", "scope_logs", "log_records"}, OTelRecord},
}

const spansOfScopes = "scopeSpans|scope_spans|instrumentationLibrarySpans"

// walk visits the objects at the end of a path of arrays.
func walk(object []byte, base int, path []string, layout Layout, visit func(Layout, int, []byte) error) error {
	if len(object) == 0 || object[0] != '{' {
		return fmt.Errorf("an element of %s is not an object", path[0])
	}
	return jsonscan.Members(object, func(key []byte, at int, raw []byte) error {
		if !contains(path[0], key) || string(raw) == "null" {
			return nil
		}
		if raw[0] != '[' {
			return fmt.Errorf("%s is not an array", key)
		}
		return jsonscan.Elements(raw, func(in int, element []byte) error {
			if len(path) > 1 {
				return walk(element, base+at+in, path[1:], layout, visit)
			}
			return visit(layout, base+at+in, element)
		})
	})
}

// contains reports whether a key is one of some names.
func contains(names string, key []byte) bool {
	for name := range bytes.SplitSeq([]byte(names), []byte{'|'}) {
		if bytes.Equal(name, key) {
			return true
		}
	}
	return false
}

// layoutOf returns the layout of an entry with these members.
func layoutOf[V any](m map[string]V) Layout {
	has := func(key string) bool { _, ok := m[key]; return ok }
	switch {
	case has("custom_id"):
		return Batch
	case has("standard_logging_object"), has("call_type") && (has("startTime") || has("start_time")):
		return LiteLLM
	case has("trace_id") && has("span_id") && has("body") && has("attributes"): // as console exporters print it
		return OTelRecord
	case (has("traceId") || has("trace_id") || has("context")) && (has("spanId") || has("span_id") || has("context")) && has("attributes"):
		return OTel
	case (has("traceId") || has("trace_id")) && has("type") && (has("startTime") || has("start_time")):
		return Langfuse
	case has("request") && has("response"), has("request_body") && has("response_body"):
		return Exchange
	}
	return Unknown
}

// IsLog reports whether an object with these keys is an entry of a request log, or
// contains some.
func IsLog(keys map[string]bool) bool {
	for _, in := range envelopes {
		if keys[in.path[0]] {
			return true
		}
	}
	return keys["trace"] && keys["observations"] || layoutOf(keys) != Unknown
}

// Parse parses an entry, which must be valid JSON, and the log records of its span in
// their order. Errors are ErrOtherCall, ErrNoRequest, ErrNoMessage, or say what is wrong.
func Parse(layout Layout, raw []byte, records ...[]byte) (*Entry, error) {
	m, err := membersOf(raw)
	if err != nil {
		return nil, err
	}
	f := &fields{members: m}
	e := &Entry{Fields: m, Body: map[string][]byte{}, Outcome: record.OK}
	switch layout {
	case Batch:
		err = e.batch(f)
	case LiteLLM:
		err = e.litellm(f)
	case Langfuse:
		err = e.langfuse(f)
	case OTel:
		err = e.otel(f, records)
	case OTelRecord:
		err = e.otelRecord(f)
	default:
		err = e.exchange(f)
	}
	if f.err != nil {
		return nil, f.err
	}
	if err == nil && e.list {
		err = ErrOtherCall
	}
	if err != nil {
		return nil, err
	}
	e.complete()
	if layout != OTel && layout != Langfuse {
		e.Endpoint = e.API
	}
	return e, nil
}

// complete finds what follows from the rest.
func (e *Entry) complete() {
	for _, name := range []string{"messages", "input", "prompt", "input_ids", "text"} {
		if raw := e.Body[name]; len(raw) > 2 { // not "", [] or {}
			e.Prompt = promptOf(raw)
			break
		}
	}
	if limit := e.Body["max_tokens"]; isDigits(strings.Trim(string(limit), `"`)) { // some write it as a string
		e.Body["max_tokens"] = bytes.Trim(limit, `"`)
	}
	e.API = apiOf(e.Body)
	if !e.End.After(e.Begin) || e.Begin.IsZero() {
		e.End = time.Time{}
	}
	whole := !e.End.IsZero() && !e.First.Before(e.End) && string(e.Body["stream"]) != "true"
	if !e.First.After(e.Begin) || whole {
		e.First = time.Time{} // some write the begin or the end if they do not know it
	}
	if e.Input.Value == 0 {
		e.Input = trace.Opt[int]{} // no prompt is empty
	}
}

// What LiteLLM writes in place of a prompt, and where it shortens a text.
var (
	redacted = []byte(`"redacted-by-litellm"`)
	cut      = []byte(`litellm_truncated`)
)

func promptOf(raw []byte) Prompt {
	switch {
	case bytes.Contains(raw, redacted):
		return Redacted
	case bytes.Contains(raw, cut):
		return Cut
	}
	return HasPrompt
}

// apiOf returns the API whose requests have the members of a body.
func apiOf(body map[string][]byte) string {
	has := func(key string) bool { return len(body[key]) > 0 }
	switch {
	case has("messages") && has("system"):
		return record.Messages
	case has("messages"):
		return record.Chat
	case has("input"):
		return record.Responses
	case has("prompt"):
		return record.Completions
	case has("input_ids"), has("text"):
		return record.Generate
	}
	return ""
}

// Join adds the answer to the request of a batch.
func (e *Entry) Join(answer *Entry) {
	e.Begin, e.First, e.End, e.BeginCreated = answer.Begin, answer.First, answer.End, answer.BeginCreated
	e.Usage, e.Answer, e.Outcome, e.Status = answer.Usage, answer.Answer, answer.Outcome, answer.Status
	e.Half = Whole
}
