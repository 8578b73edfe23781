package requestlog

import (
	"cmp"
	"maps"
	"strings"
)

// otelRecord reads a log record with messages of a span: an event with the details of the
// operation, or with one message.
func (e *Entry) otelRecord(f *fields) error {
	e.Span = f.span()
	e.Begin = f.time("timeUnixNano", "time_unix_nano", "timestamp", "observedTimeUnixNano", "observed_time_unix_nano", "observed_timestamp")
	name, in := f.event()
	var m messages
	e.event(name, in, &m)
	e.take(&m)
	if len(e.Body) == 0 && e.Answer == "" && !m.redacted {
		return ErrNoMessage
	}
	return nil
}

// span returns the name of the span of a log record, "" if it has none.
func (f *fields) span() string {
	return spanName(f.text("traceId", "trace_id"), f.text("spanId", "span_id"))
}

// spanName returns the name of a span in a trace. Exporters write ids in hexadecimal, some
// with a prefix.
func spanName(trace, span string) string {
	digits := func(id string) string { return strings.ToLower(strings.TrimPrefix(id, "0x")) }
	if trace, span = digits(trace), digits(span); strings.Trim(trace, "0") == "" || strings.Trim(span, "0") == "" {
		return ""
	}
	return trace + "/" + span
}

// event returns the name of the event that a log record is, and its attributes with the
// members of its body.
func (f *fields) event() (name string, in *fields) {
	in = &fields{members: attributes(f.members["attributes"])}
	name = cmp.Or(f.text("eventName", "event_name"), in.text("event.name"))
	_, body := f.first("body")
	if plain := anyValue(body, 0); plain != nil {
		body = plain
	}
	body = unwrap(body)
	if m, err := membersOf(body); err == nil {
		maps.Copy(in.members, m)
	} else if len(body) > 0 && roles[name] != "" {
		in.members["content"] = body
	}
	return name, in
}
