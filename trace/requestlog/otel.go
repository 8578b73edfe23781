package requestlog

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// otel reads a span of the conventions for generative AI, old and new, and its log records.
func (e *Entry) otel(f *fields, records [][]byte) error {
	a := &fields{members: attributes(f.members["attributes"])}
	e.Fields = a.members
	if err := a.isRequest(); err != nil {
		return err
	}
	context := f.object("context")
	e.ID = f.text("spanId", "span_id") + context.text("span_id")
	e.Span = spanName(f.text("traceId", "trace_id")+context.text("trace_id"), e.ID)
	e.Session = a.text("gen_ai.conversation.id", "session.id", "langfuse.session.id")
	e.Begin = f.time("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
	e.End = f.time("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")
	for to, from := range map[string]string{
		"model": "gen_ai.request.model|gen_ai.response.model", "max_tokens": "gen_ai.request.max_tokens",
	} {
		if _, raw := a.first(strings.Split(from, "|")...); raw != nil {
			e.Body[to] = raw
		}
	}
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
	e.otelTexts(a, f.members["events"], records)
	e.otelStatus(f, a)
	f.within(a)
	return nil
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

func (e *Entry) otelStatus(f, a *fields) {
	status := f.object("status")
	code := strings.ToUpper(status.text("code", "status_code"))
	if failure := a.text("error.type"); failure != "" || code == "2" || strings.HasSuffix(code, "ERROR") {
		e.fail(failure, failure, int(a.number("http.response.status_code").Value))
	}
	f.within(status)
}

// otelTexts finds the prompt and the answer: in attributes of the span, or of an event or
// log record with the details, in one for each message, or in an attribute for each
// member of a message.
func (e *Entry) otelTexts(a *fields, events []byte, records [][]byte) {
	var m messages
	elements(events, func(raw []byte) {
		event := &fields{}
		event.members, _ = membersOf(raw)
		name := event.text("name")
		e.event(name, &fields{members: attributes(event.members["attributes"])}, &m)
		if e.First.IsZero() && strings.Contains(name, "first_token") {
			e.First = event.time("timeUnixNano", "timestamp")
		}
		a.within(event)
	})
	for _, raw := range records {
		record := &fields{}
		record.members, _ = membersOf(raw)
		if record.span() == e.Span {
			name, in := record.event()
			e.event(name, in, &m)
		}
		a.within(record)
	}
	e.otelAttributes(a)
	m.prompt = append(m.prompt, indexed(a, "gen_ai.prompt.")...)
	m.answer = append(m.answer, indexed(a, "gen_ai.completion.")...)
	e.take(&m)
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
		return
	}
	if role := roles[name]; role != "" {
		message := eventMessage(role, in)
		if m.redacted = m.redacted || message == nil; message != nil {
			m.prompt = append(m.prompt, message)
		}
	}
}

// take takes the messages unless there are better ones. If some lack their content, the
// others are no prompt.
func (e *Entry) take(m *messages) {
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
	for to, from := range map[string]string{
		"messages": "gen_ai.input.messages|gen_ai.prompt", "tools": "gen_ai.tool.definitions",
		"system": "gen_ai.system_instructions|gen_ai.system.instructions",
	} {
		if _, raw := a.first(strings.Split(from, "|")...); raw != nil {
			e.Body[to] = unwrap(raw)
		}
	}
	if _, raw := a.first("gen_ai.output.messages", "gen_ai.completion"); raw != nil && e.Answer == "" {
		e.answerText(unwrap(raw))
	}
}

func (e *Entry) answerText(raw []byte) {
	var text strings.Builder
	if raw[0] == '"' {
		text.WriteString(textOf(raw))
	} else {
		appendTexts(&text, "", raw, 0)
	}
	e.Answer += text.String()
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
	named := in.members["role"]
	if len(textOf(named)) == 0 {
		named = quoted(role)
	}
	return object("role", named, "content", raw, "tool_calls", calls)
}

// indexed returns the messages whose members are attributes like gen_ai.prompt.0.role.
func indexed(a *fields, prefix string) (messages [][]byte) {
	names := slices.SortedFunc(maps.Keys(a.members), compareNumbers)
	var parts [][]byte
	current := ""
	end := func() {
		if len(parts) > 0 {
			messages = append(messages, append(append([]byte{'{'}, bytes.Join(parts, []byte(","))...), '}'))
		}
		parts = nil
	}
	for _, name := range names {
		path, ok := strings.CutPrefix(name, prefix)
		index, member, deep := strings.Cut(path, ".")
		if !ok || !deep {
			continue
		}
		if index != current {
			end()
			current = index
		}
		parts = append(parts, slices.Concat(quoted(member), []byte{':'}, unwrap(a.members[name])))
	}
	end()
	return messages
}

// compareNumbers compares names with numbers of different lengths in them.
func compareNumbers(a, b string) int {
	for {
		x, restA, moreA := strings.Cut(a, ".")
		y, restB, moreB := strings.Cut(b, ".")
		if x != y {
			if isDigits(x) && isDigits(y) && len(x) != len(y) {
				return len(x) - len(y)
			}
			return strings.Compare(x, y)
		}
		if !moreA || !moreB {
			return strings.Compare(restA, restB)
		}
		a, b = restA, restB
	}
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
