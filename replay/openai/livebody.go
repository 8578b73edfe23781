package openai

import (
	"fmt"
	"strings"

	"moontide/replay/prompt"
	"moontide/replay/transcript"
	"moontide/trace/block"
)

// part is a stretch of the trace's tokens in a prompt, and the answer that follows it.
type part struct {
	segments []transcript.Segment // of the trace's tokens
	tokens   int                  // of the segments
	of       *entry               // the row whose tokens are the last ones
	answer   int                  // tokens of the answer to that row that follow; 0 for the last part
	dropped  int                  // tokens of the answer before these
	text     []byte               // of the answer; nil for token ids
	extra    int                  // tokens added after the segments; if negative, those of them not sent
}

// partsOf returns the parts of a prompt. All but the last are as they were sent.
func (c *Client) partsOf(e *entry) (parts []part, err error) {
	var p part
	for g := range e.Prompt.Segments() {
		if g.Kind != transcript.Reply {
			p.segments = append(p.segments, g)
			p.tokens += g.Len
			continue
		}
		if p.of = e.Find(int(g.ID)); p.of == nil {
			return nil, fmt.Errorf("the answer to row %d is not known", g.ID)
		}
		if err := p.of.Answer.err; err != nil {
			return nil, fmt.Errorf("an earlier answer cannot be carried into this turn: %w", err)
		}
		p.answer, p.dropped, p.extra = g.Len, g.From, p.of.Answer.sent.extra
		if c.cfg.Prompt != Tokens {
			p.text = p.of.Answer.beginning(g.Len)
		}
		parts = append(parts, p)
		p = part{}
	}
	p.of = e
	return append(parts, p), nil
}

// fit makes the last part as long as it takes for the prompt to have its length, and
// returns what the server counts. See the package comment.
func (c *Client) fit(e *entry, parts []part) (counted int) {
	last := len(parts) - 1
	want, before := e.Prompt.Len, c.template.Value+last*c.moreTemplate()
	if want == 0 {
		return before
	}
	if !c.cfg.ExactISL {
		want += before
	}
	for _, p := range parts[:last] {
		before += max(p.tokens+p.extra, 0) + p.answer
	}
	if e.Turn.Relation == block.Extends && e.Turn.Answer > 0 {
		before = e.Base.Answer.sent.length + parts[last-1].answer + c.moreTemplate()
	}
	own := max(want-before, 1)
	parts[last].extra = own - parts[last].tokens
	return before + own
}

// moreTemplate returns how many tokens the template adds for an answer and what
// follows it.
func (c *Client) moreTemplate() int {
	if c.live == nil {
		return 0
	}
	return c.live.more.Value
}

// eachOf calls add with the content of a part, in order and without the answer.
func (c *Client) eachOf(e *entry, p *part, add func(prompt.Prompt)) {
	left := p.tokens + p.extra
	for _, g := range p.segments {
		if g.Len = min(g.Len, left); g.Len <= 0 {
			return
		}
		left -= g.Len
		covered := 0
		if g.Kind == transcript.Own {
			covered = e.Find(int(g.ID)).Prompt.Covered()
		}
		add(c.cfg.Source.Segment(g, covered))
	}
	if left > 0 {
		row := p.of.Prompt
		from := max(row.Len, row.Covered())
		add(c.cfg.Source.Segment(transcript.Segment{Source: transcript.Source{Kind: transcript.Own, ID: uint64(row.Row), From: from}, Len: left}, row.Covered()))
	}
}

// appendParts appends the member of a prompt with answers.
func (c *Client) appendParts(body []byte, e *entry, parts []part) []byte {
	if c.api.messages != "" {
		return c.appendTurns(body, e, parts)
	}
	return append(c.appendIDs(append(body, c.api.ids...), e, parts), c.api.after...)
}

// appendIDs appends the token ids of a prompt.
func (c *Client) appendIDs(body []byte, e *entry, parts []part) []byte {
	start := len(body)
	join := func(add func([]byte) []byte) {
		if len(body) == start {
			body = add(body)
			return
		}
		at := len(body) - 1
		body = add(body[:at])
		body[at] = ','
	}
	for i := range parts {
		p := &parts[i]
		c.eachOf(e, p, func(g prompt.Prompt) { join(g.AppendJSONTokens) })
		if p.answer > 0 {
			ids := p.of.Answer.ids[p.dropped:][:p.answer]
			join(func(b []byte) []byte { return prompt.AppendJSONIDs(b, ids) })
		}
	}
	return body
}

// appendText appends the text of a part, without that of the answer.
func (c *Client) appendText(body []byte, e *entry, p *part) []byte {
	start := len(body)
	c.eachOf(e, p, func(g prompt.Prompt) {
		if len(body) > start {
			body = append(body, ' ')
		}
		body = g.AppendText(body)
	})
	return body
}

// appendTurns appends alternating messages of the user and of the assistant.
func (c *Client) appendTurns(body []byte, e *entry, parts []part) []byte {
	body = fmt.Appendf(body, `,%q:[`, c.api.messages)
	for i := range parts {
		p := &parts[i]
		body = append(body, `{"role":"user","content":"`...)
		body = append(c.appendText(body, e, p), `"}`...)
		if i < len(parts)-1 {
			body = append(body, ',')
			body = append(appendMessage(body, p.text), ',')
		}
	}
	return append(body, ']')
}

// appendMessage appends the message of an answer, or of its beginning.
func appendMessage(body, text []byte) []byte {
	return append(append(append(body, `{"role":"assistant","content":"`...), text...), `"}`...)
}

// beginning returns the first tokens of an answer as text, which are taken to have the
// same number of bytes.
func (a *reply) beginning(tokens int) (text []byte) {
	if tokens >= a.tokens {
		return a.text
	}
	_, whole, _ := checked(a.text)
	return wholeCharacters(a.text[:len(a.text)*tokens/a.tokens], whole)
}

// wholeCharacters removes what is left of a character, or of its escape, from the end of
// a beginning of text that says whole.
func wholeCharacters(text []byte, whole string) []byte {
	const longest = len(`\ud83d\ude0`)
	for range longest {
		_, said, err := checked(text)
		if err == nil && strings.HasPrefix(whole, said) || len(text) == 0 {
			return text
		}
		text = text[:len(text)-1]
	}
	return nil
}
