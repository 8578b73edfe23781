package openai

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"moontide/trace/jsonscan"
)

// maxKeptAnswer limits what is kept of one answer, in bytes.
const maxKeptAnswer = 16 << 20

// kept collects what later turns need of an answer as its events arrive. It allocates
// only to grow its buffers.
type kept struct {
	wantIDs         bool     // token ids, else text
	ids             []uint32 // all
	text, reasoning []byte   // visible text and reasoning, escaped for JSON
	pieces          []byte   // lengths of the pieces of text, as varints
	textPieces      int
	reasoningPieces int
	repeats         bool  // events have the whole text so far
	err             error // why the answer cannot be kept
}

// pieces of an answer in one event. They are parts of the event.
type pieces struct {
	text, reasoning []byte
}

// The reasons why an answer cannot be kept.
var (
	errKeptTooLong = fmt.Errorf("the answer takes more than %d MiB", maxKeptAnswer>>20)
	errToolCall    = errors.New("the answer calls a tool, and the turn has no result of that call")
	errNoIDs       = errors.New("the answer has token ids that are not 32-bit unsigned integers")
	errNoText      = errors.New("the answer has content that is not text")
)

// take keeps what an event adds.
func (k *kept) take(a *api, data []byte) {
	if k.err != nil {
		return
	}
	before := len(k.ids)
	p, ok := a.keep(k, data)
	if !ok {
		k.ids = k.ids[:before]
		p = k.decode(a, data)
	}
	if len(p.text) > 0 {
		k.text = append(k.text, p.text...)
		k.pieces = binary.AppendUvarint(k.pieces, uint64(len(p.text)))
		k.textPieces++
	}
	if len(p.reasoning) > 0 {
		k.reasoning = append(k.reasoning, p.reasoning...)
		k.reasoningPieces++
	}
	if len(k.text)+len(k.reasoning)+4*len(k.ids) > maxKeptAnswer && k.err == nil {
		k.err = errKeptTooLong
	}
	if k.err != nil {
		k.ids, k.text, k.reasoning, k.pieces = nil, nil, nil, nil
	}
}

// decode handles an event of an unusual form, which only events with choices can have.
func (k *kept) decode(a *api, data []byte) (p pieces) {
	if !a.hasChoices() {
		return p
	}
	c := chunks.Get().(*chunk)
	defer chunks.Put(c)
	if c.decode(data) != nil || len(c.Choices) == 0 {
		return p
	}
	choice := &c.Choices[0]
	d := &choice.Delta
	if ids := jsonscan.New(choice.TokenIDs); k.wantIDs && nonEmpty(choice.TokenIDs) {
		if k.addIDs(&ids); !ids.Done() {
			k.err = errNoIDs
		}
		return p
	}
	for _, content := range [...]raw{choice.Text, d.Content, d.Refusal} {
		p.text = joined(p.text, k.textOf(content))
	}
	for _, reasoning := range [...]raw{d.ReasoningContent, d.Reasoning, d.Thinking} {
		p.reasoning = joined(p.reasoning, k.textOf(reasoning))
	}
	if nonEmpty(d.ToolCalls) {
		k.err = errToolCall
	}
	return p
}

func joined(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return append(a[:len(a):len(a)], b...)
}

// textOf returns what is between the quotes of a string.
func (k *kept) textOf(value raw) []byte {
	switch {
	case !nonEmpty(value):
		return nil
	case value[0] != '"':
		k.err = errNoText
		return nil
	}
	return value[1 : len(value)-1]
}

// scanText reads a string or null. Anything else cannot be kept.
func (k *kept) scanText(c *jsonscan.Cursor) []byte {
	if c.Peek() == '"' {
		return c.Text()
	}
	if c.Skip() {
		k.err = errNoText
	}
	return nil
}

// addIDs reads an array of token ids.
func (k *kept) addIDs(c *jsonscan.Cursor) {
	if null(c) {
		return
	}
	for more := c.Open('['); more; more = c.More(']') {
		k.ids = append(k.ids, uint32(c.Int(math.MaxUint32)))
	}
}

// keepChoices finds what an event of chat or completions adds. It fails where
// scanChunk does.
func keepChoices(k *kept, data []byte) (p pieces, ok bool) {
	c := jsonscan.New(data)
	for more := c.Open('{'); more; more = c.More('}') {
		if string(c.LowerKey()) != "choices" || c.Peek() != '[' {
			c.Skip()
			continue
		}
		for more := c.Open('['); more; more = c.More(']') {
			for more := c.Open('{'); more; more = c.More('}') {
				switch string(c.LowerKey()) {
				case "text":
					if k.wantIDs {
						c.Skip()
						continue
					}
					p.text = k.scanText(&c)
				case "delta":
					k.keepDelta(&c, &p)
				case "token_ids":
					if !k.wantIDs {
						c.Skip()
						continue
					}
					k.addIDs(&c)
				default:
					c.Skip()
				}
			}
		}
	}
	return p, c.Done()
}

func (k *kept) keepDelta(c *jsonscan.Cursor, p *pieces) {
	if null(c) {
		return
	}
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.LowerKey()) {
		case "content", "refusal":
			p.text = joined(p.text, k.scanText(c))
		case "reasoning_content", "reasoning", "thinking":
			p.reasoning = joined(p.reasoning, k.scanText(c))
		case "tool_calls":
			if c.Skip() {
				k.err = errToolCall
			}
		default:
			c.Skip()
		}
	}
}
