package server

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"moontide/trace/jsonscan"
)

// tokens collects a prompt.
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
	e := &encoded{tokens: p, encode: c.Encode}
	if c.Encode != nil {
		p = e
	}
	given, ids := false, w.get(api.tokenIDs)
	for _, part := range api.prompt {
		m := w.get(part.name)
		if m.absent() || part.name != api.tokenIDs && !ids.absent() { // SGLang ignores a text beside ids
			continue
		}
		given = true
		if err := m.readPrompt(part.shapes, p); err != nil {
			return err
		}
	}
	switch {
	case !given:
		return w.get(api.promptParam).missing()
	case e.err != nil:
		return badRequest(api.promptParam, "%v", e.err)
	}
	return nil
}

// promptPart is a member that is a part of the prompt, and the shapes that it may have.
type promptPart struct{ name, shapes string }

// Shapes of parts of a prompt, as errors name them. Objects are messages, or the parts of one.
const (
	aString    = "a string"
	tokenArray = "token ids"
	oneOf      = "an array with one of them"
	objects    = "an array of objects"
)

// readPrompt adds a part of a prompt in one of the shapes.
func (p parameter) readPrompt(shapes string, to tokens) *apiError {
	has := func(shape string) bool { return strings.Contains(shapes, shape) }
	c := jsonscan.New(p.value)
	array := p.isArray() && c.Open('[')
	first := c.Peek()
	switch {
	case !array && has(aString):
		return p.readText(shapes, to)
	case array && first == '{' && has(objects):
		return p.eachObject(func(i int, m *wireMessage) *apiError {
			return m.read(fmt.Sprintf("%s[%d]", p.name, i), to)
		})
	case array && (first == '"' || first == '[') && has(oneOf):
		inner := parameter{p.name, c.Raw()}
		if c.More(']') {
			return badRequest(p.name, "only one prompt per request is supported")
		}
		if inner.isArray() {
			return inner.readTokenIDs(to)
		}
		return inner.readText(shapes, to)
	case array && first != '{' && has(tokenArray):
		return p.readTokenIDs(to)
	}
	return badRequest(p.name, "%s must be %s", p.name, shapes)
}

// wireMessage is a message, or a part of one.
type wireMessage struct {
	Type      string  `json:"type"`
	Role      string  `json:"role"`
	Content   raw     `json:"content"`
	ToolCalls raw     `json:"tool_calls"`
	Text      *string `json:"text"`
}

// Roles of messages, types of parts of messages that are text, and of messages and parts that do not count
// as input: the reasoning of earlier answers.
var (
	roles     = []string{"system", "developer", "user", "assistant", "tool"}
	textParts = []string{"text", "input_text", "output_text"}
	skipped   = []string{"reasoning", "thinking", "redacted_thinking"}
)

// read adds a message, or a part of a system prompt.
func (m *wireMessage) read(param string, to tokens) *apiError {
	if m.Role == "" && (m.Text != nil || slices.Contains(skipped, m.Type)) {
		return m.readPart(param, to)
	}
	if !slices.Contains(roles, m.Role) {
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
	case content.isArray():
		return content.eachObject(func(_ int, part *wireMessage) *apiError { return part.readPart(content.name, to) })
	}
	return content.readText("a string or an array of text parts", to)
}

// readPart adds a part of a message.
func (m *wireMessage) readPart(param string, to tokens) *apiError {
	switch {
	case slices.Contains(skipped, m.Type):
		return nil
	case !slices.Contains(textParts, m.Type):
		return notSupported(param)
	case m.Text == nil:
		return badRequest(param, "a text part of %s has no text", param)
	}
	to.AddText(*m.Text)
	return nil
}

func (p parameter) readText(want string, to tokens) *apiError {
	var text string
	if err := p.decode(want, &text); err != nil {
		return err
	}
	to.AddText(text)
	return nil
}

// eachObject calls read with each element of an array, under the array's name. One at a
// time is decoded: a short body can hold many that take far more memory than their text.
func (p parameter) eachObject(read func(i int, m *wireMessage) *apiError) (failed *apiError) {
	i := 0
	jsonscan.Elements(p.value, func(_ int, element []byte) error {
		m := new(wireMessage)
		if failed = (parameter{p.name, element}).decode("an array of objects", m); failed == nil {
			failed = read(i, m)
		}
		if i++; failed != nil {
			return errStopped
		}
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
