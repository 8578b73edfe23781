package openai

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

// appendRow appends the prompt of a row. It returns nil unless answers are live and the
// row waits for others or others for it.
func (c *Client) appendRow(body []byte, r trace.Request, row int) ([]byte, *continued, error) {
	e, t := c.open(r, row)
	if e == nil {
		body, err := c.appendPlain(body, r, row, c.exactLength(r.InputLength))
		return body, nil, err
	}
	body, err := c.appendLive(body, r, e, t)
	if err != nil && !errors.Is(err, replay.ErrOutgrown) { // which the caller reports to Forget
		c.live.book.Drop(row)
	}
	return body, t, err
}

// appendPlain appends a prompt without answers, of the given length unless the row has
// its own text.
func (c *Client) appendPlain(body []byte, r trace.Request, row, length int) ([]byte, error) {
	if !c.hasOwnText(r) {
		if err := c.outgrown(r, row, length+c.template.Value); err != nil {
			return nil, err
		}
	}
	r.InputLength = length
	return c.appendPrompt(body, r, c.cfg.Source.Prompt(r, row))
}

// appendLive appends the prompt of a row that may have answers.
func (c *Client) appendLive(body []byte, r trace.Request, e *entry, t *continued) ([]byte, error) {
	if c.hasOwnText(r) {
		return c.appendOwn(body, r, e, t)
	}
	if t.unchanged = e.Base != nil && e.Base.Answer.sent.text; t.unchanged {
		t.sent.text = true
		return c.appendPlain(body, r, t.row, c.exactLength(r.InputLength))
	}
	if e.Base != nil {
		t.base = replay.Base{Row: trace.Some(e.Base.Prompt.Row), Answer: e.Base.Generated}
	}
	parts, err := c.partsOf(e)
	if err != nil {
		return nil, err
	}
	t.sent.length = c.fit(e, parts)
	last := &parts[len(parts)-1]
	t.sent.extra = last.extra
	if !e.Prompt.Live() {
		return c.appendPlain(body, r, t.row, last.tokens+last.extra)
	}
	if err := c.outgrown(r, t.row, t.sent.length); err != nil {
		return nil, err
	}
	return c.appendParts(body, e, parts), nil
}

// appendOwn appends the text or the messages of a row, with the answers that these
// hold replaced.
func (c *Client) appendOwn(body []byte, r trace.Request, e *entry, t *continued) ([]byte, error) {
	t.sent.text = true
	t.unchanged = e.Base != nil
	array, chat := r.Raw("messages")
	if chat && c.api.messages != "" {
		m := messagesOf(array)
		t.sent.own, t.sent.ownLen = m.hash(), len(m.list)
		array, err := continueMessages(m, e)
		if err != nil {
			return nil, err
		}
		if array != "" {
			t.unchanged, t.base = false, replay.Base{Row: trace.Some(e.Base.Prompt.Row), Answer: e.Base.Generated}
			return append(fmt.Appendf(body, `,%q:`, c.api.messages), array...), nil
		}
	}
	return c.appendPlain(body, r, t.row, r.InputLength)
}

// hasOwnText reports whether a row has text that is sent instead of a prompt made for
// it.
func (c *Client) hasOwnText(r trace.Request) bool {
	_, isText := ownText(r)
	if !isText && c.api.messages != "" {
		_, isText = r.Raw("messages")
	}
	return isText
}

// outgrown returns an error if a later turn does not fit the model's context. counted
// is the length of its prompt.
func (c *Client) outgrown(r trace.Request, row, counted int) error {
	limit, output := c.contexts[c.modelOf(r, row)], max(r.OutputLength, 1)
	if limit == 0 || counted+output <= limit || len(c.cfg.Graph.Before(row)) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d prompt tokens and %d output tokens exceed the context of %d", replay.ErrOutgrown, counted, output, limit)
}

// ownMessages are the messages of a row, and hashes of their beginnings.
type ownMessages struct {
	list   [][]byte
	hashes []uint64 // of the first 0, 1, ... messages
}

func messagesOf(array string) (m ownMessages) {
	var d xxhash.Digest
	d.Reset()
	m.hashes = append(m.hashes, d.Sum64())
	jsonscan.Elements([]byte(array), func(_ int, message []byte) error {
		m.list = append(m.list, message)
		d.Write(message)
		d.WriteString(",")
		m.hashes = append(m.hashes, d.Sum64())
		return nil
	})
	return m
}

// hash identifies all messages.
func (m *ownMessages) hash() uint64 { return m.hashes[len(m.list)] }

// continueMessages replaces the assistant's messages that follow the messages of an
// earlier row by the answer to that row. A message that calls
// tools stays, because the results follow it. It returns the messages as an array,
// or "" if the messages continue those of no earlier row.
func continueMessages(m ownMessages, e *entry) (array string, err error) {
	some := false
	for base := e.Base; base != nil; base = base.Base {
		sent := &base.Answer.sent
		at := sent.ownLen
		if at == 0 || at >= len(m.list) || m.hashes[at] != sent.own || !plainAnswer(m.list[at]) {
			continue
		}
		if base.Answer.err != nil {
			return "", fmt.Errorf("an earlier answer cannot be carried into this turn: %w", base.Answer.err)
		}
		m.list[at], some = appendMessage(nil, base.Answer.text), true
	}
	if !some {
		return "", nil
	}
	body := []byte{'['}
	for i, message := range m.list {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, message...)
	}
	return string(append(body, ']')), nil
}

// plainAnswer reports whether a message is the assistant's and calls no tool.
func plainAnswer(message []byte) bool {
	var m struct {
		Role  string `json:"role"`
		Calls raw    `json:"tool_calls"`
	}
	return jsonscan.Strict.Unmarshal(message, &m) == nil && m.Role == "assistant" && (len(m.Calls) == 0 || slices.Contains([]string{"null", "[]", `""`}, string(bytes.TrimSpace(m.Calls))))
}
