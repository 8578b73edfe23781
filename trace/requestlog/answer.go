package requestlog

import (
	"strconv"
	"strings"

	"github.com/bytedance/sonic"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// answer takes the body of an answer: an object, the chunks of a stream as an array, the
// text of a stream, or a text.
func (e *Entry) answer(f *fields, name string, raw []byte) {
	var text strings.Builder
	for _, chunk := range chunks(unwrap(raw)) {
		if m, err := membersOf(chunk); err == nil {
			e.chunk(&fields{members: m, path: f.path + name + "."}, f)
		}
		if chunk[0] == '"' {
			text.WriteString(textOf(chunk))
		} else {
			appendTexts(&text, "", chunk, 0)
		}
	}
	e.Answer = text.String()
}

// chunk takes an answer, or a chunk of one, which is part of f.
func (e *Entry) chunk(in, f *fields) {
	message := &fields{members: members{}}
	if raw := in.members["message"]; nested(raw) && raw[0] == '{' { // Anthropic's message_start
		message = in.object("message")
	}
	for _, of := range []*fields{in, message} {
		usage := of.object("usage", "usageMetadata")
		e.Usage.add(usage.usage())
		f.within(usage)
	}
	if _, given := e.Body["model"]; !given && in.has("model") {
		e.Body["model"] = in.members["model"]
	}
	if created := in.time("created", "created_at"); !created.IsZero() && e.Begin.IsZero() {
		e.Begin, e.BeginCreated = created, true
	}
	e.list = e.list || textOf(in.members["object"]) == "list"
	if in.has("error") {
		e.fail("", "", e.Status)
	}
	f.within(in)
}

// chunks returns the parts of an answer.
func chunks(raw []byte) (parts [][]byte) {
	switch {
	case len(raw) == 0:
		return nil
	case raw[0] == '[':
		jsonscan.Elements(raw, func(_ int, element []byte) error {
			parts = append(parts, element)
			return nil
		})
		return parts
	case raw[0] != '"':
		return [][]byte{raw}
	}
	s := textOf(raw)
	if !strings.HasPrefix(s, "data:") && !strings.HasPrefix(s, "event:") {
		return [][]byte{raw}
	}
	for line := range strings.Lines(s) {
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			if data = strings.TrimSpace(data); sonic.ValidString(data) {
				parts = append(parts, []byte(data))
			}
		}
	}
	return parts
}

// texts are the members of answers that have what the model wrote.
var texts = map[string]bool{"content": true, "text": true, "reasoning_content": true, "reasoning": true, "thinking": true, "arguments": true, "partial_json": true, "delta": true, "output_text": true}

// appendTexts appends the texts within an answer.
func appendTexts(to *strings.Builder, key string, raw []byte, depth int) {
	switch {
	case depth > jsonscan.MaxDepth:
	case raw[0] == '"' && texts[key]:
		to.WriteString(textOf(raw))
	case raw[0] == '{':
		jsonscan.Members(raw, func(key []byte, _ int, value []byte) error {
			appendTexts(to, string(key), value, depth+1)
			return nil
		})
	case raw[0] == '[':
		jsonscan.Elements(raw, func(_ int, element []byte) error {
			appendTexts(to, key, element, depth+1)
			return nil
		})
	}
}

// usage reads the usage that servers write.
func (f *fields) usage() (u Usage) {
	u.Input = f.tokens("prompt_tokens", "input_tokens", "promptTokens", "inputTokens", "promptTokenCount")
	u.Output = f.tokens("completion_tokens", "output_tokens", "completionTokens", "outputTokens", "candidatesTokenCount")
	in := f.object("prompt_tokens_details", "input_tokens_details")
	out := f.object("completion_tokens_details", "output_tokens_details")
	u.Cached, u.Reasoning = in.tokens("cached_tokens"), out.tokens("reasoning_tokens")
	f.within(in)
	f.within(out)
	if read := f.tokens("cache_read_input_tokens"); read.Set && !u.Cached.Set {
		u.Cached = read
	}
	if !f.has("prompt_tokens") && u.Input.Set { // Anthropic counts cached tokens apart
		u.Input.Value += f.tokens("cache_read_input_tokens").Value + f.tokens("cache_creation_input_tokens").Value
		u.Input.Value = min(u.Input.Value, trace.MaxLength)
	}
	return u
}

// add takes what another usage has.
func (u *Usage) add(more Usage) {
	for _, n := range []struct {
		to   *trace.Opt[int]
		from trace.Opt[int]
	}{{&u.Input, more.Input}, {&u.Output, more.Output}, {&u.Cached, more.Cached}, {&u.Reasoning, more.Reasoning}} {
		if n.from.Set {
			*n.to = n.from
		}
	}
}

// fail sets the outcome of a request that failed, from what a log calls the failure.
func (e *Entry) fail(class, code string, status int) {
	if n, err := strconv.Atoi(code); err == nil && n >= 100 && n < 600 {
		status = n
	}
	if status != http200 {
		e.Status = status
	}
	switch lower := strings.ToLower(class + " " + code); {
	case strings.Contains(lower, "timeout"), strings.Contains(lower, "expired"):
		e.Outcome = "timeout"
	case strings.Contains(lower, "cancel"):
		e.Outcome = "canceled"
	case strings.Contains(lower, "connection"):
		e.Outcome = "connect"
	case e.Status >= 400:
		e.Outcome = "status"
	default:
		e.Outcome = "server"
	}
}

const http200 = 200
