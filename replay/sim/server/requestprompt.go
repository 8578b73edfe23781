package server

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"moontide/trace/jsonscan"
)

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
	Type      string `json:"type"`
	Role      string `json:"role"`
	Content   raw    `json:"content"`
	ToolCalls raw    `json:"tool_calls"`
}

type wirePart struct {
	Type string  `json:"type"`
	Text *string `json:"text"`
}

// messageForm is how an API writes messages.
type messageForm struct {
	textParts []string // types of parts with text
	// skipped lists types of messages and parts that do not count as input: the
	// reasoning of earlier answers.
	skipped []string
}

// readMessages adds the contents of all messages to the prompt.
func (w *wireRequest) readMessages(name string, form messageForm, p tokens) *apiError {
	array := w.get(name)
	if array.absent() {
		return array.missing()
	}
	return array.eachElement("an array of objects", func(i int, element parameter) *apiError {
		var m wireMessage
		element.name = fmt.Sprintf("%s[%d]", name, i)
		if err := element.decode("an object", &m); err != nil {
			return err
		}
		return readMessage(&m, element.name, form, p)
	})
}

func readMessage(m *wireMessage, param string, form messageForm, p tokens) *apiError {
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
	content := parameter{param + ".content", m.Content}
	switch {
	case content.absent() && m.Role == "assistant":
		return nil
	case content.absent():
		return content.missing()
	}
	return readContent(content, form, p)
}

// readContent adds a text or an array of text parts to the prompt.
func readContent(content parameter, form messageForm, p tokens) *apiError {
	if !content.isArray() {
		return content.readText(p)
	}
	return content.eachElement("a string or an array of text parts", func(_ int, element parameter) *apiError {
		var part wirePart
		if err := element.decode("an array of text parts", &part); err != nil {
			return err
		}
		switch {
		case slices.Contains(form.skipped, part.Type):
			return nil
		case !slices.Contains(form.textParts, part.Type):
			return notSupported(content.name)
		case part.Text == nil:
			return badRequest(content.name, "a text part of %s has no text", content.name)
		}
		p.AddText(*part.Text)
		return nil
	})
}

func (p parameter) readText(to tokens) *apiError {
	var text string
	if err := p.decode("text or token ids", &text); err != nil {
		return err
	}
	to.AddText(text)
	return nil
}

// eachElement calls read with each element of an array, under the array's name. One at a
// time is decoded: a short body can hold many that take far more memory than their text.
func (p parameter) eachElement(want string, read func(i int, element parameter) *apiError) (failed *apiError) {
	if !p.isArray() {
		return badRequest(p.name, "%s must be %s", p.name, want)
	}
	i := 0
	jsonscan.Elements(p.value, func(_ int, element []byte) error {
		if failed = read(i, parameter{p.name, element}); failed != nil {
			return errStopped
		}
		i++
		return nil
	})
	return failed
}

// errStopped ends a walk over an array.
var errStopped = errors.New("stopped")

// cutMark replaces an array of token ids cut out of a body. It is not a valid
// prompt, so a body that contains it is always rejected.
var cutMark = []byte(`[-1]`)

// cutTokenIDs cuts the member with a key out of a body if it is an
// array of token ids: the JSON library takes 20 times as long to scan it, and a
// long prompt is nearly all of its body. Within a JSON string the key's quotes
// would be escaped, so any match is a key. The caller must check that rest is JSON
// and that ids is the member and not nested within it.
func cutTokenIDs(body []byte, name string) (rest []byte, ids raw, ok bool) {
	key := bytes.Index(body, []byte(`"`+name+`"`))
	if key < 0 {
		return nil, nil, false
	}
	c := jsonscan.New(body[key:])
	if c.Key(); c.Peek() != '[' {
		return nil, nil, false
	}
	start := key + bytes.IndexByte(body[key:], '[')
	length := bytes.IndexByte(body[start:], ']')
	if length < 0 {
		return nil, nil, false
	}
	first := bytes.TrimLeft(body[start+1:start+length], " \t\r\n")
	if len(first) == 0 || first[0] < '0' || first[0] > '9' {
		return nil, nil, false
	}
	end := start + length + 1
	rest = make([]byte, 0, len(body)-length+len(cutMark))
	rest = append(append(append(rest, body[:start]...), cutMark...), body[end:]...)
	return rest, raw(body[start:end]), true
}

// readTokenIDs adds the ids of an array to a prompt without decoding the array,
// to save memory.
func (p parameter) readTokenIDs(to tokens) *apiError {
	c := jsonscan.New(p.value)
	for more := c.Open('['); more; {
		id := c.Int(math.MaxUint32)
		if more = c.More(']'); !c.Failed() {
			to.AddToken(uint64(id))
		}
	}
	if !c.Done() {
		return badRequest(p.name, "%s[%d] is not a token id, an integer from 0 to %d", p.name, to.Len(), uint32(math.MaxUint32))
	}
	return nil
}
