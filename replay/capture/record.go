package capture

import (
	"net/http"
	"strconv"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/record"
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
		e.turn.Ended = e.ended
	}
	p.mu.Unlock()
	p.half(e)
}

// hashAll hashes bodies until there are no more.
func (p *Proxy) hashAll() {
	read, ids := record.NewReader(p.cfg.Config), record.NewHasher(p.cfg.Config)
	for e := range p.toHash {
		if e.noBlocks == "" {
			e.noBlocks = failed // unless it returns
			p.guard(func() { e.noBlocks = p.hashBody(e, read, ids) })
		}
		e.body.drop("")
		if e.turn == nil {
			p.join(e)
		}
		p.half(e)
	}
}

// hashBody finds the block ids and the session of a request, or returns why not.
func (p *Proxy) hashBody(e *exchange, read *record.Reader, ids *record.Hasher) gap {
	if e.bodyCoding != "" && e.bodyCoding != "identity" {
		return encoded
	}
	c, err := read.Read(e.endpoint, e.body.bytes)
	e.call = c
	switch {
	case err == record.ErrNotJSON:
		return unreadable
	case err == record.ErrBatch:
		return batch
	case err != nil:
		return failed
	}
	if c.Session != "" {
		e.sessionName = p.keys.Sessions.Name(c.Session)
	}
	e.blocks = ids.Hash(c)
	p.join(e)
	return ""
}

// join adds the request to its session. Without a name and a prompt it is a session of
// its own.
func (p *Proxy) join(e *exchange) {
	at := strconv.FormatInt(e.arrived.UnixNano(), 36) + " " + strconv.FormatUint(p.counts.turns.Add(1), 36)
	t := &record.Turn{ID: p.keys.Requests.Name(at), Arrived: e.arrived}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions.Join(t, e.sessionName, e.blocks, p.keys.Sessions.Name(at))
	if e.turn = t; e.over {
		t.Ended = e.ended
	}
	e.sampledOut = p.cfg.SampleOneIn > 1 && !p.keys.Sessions.OneIn(t.Session(), p.cfg.SampleOneIn)
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
	x := record.Exchange{Turn: e.turn, Call: e.call, Blocks: e.blocks, Accepted: e.status == http.StatusOK}
	if e.noBlocks != "" {
		x.Blocks = nil
		p.counts.lackBlocks(e.noBlocks)
	}
	seen := &e.seen
	x.Input, x.Output = trace.Opt[int](seen.Counts.Input), trace.Opt[int](seen.Counts.Output)
	if x.Blocks != nil && x.Input.Set {
		if bytes, ok := e.call.TextLength(); ok {
			p.counts.measured(bytes, min(x.Input.Value, trace.MaxLength))
		}
	}
	if seen.Chunks > 0 && !x.Output.Set {
		x.TextTokens = trace.Some(seen.Chunks)
		if n, ok := p.cfg.Tokens(seen.Text); ok {
			x.TextTokens.Value = n
		}
	}
	seen.Text = ""
	x.Recorded = p.recorded(e)
	return p.rows.Row(&x)
}

// recorded returns what the row tells about the answer.
func (p *Proxy) recorded(e *exchange) record.Recorded {
	e2el := record.Milliseconds(e.ended.Sub(e.arrived))
	streamed := e.streamed
	r := record.Recorded{API: e.endpoint, Stream: &streamed, Outcome: outcome(e.class), Status: e.status, E2EL: &e2el}
	if !e.seen.First.IsZero() {
		ttft := record.Milliseconds(e.seen.First.Sub(e.arrived))
		r.TTFT = &ttft
	}
	if n := e.seen.Counts.Cached; n.Set {
		r.Cached = &n.Value
	}
	if n := e.seen.Counts.Reasoning; n.Set {
		r.Reasoning = &n.Value
	}
	return r
}

func outcome(c replay.Class) string {
	if c == replay.OK {
		return record.OK
	}
	return string(c)
}
