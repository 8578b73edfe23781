package log

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"moontide/trace/jsonscan"
)

// otel reads a span of the conventions for generative AI, old and new, and its log records.
func (e *Entry) otel(f *fields, records [][]byte) error {
	a := f.in(attributes(f.members["attributes"]), "")
	e.Fields = a.members
	if err := a.isRequest(); err != nil {
		return err
	}
	context := f.object("context")
	e.ID = f.text("spanId", "span_id") + context.text("span_id")
	e.Joins = spanName(f.text("traceId", "trace_id")+context.text("trace_id"), e.ID)
	e.Session = a.text("gen_ai.conversation.id", "session.id", "langfuse.session.id")
	e.Begin = f.time("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
	e.End = f.time("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")
	e.take(a, "model", "gen_ai.request.model", "gen_ai.response.model")
	e.take(a, "max_tokens", "gen_ai.request.max_tokens")
	if stream := a.flag("gen_ai.request.stream", "gen_ai.request.is_stream", "gen_ai.is_streaming", "llm.is_streaming"); stream.Set {
		e.Body["stream"] = strconv.AppendBool(nil, stream.Value)
	}
	e.First = a.after(e.Begin, "gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token", "gen_ai.client.time_to_first_token")
	if first := a.time("langfuse.observation.completion_start_time"); e.First.IsZero() {
		e.First = first
	}
	e.Usage = Usage{
		Input:     a.tokens("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
		Output:    a.tokens("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
		Cached:    a.tokens("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.cached_tokens"),
		Reasoning: a.tokens("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
	}
	e.otelTexts(f, a, records)
	status := f.object("status")
	code := strings.ToUpper(status.text("code", "status_code"))
	if failure := a.text("error.type"); failure != "" || code == "2" || strings.HasSuffix(code, "ERROR") {
		e.fail(failure, failure, int(a.number("http.response.status_code").Value))
	}
	return nil
}

// take takes a member of the request from the first of some attributes that is there.
func (e *Entry) take(a *fields, to string, names ...string) {
	if _, raw := a.first(names...); raw != nil {
		e.Body[to] = unwrap(raw)
	}
}

// isRequest returns an error if a span is no call of a model. Spans of agents and tools
// have attributes of generative AI, too.
func (f *fields) isRequest() error {
	switch call := f.text("gen_ai.operation.name", "llm.request.type"); {
	case strings.HasPrefix(call, "embed"), strings.HasPrefix(call, "rerank"):
		return ErrOtherCall
	case call == "" && f.has("gen_ai.request.model"), generates(call):
		return nil
	}
	return ErrNoRequest
}

// otelTexts finds the prompt and the answer: in attributes of the span, or of an event or
// log record with the details, in one for each message, or in an attribute for each
// member of a message.
func (e *Entry) otelTexts(f, a *fields, records [][]byte) {
	var m messages
	elements(f.members["events"], func(raw []byte) {
		in, _ := membersOf(raw)
		event := f.in(in, "")
		name := event.text("name")
		e.event(name, f.in(attributes(in["attributes"]), ""), &m)
		if e.First.IsZero() && strings.Contains(name, "first_token") {
			e.First = event.time("timeUnixNano", "timestamp")
		}
	})
	for _, raw := range records {
		in, _ := membersOf(raw)
		if record := f.in(in, ""); record.span() == e.Joins {
			name, attributes := record.event()
			e.event(name, attributes, &m)
		}
	}
	e.otelAttributes(a)
	m.prompt = append(m.prompt, indexed(a.members, "gen_ai.prompt.")...)
	m.answer = append(m.answer, indexed(a.members, "gen_ai.completion.")...)
	e.takeMessages(&m)
}

// messages are those of events and log records of a request that have one each.
type messages struct {
	prompt, answer [][]byte
	redacted       bool // one has no content
}

// event takes what an event or a log record has.
func (e *Entry) event(name string, in *fields, m *messages) {
	e.otelAttributes(in)
	if name == "gen_ai.choice" {
		if _, raw := in.first("message", "content", "gen_ai.event.content"); raw != nil {
			m.answer = append(m.answer, unwrap(raw))
		}
	} else if role := roles[name]; role != "" {
		message := eventMessage(role, in)
		if m.redacted = m.redacted || message == nil; message != nil {
			m.prompt = append(m.prompt, message)
		}
	}
}

// takeMessages takes the messages unless there are better ones. If some lack their
// content, the others are no prompt.
func (e *Entry) takeMessages(m *messages) {
	if _, known := e.Body["messages"]; !known && len(m.prompt) > 0 && !m.redacted {
		e.Body["messages"] = list(m.prompt)
	}
	if e.Answer == "" {
		for _, message := range m.answer {
			e.answerText(message)
		}
	}
}

// otelAttributes takes the attributes that have all messages.
func (e *Entry) otelAttributes(a *fields) {
	e.take(a, "messages", "gen_ai.input.messages", "gen_ai.prompt")
	e.take(a, "tools", "gen_ai.tool.definitions")
	e.take(a, "system", "gen_ai.system_instructions", "gen_ai.system.instructions")
	if _, raw := a.first("gen_ai.output.messages", "gen_ai.completion"); raw != nil && e.Answer == "" {
		e.answerText(unwrap(raw))
	}
}

// roles are those of the messages of events.
var roles = map[string]string{
	"gen_ai.system.message": "system", "gen_ai.user.message": "user",
	"gen_ai.assistant.message": "assistant", "gen_ai.tool.message": "tool",
}

// eventMessage returns the message that an event for a role has, nil if it has none.
func eventMessage(role string, in *fields) []byte {
	_, raw := in.first("gen_ai.event.content", "content", "message")
	if raw = unwrap(raw); len(raw) > 0 && raw[0] == '{' {
		return raw
	}
	_, given := in.members["content"] // perhaps ""
	calls := unwrap(in.members["tool_calls"])
	if len(raw) == 0 && len(calls) == 0 && !given {
		return nil
	}
	var message jsonscan.Object
	message.Add("role", quoted(cmp.Or(textOf(in.members["role"]), role)))
	if len(raw) > 0 {
		message.Add("content", raw)
	}
	if len(calls) > 0 {
		message.Add("tool_calls", calls)
	}
	return message.Bytes()
}

// indexed returns the messages whose members are attributes like gen_ai.prompt.0.role.
func indexed(a members, prefix string) (messages [][]byte) {
	inOrder := func(name string) string { // numbers of one length, so that texts have their order
		parts := strings.Split(name, ".")
		for i, part := range parts {
			if isDigits(part) {
				parts[i] = fmt.Sprintf("%9s", part)
			}
		}
		return strings.Join(parts, ".")
	}
	names := slices.SortedFunc(maps.Keys(a), func(a, b string) int { return strings.Compare(inOrder(a), inOrder(b)) })
	var message jsonscan.Object
	current := ""
	for _, name := range append(names, prefix+"end.") {
		path, ok := strings.CutPrefix(name, prefix)
		index, member, deep := strings.Cut(path, ".")
		if !ok || !deep {
			continue
		}
		if done := message.Bytes(); index != current {
			if done != nil {
				messages = append(messages, done)
			}
			current, message = index, jsonscan.Object{}
		}
		message.Add(member, unwrap(a[name]))
	}
	return messages
}

// otelRecord reads a log record with messages of a span: an event with the details of the
// operation, or with one message.
func (e *Entry) otelRecord(f *fields) error {
	e.Joins, e.Part = f.span(), true
	e.Begin = f.time("timeUnixNano", "time_unix_nano", "timestamp", "observedTimeUnixNano", "observed_time_unix_nano", "observed_timestamp")
	name, in := f.event()
	var m messages
	e.event(name, in, &m)
	e.takeMessages(&m)
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
	in = f.in(attributes(f.members["attributes"]), "")
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

// attributes returns attributes as members, whose values are plain JSON. OTLP has a list
// of keys with typed values, other exporters have an object.
func attributes(raw []byte) members {
	m, err := membersOf(raw)
	if err != nil {
		m = members{}
		keyValues(raw, 0, func(key string, value []byte) { m[key] = value })
	}
	return m
}

// keyValues calls visit for the keys and values, as plain JSON, of a list of OTLP.
func keyValues(raw []byte, depth int, visit func(key string, value []byte)) {
	elements(raw, func(element []byte) {
		m, _ := membersOf(element)
		if value := anyValue(m["value"], depth); value != nil {
			visit(textOf(m["key"]), value)
		}
	})
}

// maxNested limits the nesting of an attribute.
const maxNested = 64

// anyValue returns a typed value as plain JSON, nil if there is none.
func anyValue(raw []byte, depth int) []byte {
	m, err := membersOf(raw)
	if err != nil || depth > maxNested {
		return nil
	}
	values := func(list []byte) []byte {
		m, _ := membersOf(list)
		return m["values"]
	}
	for kind, v := range m {
		switch kind {
		case "stringValue", "intValue", "doubleValue", "boolValue", "bytesValue", "string_value", "int_value", "double_value", "bool_value":
			if v[0] == '{' || v[0] == '[' {
				return nil
			}
			return v
		case "arrayValue", "array_value":
			var all [][]byte
			elements(values(v), func(element []byte) {
				if v := anyValue(element, depth+1); v != nil {
					all = append(all, v)
				}
			})
			return list(all)
		case "kvlistValue", "kvlist_value":
			all := jsonscan.Object{}
			keyValues(values(v), depth+1, all.Add)
			if all.Bytes() == nil {
				return []byte("{}")
			}
			return all.Bytes()
		}
	}
	return nil
}
