package server

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"moontide/replay/sim/engine"
	"moontide/trace/jsonscan"
)

// promptReader adds the texts and token ids of a request to a prompt.
type promptReader struct {
	*engine.Prompt
	encode Encoder
	ids    []uint32 // reused
	err    error    // of encode
}

// AddText appends the tokens of s.
func (p *promptReader) AddText(s string) {
	var err error
	if p.ids, err = p.encode(p.ids[:0], s); err != nil {
		p.err = err
	}
	for _, id := range p.ids {
		p.AddToken(uint64(id))
	}
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

// read adds the prompt of a request.
func (p *promptReader) read(api *api, b body) *apiError {
	given := false
	for _, part := range api.prompt {
		m := b.get(part.name)
		if m.absent() || given && part.name == "text" { // SGLang ignores a text beside ids
			continue
		}
		given = true
		if err := p.readPart(m, part.shapes); err != nil {
			return err
		}
	}
	switch {
	case !given:
		return b.get(api.promptParam).missing()
	case p.err != nil:
		return badRequest(api.promptParam, "%v", p.err)
	}
	return nil
}

// readPart adds a part of a prompt in one of the shapes.
func (p *promptReader) readPart(m parameter, shapes string) *apiError {
	has := func(shape string) bool { return strings.Contains(shapes, shape) }
	c := jsonscan.New(m.value)
	array := m.isArray() && c.Open('[')
	first := c.Peek()
	switch {
	case !array && has(aString):
		return p.readText(m, shapes)
	case array && first == '{' && has(objects):
		return m.each(func(i int, message body) *apiError {
			return p.readMessage(fmt.Sprintf("%s[%d]", m.name, i), message)
		})
	case array && (first == '"' || first == '[') && has(oneOf):
		one := parameter{m.name, c.Raw()}
		switch {
		case c.More(']'):
			return badRequest(m.name, "only one prompt per request is supported")
		case one.isArray():
			return p.readTokenIDs(one)
		}
		return p.readText(one, shapes)
	case array && first != '{' && has(tokenArray):
		return p.readTokenIDs(m)
	}
	return badRequest(m.name, "%s must be %s", m.name, shapes)
}

// Roles of messages, types of parts of messages that are text, and of messages and parts that do not count
// as input: the reasoning of earlier responses.
var (
	roles     = []string{"system", "developer", "user", "assistant", "tool"}
	textParts = []string{"text", "input_text", "output_text"}
	skipped   = []string{"reasoning", "thinking", "redacted_thinking"}
)

// text returns a member that is a string, otherwise "".
func (b body) text(name string) string {
	s, _ := jsonscan.String(b[name])
	return s
}

// readMessage adds a message, or a part of a system prompt.
func (p *promptReader) readMessage(name string, m body) *apiError {
	role, content, calls := m.text("role"), parameter{name + ".content", m["content"]}, m.get("tool_calls")
	switch {
	case role == "" && (!m.get("text").absent() || slices.Contains(skipped, m.text("type"))):
		return p.readTextPart(name, m)
	case !slices.Contains(roles, role):
		return badRequest(name+".role", "%.64q is not a role", role)
	case !calls.absent() && string(calls.value) != "[]":
		return notSupported(name + ".tool_calls")
	case content.absent() && role == "assistant":
		return nil
	case content.absent():
		return content.missing()
	case content.isArray():
		return content.each(func(_ int, part body) *apiError { return p.readTextPart(content.name, part) })
	}
	return p.readText(content, "a string or an array of text parts")
}

// readTextPart adds a part of a message.
func (p *promptReader) readTextPart(name string, part body) *apiError {
	text := parameter{name + ".text", part["text"]}
	switch kind := part.text("type"); {
	case slices.Contains(skipped, kind):
		return nil
	case !slices.Contains(textParts, kind):
		return notSupported(name)
	case text.absent():
		return badRequest(name, "a text part of %s has no text", name)
	}
	return p.readText(text, aString)
}

func (p *promptReader) readText(m parameter, want string) *apiError {
	text, ok := jsonscan.String(m.value)
	if !ok {
		return badRequest(m.name, "%s must be %s", m.name, want)
	}
	p.AddText(text)
	return nil
}

// each calls read with the members of each object of an array. One at a time is decoded: a
// short body can hold many that take far more memory than their text.
func (m parameter) each(read func(i int, members body) *apiError) (failed *apiError) {
	stop, i := errors.New("stopped"), 0
	jsonscan.Elements(m.value, func(_ int, element []byte) error {
		if members, ok := membersOf(element, true, ""); ok {
			failed = read(i, members)
		} else {
			failed = badRequest(m.name, "%s must be an array of objects", m.name)
		}
		if i++; failed != nil {
			return stop
		}
		return nil
	})
	return failed
}

// readTokenIDs adds the ids of an array without decoding the array, to save memory.
func (p *promptReader) readTokenIDs(m parameter) *apiError {
	c := jsonscan.New(m.value)
	for more := c.Open('['); more; {
		id := c.Int(math.MaxUint32)
		if more = c.More(']'); !c.Failed() {
			p.AddToken(uint64(id))
		}
	}
	if !c.Done() {
		return badRequest(m.name, "%s[%d] is not a token id, an integer from 0 to %d", m.name, p.Len(), uint32(math.MaxUint32))
	}
	return nil
}
