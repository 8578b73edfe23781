package server

import (
	"fmt"
	"slices"

	"moontide/trace/jsonscan"
)

// maxElements limits the messages of a chat and the parts of a message. A short
// body can hold many that take far more memory than their text, so they are
// counted before decoding.
const maxElements = 1 << 16

// tokens collects a prompt: an engine's prompt, or a list for /tokenize.
type tokens interface {
	AddText(string)
	AddToken(uint64)
	Len() int
}

// encoded is a prompt whose texts are encoded by [Config.Encode].
type encoded struct {
	tokens
	encode Encoder
	ids    []uint32 // reused
	err    error    // of encode
}

// AddText appends the tokens of s.
func (e *encoded) AddText(s string) {
	var err error
	if e.ids, err = e.encode(e.ids[:0], s); err != nil {
		e.err = err
	}
	for _, id := range e.ids {
		e.AddToken(uint64(id))
	}
}

// readPrompt adds a request's prompt to p.
func (c Config) readPrompt(api *api, w *wireRequest, p tokens) *apiError {
	if c.Encode == nil {
		return api.readPrompt(w, p)
	}
	e := &encoded{tokens: p, encode: c.Encode}
	if err := api.readPrompt(w, e); err != nil {
		return err
	}
	if e.err != nil {
		return badRequest(api.promptParam, "%v", e.err)
	}
	return nil
}

type wireMessage struct {
	Type             string `json:"type"`
	Role             string `json:"role"`
	Content          raw    `json:"content"`
	ReasoningContent raw    `json:"reasoning_content"`
	Reasoning        raw    `json:"reasoning"`
	ToolCalls        raw    `json:"tool_calls"`
}

type wirePart struct {
	Type         string  `json:"type"`
	Text         *string `json:"text"`
	CacheControl raw     `json:"cache_control"`
}

// messageForm is how an API writes messages.
type messageForm struct {
	textParts []string // types of parts with text
	// skipped lists types of messages and parts that do not count as input: the
	// reasoning of earlier answers.
	skipped []string
	// reasoning is whether messages have members with the reasoning of earlier
	// answers, which counts.
	reasoning bool
}

// readMessages adds the contents of all messages to the prompt.
func (w *wireRequest) readMessages(name string, form messageForm, p tokens) *apiError {
	array := w.get(name)
	if array.absent() {
		return array.missing()
	}
	var messages []wireMessage
	if err := array.decodeArray("an array of objects", maxElements, &messages); err != nil {
		return err
	}
	for i := range messages {
		if err := w.readMessage(&messages[i], fmt.Sprintf("%s[%d]", name, i), form, p); err != nil {
			return err
		}
	}
	return nil
}

func (w *wireRequest) readMessage(m *wireMessage, param string, form messageForm, p tokens) *apiError {
	if slices.Contains(form.skipped, m.Type) {
		return nil
	}
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool":
	default:
		return badRequest(param+".role", "%q is not a role", shortened(m.Role))
	}
	if !absent(m.ToolCalls) && string(m.ToolCalls) != "[]" {
		return notSupported(param + ".tool_calls")
	}
	if err := m.readReasoning(param, form, p); err != nil {
		return err
	}
	content := parameter{param + ".content", m.Content}
	switch {
	case content.absent() && m.Role == "assistant":
		return nil
	case content.absent():
		return content.missing()
	}
	return w.readContent(content, form, p)
}

// readReasoning adds the reasoning of an earlier answer, under DeepSeek's name or
// vLLM's.
func (m *wireMessage) readReasoning(param string, form messageForm, p tokens) *apiError {
	if !form.reasoning || m.Role != "assistant" {
		return nil
	}
	for _, r := range []parameter{{param + ".reasoning_content", m.ReasoningContent}, {param + ".reasoning", m.Reasoning}} {
		if !r.absent() {
			return r.readText(p)
		}
	}
	return nil
}

// readContent adds a text or an array of text parts to the prompt.
func (w *wireRequest) readContent(content parameter, form messageForm, p tokens) *apiError {
	if !content.isArray() {
		return content.readText(p)
	}
	var parts []wirePart
	if err := content.decodeArray("a string or an array of text parts", maxElements, &parts); err != nil {
		return err
	}
	for _, part := range parts {
		switch {
		case slices.Contains(form.skipped, part.Type):
			continue
		case !slices.Contains(form.textParts, part.Type):
			return notSupported(content.name)
		case part.Text == nil:
			return badRequest(content.name, "a text part of %s has no text", content.name)
		}
		p.AddText(*part.Text)
		if !absent(part.CacheControl) {
			w.breakpoint = p.Len()
		}
	}
	return nil
}

func (p parameter) readText(to tokens) *apiError {
	var text string
	if err := p.decode("text or token ids", &text); err != nil {
		return err
	}
	to.AddText(text)
	return nil
}

// decodeArray decodes an array of at most most elements, if the parameter is an array.
func (p parameter) decodeArray(want string, most int, into any) *apiError {
	if p.isArray() && elements(p.value) > most {
		return badRequest(p.name, "%s has more than %d elements", p.name, most)
	}
	return p.decode(want, into)
}

// elements counts the elements of a JSON array.
func elements(array raw) (n int) {
	jsonscan.Elements(array, func(int, []byte) error { n++; return nil })
	return n
}
