package openai

import (
	"bytes"

	"moontide/trace/jsonscan"
)

// keepResponses finds what an event of the Responses API adds.
func keepResponses(k *kept, data []byte) (p pieces, ok bool) {
	c := jsonscan.New(data)
	var kind, delta []byte
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.LowerKey()) {
		case "type":
			kind = c.Text()
		case "delta":
			if c.Peek() == '"' {
				delta = c.Text()
				continue
			}
			c.Skip()
		default:
			c.Skip()
		}
	}
	token, visible := responsesDelta(string(kind))
	switch {
	case !token || !c.Done():
	case !visible:
		p.reasoning = delta
	case string(kind) == "response.output_text.delta", string(kind) == "response.refusal.delta":
		p.text = delta
	default:
		k.err = errToolCall
	}
	return p, c.Done()
}

// keepMessages finds what an event of the Messages API adds.
func keepMessages(k *kept, data []byte) (p pieces, ok bool) {
	c := jsonscan.New(data)
	for more := c.Open('{'); more; more = c.More('}') {
		if string(c.LowerKey()) != "delta" || c.Peek() != '{' {
			c.Skip()
			continue
		}
		for more := c.Open('{'); more; more = c.More('}') {
			switch string(c.LowerKey()) {
			case "text":
				p.text = k.scanText(&c)
			case "thinking":
				p.reasoning = k.scanText(&c)
			case "partial_json":
				if c.Skip() {
					k.err = errToolCall
				}
			default:
				c.Skip()
			}
		}
	}
	return p, c.Done()
}

// keepGenerated finds what an event of SGLang's API adds. An event has all token ids,
// or the new ones, and all text, or the new one: with all of them, the number of ids is
// that of the tokens so far, and the text begins with that before.
func keepGenerated(k *kept, data []byte) (p pieces, ok bool) {
	c := jsonscan.New(data)
	before := len(k.ids)
	var count tokenCount
	for more := c.Open('{'); more; more = c.More('}') {
		switch key := c.LowerKey(); {
		case string(key) == "output_ids" && k.wantIDs:
			k.addIDs(&c)
		case string(key) == "text" && !k.wantIDs:
			p.text = k.scanText(&c)
		case string(key) == "meta_info":
			scanCompletion(&c, &count)
		default:
			c.Skip()
		}
	}
	if !c.Done() { // an error, or no tokens
		k.ids = k.ids[:before]
		return pieces{}, true
	}
	if added := len(k.ids) - before; before > 0 && added == int(count.Value) {
		k.ids = append(k.ids[:0], k.ids[before:]...)
	}
	p.text = k.newText(p.text)
	return p, true
}

// newText returns what is new in the text of an event. Whether events have all of it
// shows at the first that is longer.
func (k *kept) newText(text []byte) []byte {
	switch whole := bytes.HasPrefix(text, k.text); {
	case len(k.text) == 0 || !whole && !k.repeats:
		return text
	case !whole: // it ended within a character
		k.text, k.pieces, k.textPieces = k.text[:0], k.pieces[:0], 0
		return text
	case !k.repeats && k.textPieces > 1:
		return text
	}
	k.repeats = len(text) > len(k.text)
	return text[len(k.text):]
}

// scanCompletion reads the number of generated tokens in meta_info.
func scanCompletion(c *jsonscan.Cursor, count *tokenCount) {
	if null(c) {
		return
	}
	for more := c.Open('{'); more; more = c.More('}') {
		if string(c.LowerKey()) == "completion_tokens" {
			scanCount(c, count)
			continue
		}
		c.Skip()
	}
}
