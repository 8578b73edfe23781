package server

import (
	"bytes"
	"fmt"
)

// maxElements is the most messages in a chat and parts in a message. A short
// text can hold many, each taking far more memory than its text does, so they
// are counted before any is decoded.
const maxElements = 1 << 16

// tokens take a prompt as it is read: an engine's prompt, or whoever wants to
// know its tokens.
type tokens interface {
	AddText(string)
	AddToken(uint64)
	Len() int
}

type wireMessage struct {
	Role      string `json:"role"`
	Content   raw    `json:"content"`
	ToolCalls raw    `json:"tool_calls"`
}

type wirePart struct {
	Type string  `json:"type"`
	Text *string `json:"text"`
}

// readChat adds the contents of all messages to the prompt.
func readChat(w *wireRequest, p tokens) *apiError {
	if absent(w.Messages) {
		return badRequest("messages", "messages is missing")
	}
	if elements(w.Messages) > maxElements {
		return badRequest("messages", "messages has more than %d elements", maxElements)
	}
	var messages []wireMessage
	if err := decode(w.Messages, "messages", "an array of objects", &messages); err != nil {
		return err
	}
	for i := range messages {
		if err := messages[i].read(fmt.Sprintf("messages[%d]", i), p); err != nil {
			return err
		}
	}
	return nil
}

func (m *wireMessage) read(param string, p tokens) *apiError {
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool":
	default:
		return badRequest(param+".role", "%q is not a role", shortened(m.Role))
	}
	if !absent(m.ToolCalls) && string(m.ToolCalls) != "[]" {
		return notSupported(param + ".tool_calls")
	}
	param += ".content"
	switch {
	case absent(m.Content) && m.Role == "assistant":
		return nil
	case absent(m.Content):
		return badRequest(param, "%s is missing", param)
	case m.Content[0] == '[':
		return readParts(m.Content, param, p)
	}
	return readText(m.Content, param, p)
}

func readParts(m raw, param string, p tokens) *apiError {
	if elements(m) > maxElements {
		return badRequest(param, "%s has more than %d elements", param, maxElements)
	}
	var parts []wirePart
	if err := decode(m, param, "a string or an array of text parts", &parts); err != nil {
		return err
	}
	for _, part := range parts {
		switch {
		case part.Type != "text":
			return notSupported(param)
		case part.Text == nil:
			return badRequest(param, "a text part of %s has no text", param)
		}
		p.AddText(*part.Text)
	}
	return nil
}

// readCompletion adds the prompt of a completion: a text, an array of token
// ids, or an array of one of these.
func readCompletion(w *wireRequest, p tokens) *apiError {
	const param = "prompt"
	m := w.Prompt
	if absent(m) {
		return badRequest(param, "prompt is missing")
	}
	if inner := inside(m); m[0] == '[' && len(inner) > 0 && (inner[0] == '"' || inner[0] == '[') {
		if elements(m) != 1 {
			return badRequest(param, "only one prompt a request is supported")
		}
		m = inner
	}
	if m[0] == '[' {
		return readIDs(m, param, p)
	}
	return readText(m, param, p)
}

func readText(m raw, param string, p tokens) *apiError {
	var text string
	if err := decode(m, param, "text or token ids", &text); err != nil {
		return err
	}
	p.AddText(text)
	return nil
}

// inside is the text between the brackets of an array.
func inside(m raw) raw {
	return raw(bytes.TrimSpace(m[1:max(1, len(m)-1)]))
}

// elements counts the elements of a JSON array; 1 for an empty one.
func elements(m raw) int {
	n, depth := 1, 0
	text := inside(m)
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '"':
			i = stringEnd(text, i)
		case ',':
			if depth == 0 {
				n++
			}
		}
	}
	return n
}

// stringEnd is the index of the quote that closes the JSON string which opens
// at text[i].
func stringEnd(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
