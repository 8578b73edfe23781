package openai

import (
	"cmp"
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
	textPieces      int      // events with text
	reasoningPieces int
	event           pieces // of the last event
	err             error  // why the answer cannot be kept
}

// The reasons why an answer cannot be kept.
var (
	errKeptTooLong = fmt.Errorf("the answer takes more than %d MiB", maxKeptAnswer>>20)
	errToolCall    = errors.New("the answer calls a tool, and the turn has no result of that call")
	errNoIDs       = errors.New("the answer has token ids that are not 32-bit unsigned integers")
	errNoText      = errors.New("the answer has content that is not text")
)

// pieces are what an event adds to the answer. They are parts of the event. A nil *pieces
// drops them.
type pieces struct {
	text, reasoning []byte          // escaped for JSON
	ids             jsonscan.Cursor // at an array of token ids, if hasIDs
	hasIDs          bool
	unkept          error // why an answer with the event cannot be kept as text
}

func (p *pieces) add(text, reasoning []byte, unkept error) {
	if p != nil {
		p.text, p.reasoning = joined(p.text, text), joined(p.reasoning, reasoning)
		p.unkept = cmp.Or(p.unkept, unkept)
	}
}

func joined(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return append(a[:len(a):len(a)], b...)
}

// scanString reads a string, or any other value, and reports whether it is a string or
// an array that is not empty.
func scanString(c *jsonscan.Cursor) (text []byte, nonEmpty bool) {
	if c.Peek() != '"' {
		return nil, c.Skip()
	}
	text = c.Text()
	return text, len(text) > 0
}

// scanText reads visible text and reports whether there is any.
func (p *pieces) scanText(c *jsonscan.Cursor) bool {
	text, nonEmpty := scanString(c)
	if nonEmpty {
		p.add(text, nil, notText(text))
	}
	return nonEmpty
}

// scanReasoning reads reasoning and reports whether there is any.
func (p *pieces) scanReasoning(c *jsonscan.Cursor) bool {
	text, nonEmpty := scanString(c)
	if nonEmpty {
		p.add(nil, text, notText(text))
	}
	return nonEmpty
}

// notText is the error of content of which text is not a part.
func notText(text []byte) error {
	if text == nil {
		return errNoText
	}
	return nil
}

// scanCall reads a call of a tool and reports whether there is one.
func (p *pieces) scanCall(c *jsonscan.Cursor) bool {
	called := c.Skip()
	if called {
		p.add(nil, nil, errToolCall)
	}
	return called
}

// scanIDs reads an array of token ids and returns its length.
func (p *pieces) scanIDs(c *jsonscan.Cursor) (n int) {
	if null(c) {
		return 0
	}
	ids := *c
	for more := c.Open('['); more; more = c.More(']') {
		c.Skip()
		n++
	}
	if n > 0 && p != nil {
		p.ids, p.hasIDs = ids, true
	}
	return n
}

// next returns the pieces for the next event, nil if the answer is not kept.
func (k *kept) next() *pieces {
	if k == nil || k.err != nil {
		return nil
	}
	k.event = pieces{}
	return &k.event
}

// take keeps the pieces of an event.
func (k *kept) take(info *chunkInfo) {
	switch {
	case k.err != nil:
		return
	case k.wantIDs:
		k.takeIDs(info)
	default:
		k.takeText()
	}
	if len(k.text)+len(k.reasoning)+4*len(k.ids) > maxKeptAnswer && k.err == nil {
		k.err = errKeptTooLong
	}
	if k.err != nil {
		k.ids, k.text, k.reasoning = nil, nil, nil
	}
}

// takeIDs keeps token ids. SGLang's own API may repeat all ids in each event; their
// number is then the token count.
func (k *kept) takeIDs(info *chunkInfo) {
	if !k.event.hasIDs {
		return
	}
	before, c := len(k.ids), &k.event.ids
	for more := c.Open('['); more; more = c.More(']') {
		k.ids = append(k.ids, uint32(c.Int(math.MaxUint32)))
	}
	if c.Failed() {
		k.err = errNoIDs
	}
	if added := len(k.ids) - before; info.counted && before > 0 && added == int(info.usage.output.Value) {
		k.ids = append(k.ids[:0], k.ids[before:]...)
	}
}

func (k *kept) takeText() {
	text, reasoning := k.event.text, k.event.reasoning
	if len(text) > 0 {
		k.text = append(k.text, text...)
		k.textPieces++
	}
	if len(reasoning) > 0 {
		k.reasoning = append(k.reasoning, reasoning...)
		k.reasoningPieces++
	}
	k.err = k.event.unkept
}
