package capture

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1"
	"moontide/trace"
	"moontide/trace/log"
)

// hash queues the body of a request for hashing.
func (p *Proxy) hash(e *exchange) {
	select {
	case p.toHash <- e:
	default:
		e.noBlocks = noMemory
		p.hashed(e)
	}
}

// hashed ends the first half of an exchange, with or without block ids.
func (p *Proxy) hashed(e *exchange) {
	e.body.drop("")
	if e.turn == nil {
		p.join(e)
	}
	p.half(e)
}

// half ends a half of an exchange and, if it was the last, queues the exchange for its
// row. It never blocks, because the traffic would wait.
func (p *Proxy) half(e *exchange) {
	if e.halves.Add(-1) > 0 {
		return
	}
	select {
	case p.toRecord <- e:
	default:
		e.conclude()
		p.counts.lose(slow, 1, nil)
		p.open.Done()
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

func (p *Proxy) hashAll() {
	read := log.NewReader(p.cfg.Config)
	for e := range p.toHash {
		if e.noBlocks == "" {
			e.noBlocks = failed // if it panics
			p.guard(func() { e.noBlocks = p.hashBody(e, read) })
		}
		p.hashed(e)
	}
}

// hashBody computes the block ids of a request and finds its session, or returns why not.
func (p *Proxy) hashBody(e *exchange, read *log.Reader) gap {
	if e.bodyCoding != "" && !strings.EqualFold(e.bodyCoding, "identity") {
		if why := e.inflateBody(); why != "" {
			return why
		}
	}
	work := 2 * len(e.body.bytes) // its texts and their tokens
	if !p.memory.take(work) {
		return noMemory
	}
	defer p.memory.give(work)
	c, err := read.Read(e.endpoint, e.body.bytes)
	e.call = c
	switch {
	case err == log.ErrNotJSON:
		return unreadable
	case err == log.ErrBatch:
		return batch
	case err != nil:
		return failed
	}
	if c.Session != "" {
		e.sessionName = p.keys.Sessions.Name(c.Session)
	}
	e.blocks = read.Hash(c)
	p.join(e)
	return ""
}

// inflateBody decompresses the body.
func (e *exchange) inflateBody() gap {
	if !strings.EqualFold(e.bodyCoding, "gzip") {
		return encoded
	}
	z := http1.NewInflater()
	defer z.Close()
	plain := buffer{memory: e.body.memory, most: e.body.most}
	ok := inflate(z, e.body.bytes, true, func(b []byte) bool { plain.write(b); return plain.dropped == "" })
	if !ok && plain.dropped == "" {
		plain.drop(unreadable)
	}
	e.body.drop("")
	e.body = plain
	return plain.dropped
}

// join adds the request to its session. A request without a session name and a prompt
// begins a session of its own.
func (p *Proxy) join(e *exchange) {
	at := strconv.FormatInt(e.arrived.UnixNano(), 36) + " " + strconv.FormatUint(p.counts.turns.Add(1), 36)
	t := &log.Turn{ID: p.keys.Requests.Name(at), Arrived: e.arrived}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions.Join(t, e.sessionName, e.blocks, p.keys.Sessions.Name(at))
	if e.turn = t; e.over {
		t.Ended = e.ended
	}
	e.sampledOut = !p.sampled(t.Session())
}

// recordAll writes the rows of exchanges. It continues after an error, because the disk
// may have room again.
func (p *Proxy) recordAll() {
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	pending := 0 // rows since the last flush
	settle := func() {
		if err := p.out.Flush(); err != nil {
			p.counts.lose(writing, pending, err)
		} else {
			p.counts.add(func(sum *Counts) { sum.Rows += int64(pending) })
		}
		pending = 0
	}
	for {
		select {
		case e, more := <-p.toRecord:
			if !more {
				settle()
				return
			}
			row, ok := p.record(e)
			if !ok {
				continue
			}
			if err := p.out.Write(row); err != nil {
				p.counts.lose(writing, 1, err)
				settle()
				continue
			}
			pending++
		case <-flush.C:
			settle()
		}
	}
}

// record concludes an exchange and returns its row, if it has one.
func (p *Proxy) record(e *exchange) (row trace.Request, ok bool) {
	defer p.open.Done()
	e.conclude()
	if e.sampledOut {
		return row, false
	}
	if !p.guard(func() { row = p.row(e) }) {
		p.counts.lose(failed, 1, nil)
		return row, false
	}
	return row, true
}

func (p *Proxy) row(e *exchange) trace.Request {
	x := log.Exchange{Turn: e.turn, Call: e.call, Blocks: e.blocks, Accepted: e.status == http.StatusOK}
	if e.noBlocks != "" {
		x.Blocks = nil
		p.counts.add(func(sum *Counts) { sum.NoBlocks[string(e.noBlocks)]++ })
	}
	seen := &e.seen
	x.Input, x.Output = trace.Opt[int](seen.Counts.Input), trace.Opt[int](seen.Counts.Output)
	if x.Blocks != nil && x.Input.Set {
		if bytes, ok := e.call.TextLength(); ok {
			p.counts.add(func(sum *Counts) {
				sum.PromptBytes += int64(bytes)
				sum.PromptTokens += int64(min(x.Input.Value, trace.MaxLength))
			})
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

// recorded returns the outcome and the times of the answer.
func (p *Proxy) recorded(e *exchange) log.Recorded {
	e2el := log.Milliseconds(e.ended.Sub(e.arrived))
	streamed := e.streamed
	r := log.Recorded{API: e.endpoint, Stream: &streamed, Outcome: outcome(e.class), Status: e.status, E2EL: &e2el}
	if !e.seen.First.IsZero() {
		ttft := log.Milliseconds(e.seen.First.Sub(e.arrived))
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
		return log.OK
	}
	return string(c)
}
