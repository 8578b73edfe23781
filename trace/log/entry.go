package log

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Layout is how a log writes an entry.
type Layout uint8

// The layouts; the others are those of the package comment.
const (
	unknownLayout Layout = iota
	exchangeLayout
	Batch // a request of a batch, or the answer to one
	litellmLayout
	spanLayout
	spanRecord // an OpenTelemetry log record with messages of a span
)

// Entry is a request and what a log has about its answer. Its slices refer to the log.
type Entry struct {
	ID string // of the request in the log
	// Joins names the key that joins the entry with parts elsewhere in the log: the
	// answer to a batch request, or the log records of a span. "" for none.
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
	// BeginCreated says that Begin is the time of the answer, in whole seconds.
	BeginCreated bool
	Usage
	// Answer has the texts of the answer, if there is no usage.
	Answer string
	// Outcome is OK or the class of the failure, as in package replay.
	Outcome string
	Status  int
	// CacheHit says that the gateway answered without the server.
	CacheHit bool

	list bool // the answer is a list, such as of embeddings
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

// Usage are numbers of tokens.
type Usage struct{ Input, Output, Cached, Reasoning trace.Opt[int] }

// Errors that say that a part of a log is no request. They are no faults of the log.
var (
	ErrOtherCall = errors.New("a call that generates no text")
	ErrNoRequest = errors.New("a span that is no request")
	ErrNoMessage = errors.New("a log record without messages")
)

// envelopes are the objects of OTLP, which have arrays within arrays.
var envelopes = []struct {
	path   []string
	layout Layout
}{
	{[]string{"resourceSpans", spansOfScopes, "spans"}, spanLayout},
	{[]string{"resource_spans", spansOfScopes, "spans"}, spanLayout},
	{[]string{"batches", spansOfScopes, "spans"}, spanLayout},
	{[]string{"resourceLogs", "scopeLogs", "logRecords"}, spanRecord},
	{[]string{"resource_logs", "scope_logs", "log_records"}, spanRecord},
}

const spansOfScopes = "scopeSpans|scope_spans|instrumentationLibrarySpans"

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
	if layout := layoutOf(m); layout != unknownLayout {
		return visit(layout, 0, object)
	}
	if raw := m["data"]; len(raw) > 0 && raw[0] == '[' { // a page of an API
		return walk(object, 0, []string{"data"}, unknownLayout, func(_ Layout, at int, raw []byte) error {
			m, _ := membersOf(raw)
			return visit(layoutOf(m), at, raw)
		})
	}
	return errors.New("not an entry of a known request log: it has the keys of none")
}

// walk visits the objects at the end of a path of arrays.
func walk(object []byte, base int, path []string, layout Layout, visit func(Layout, int, []byte) error) error {
	if len(object) == 0 || object[0] != '{' {
		return fmt.Errorf("an element of %s is not an object", path[0])
	}
	return jsonscan.Members(object, func(key []byte, at int, raw []byte) error {
		if !slices.Contains(strings.Split(path[0], "|"), string(key)) || string(raw) == "null" {
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

// layoutOf returns the layout of an entry with these members.
func layoutOf[V any](m map[string]V) Layout {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { _, ok := m[key]; return ok })
	}
	switch {
	case has("custom_id"):
		return Batch
	case has("standard_logging_object"), has("call_type") && has("startTime", "start_time"):
		return litellmLayout
	case has("trace_id") && has("span_id") && has("body") && has("attributes"): // as console exporters print it
		return spanRecord
	case has("traceId", "trace_id", "context") && has("spanId", "span_id", "context") && has("attributes"):
		return spanLayout
	case has("request") && has("response"), has("request_body") && has("response_body"):
		return exchangeLayout
	}
	return unknownLayout
}

// IsLog reports whether an object with these keys is an entry of a request log, or
// contains some.
func IsLog(keys map[string]bool) bool {
	for _, in := range envelopes {
		if keys[in.path[0]] {
			return true
		}
	}
	return layoutOf(keys) != unknownLayout
}

// Parse parses an entry, which must be valid JSON, with its parts in their order. Errors
// are ErrOtherCall, ErrNoRequest, ErrNoMessage, or say what is wrong.
func Parse(layout Layout, raw []byte, parts ...[]byte) (*Entry, error) {
	m, err := membersOf(raw)
	if err != nil {
		return nil, err
	}
	var wrong error
	f := &fields{members: m, err: &wrong}
	e := &Entry{Fields: m, Body: map[string][]byte{}, Outcome: OK}
	switch layout {
	case Batch:
		err = e.batch(f)
	case litellmLayout:
		err = e.litellm(f)
	case spanLayout:
		err = e.otel(f, parts)
	case spanRecord:
		err = e.otelRecord(f)
	default:
		err = e.exchange(f)
	}
	switch {
	case wrong != nil:
		return nil, wrong
	case err == nil && e.list:
		return nil, ErrOtherCall
	case err != nil:
		return nil, err
	}
	e.complete()
	if layout != spanLayout {
		e.Endpoint = e.API
	}
	if layout == Batch && len(parts) > 0 {
		answer, err := Parse(layout, parts[0])
		if err != nil {
			return nil, err
		}
		e.Begin, e.First, e.End, e.BeginCreated = answer.Begin, answer.First, answer.End, answer.BeginCreated
		e.Usage, e.Answer, e.Outcome, e.Status = answer.Usage, answer.Answer, answer.Outcome, answer.Status
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

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

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
func apiOf(body members) string {
	switch {
	case body.has("messages") && body.has("system"):
		return Messages
	case body.has("messages"):
		return Chat
	case body.has("input"):
		return Responses
	case body.has("prompt"):
		return Completions
	case body.has("input_ids"), body.has("text"):
		return Generate
	}
	return ""
}
