package capture

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"moontide/replay"
	"moontide/trace"
)

// hash queues the body of a request for hashing.
func (p *Proxy) hash(e *exchange) {
	select {
	case p.toHash <- e:
	default:
		e.body.drop(noMemory)
		e.noBlocks = noMemory
		p.half(e)
	}
}

// half records an exchange of which both halves have ended.
func (p *Proxy) half(e *exchange) {
	if e.halves.Add(-1) == 0 {
		p.record(e)
	}
}

// answered ends the second half of an exchange.
func (p *Proxy) answered(e *exchange) {
	p.mu.Lock()
	if e.over = true; e.turn != nil {
		e.turn.ended = e.ended
	}
	p.mu.Unlock()
	p.half(e)
}

// hashAll hashes bodies until there are no more.
func (p *Proxy) hashAll() {
	read := reader{encode: p.cfg.Encoder}
	ids := newChain(p.keys.blocks)
	for e := range p.toHash {
		if e.noBlocks == "" {
			e.noBlocks = failed // unless it returns
			p.guard(func() { e.noBlocks = p.hashBody(e, &read, ids) })
		}
		e.body.drop("")
		if e.turn == nil {
			p.join(e, hashed{})
		}
		p.half(e)
	}
}

// hashBody finds the block ids and the session of a request, or returns why not.
func (p *Proxy) hashBody(e *exchange, read *reader, ids *chain) gap {
	if e.bodyCoding != "" && e.bodyCoding != "identity" {
		return encoded
	}
	c, err := read.read(e.endpoint, e.body.bytes, p.cfg.SessionField)
	e.call = c
	switch {
	case err == errNotJSON:
		return unreadable
	case err == errBatch:
		return batch
	case err != nil:
		return failed
	}
	if c.session != "" {
		e.sessionName = p.keys.sessions.nameOf(c.session)
	}
	content := c.prompt.content
	bytes := p.blockBytes(&c.prompt)
	e.blocks = ids.hash(fmt.Sprintf("%s %d %q %q", c.prompt.kind(), bytes, p.cfg.EncoderID, c.model), content, bytes)
	p.join(e, hashed{content, bytes, append([]uint64{e.blocks.scope}, e.blocks.ids[:e.blocks.full]...)})
	c.length = len(content) / c.prompt.unit()
	c.prompt.content = nil
	return ""
}

// blockBytes returns the number of bytes of a block.
func (p *Proxy) blockBytes(of *prompt) int {
	if of.tokens {
		return of.unit() * p.cfg.BlockSize
	}
	return max(1, int(math.Round(p.cfg.BytesPerToken*float64(p.cfg.BlockSize))))
}

// join adds the request to its session. Without a name and a prompt it is a session of
// its own.
func (p *Proxy) join(e *exchange, of hashed) {
	at := strconv.FormatInt(e.arrived.UnixNano(), 36) + " " + strconv.FormatUint(p.counts.turns.Add(1), 36)
	t := &turn{id: p.keys.requests.nameOf(at), arrived: e.arrived}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.sessionName != "":
		p.sessions.byName(e.sessionName, t)
	case len(of.ids) > 0:
		p.sessions.byPrompt(of, p.keys.sessions.nameOf(at), t)
	default:
		t.join(&session{name: p.keys.sessions.nameOf(at)}, nil)
	}
	if e.turn = t; e.over {
		t.ended = e.ended
	}
	e.sampledOut = p.cfg.SampleOneIn > 1 && !p.keys.sessions.oneIn(t.session.name, p.cfg.SampleOneIn)
}

// record queues the row of an exchange.
func (p *Proxy) record(e *exchange) {
	defer p.open.Done()
	p.counts.ended(e)
	if e.sampledOut {
		p.memory.give(e.held)
		return
	}
	var row trace.Request
	ok := p.guard(func() { row = p.row(e) })
	p.memory.give(e.held)
	if !ok {
		p.counts.lose(failed)
		return
	}
	select {
	case p.toWrite <- row:
	default:
		p.counts.lose(slow)
	}
}

// writeAll writes rows until there are no more. After an error it goes on, for the disk
// may have room again.
func (p *Proxy) writeAll() {
	for row := range p.toWrite {
		if err := p.out.Write(row); err != nil {
			p.counts.writeFailed(err)
			continue
		}
		p.counts.rows.Add(1)
	}
}

// row returns the row of an exchange.
func (p *Proxy) row(e *exchange) trace.Request {
	r := trace.Request{
		Timestamp: trace.Some(milliseconds(e.arrived.Sub(p.start))),
		SessionID: e.turn.session.name,
		ID:        e.turn.id,
		After:     e.turn.after,
	}
	if d := e.turn.delay; d.Set {
		r.Delay = trace.Some(milliseconds(d.Value))
	}
	var m marks
	p.setLengths(&r, e, &m)
	if e.noBlocks == "" {
		if !e.call.prompt.exact {
			m.estimated = append(m.estimated, "hash_ids")
		}
		count := (r.InputLength + p.cfg.BlockSize - 1) / p.cfg.BlockSize
		r.HashIDs = e.blocks.fit(p.keys.blocks, count)
	} else {
		p.counts.lackBlocks(e.noBlocks)
	}
	r.Extra = p.extra(e, m)
	return r
}

// marks name the lengths of a row that are not known exactly.
type marks struct{ estimated, missing []string }

// setLengths sets ISL and OSL: as the server counts them, or else as the tokens of the
// texts, or else an estimate.
func (p *Proxy) setLengths(r *trace.Request, e *exchange, m *marks) {
	switch counts := e.seen.Counts; {
	case counts.Input.Set:
		r.InputLength = min(counts.Input.Value, trace.MaxLength)
		if e.noBlocks == "" && !e.call.prompt.tokens {
			p.counts.measured(e.call.length, r.InputLength)
		}
	case e.noBlocks != "":
		m.missing = append(m.missing, "input_length")
	case e.call.prompt.tokens:
		r.InputLength = min(e.call.length, trace.MaxLength)
		if !e.call.prompt.exact {
			m.estimated = append(m.estimated, "input_length")
		}
	default:
		r.InputLength = min(int(math.Ceil(float64(e.call.length)/p.cfg.BytesPerToken)), trace.MaxLength)
		m.estimated = append(m.estimated, "input_length")
	}
	switch seen := &e.seen; {
	case seen.Counts.Output.Set:
		r.OutputLength = min(seen.Counts.Output.Value, trace.MaxLength)
	case seen.Chunks > 0:
		r.OutputLength = min(p.textTokens(seen.Text, seen.Chunks), trace.MaxLength)
		m.estimated = append(m.estimated, "output_length")
	case e.class != replay.OK: // it has none
	default:
		m.missing = append(m.missing, "output_length")
	}
	e.seen.Text = ""
}

// textTokens returns the number of tokens of a text, or else that of the chunks that it
// came in.
func (p *Proxy) textTokens(text string, chunks int) int {
	if text == "" || p.cfg.Encoder == nil {
		return chunks
	}
	ids, err := p.cfg.Encoder.Append(nil, text)
	if err != nil {
		return chunks
	}
	return len(ids)
}

// milliseconds returns a time in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }
