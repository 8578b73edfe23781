package capture

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1"
	"moontide/trace"
	"moontide/trace/log"
)

// hash queues the body of a request for hashing.
func (e *exchange) hash() {
	select {
	case e.proxy.toHash <- e:
	default:
		e.noBlocks = noMemory
		e.hashed()
	}
}

// hashed ends the first half of an exchange, with or without block ids.
func (e *exchange) hashed() {
	e.body.drop("")
	if e.turn == nil {
		e.join()
	}
	e.endHalf()
}

// endHalf ends a half of an exchange and, if it was the last, queues the exchange for its
// row. It never blocks, because the traffic would wait.
func (e *exchange) endHalf() {
	if e.openHalves.Add(-1) > 0 {
		return
	}
	select {
	case e.proxy.toRecord <- e:
	default:
		e.conclude()
		e.proxy.lose(slow, 1, nil)
		e.proxy.open.Done()
	}
}

func (p *Proxy) hashAll() {
	read := log.NewReader(p.cfg.Config)
	for e := range p.toHash {
		if e.noBlocks == "" {
			e.noBlocks = failed // if it panics
			p.guard(func() { e.noBlocks = e.hashBody(read) })
		}
		e.hashed()
	}
}

// hashBody computes the block ids of a request and finds its session, or returns why not.
func (e *exchange) hashBody(read *log.Reader) (why gap) {
	if e.bodyCoding != "" && !strings.EqualFold(e.bodyCoding, "identity") {
		if why := e.inflateBody(); why != "" {
			return why
		}
	}
	work := 2 * len(e.body.bytes) // its texts and their tokens
	if !e.proxy.memory.take(work) {
		return noMemory
	}
	defer e.proxy.memory.give(work)
	var err error
	switch e.call, err = read.Read(e.endpoint, e.body.bytes); {
	case err == log.ErrNotJSON:
		return unreadable
	case err == log.ErrBatch:
		return batch
	case err != nil:
		return failed
	}
	if e.call.Session != "" {
		e.sessionName = e.proxy.keys.Sessions.Name(e.call.Session)
	}
	e.blocks = read.Hash(e.call)
	e.join()
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
func (e *exchange) join() {
	p := e.proxy
	unique := rand.Text()
	t := &log.Turn{ID: p.keys.Requests.Name(unique), Arrived: e.arrived}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions.Join(t, e.sessionName, e.blocks, p.keys.Sessions.Name(unique))
	if e.turn = t; e.responseOver {
		t.Ended = e.ended
	}
	e.sampledOut = !p.sampled(t.Session())
}

// recordAll writes the rows of exchanges. It continues after an error, because the disk
// may have room again.
func (p *Proxy) recordAll() {
	ticks := time.NewTicker(flushEvery)
	defer ticks.Stop()
	pending := 0 // rows since the last flush
	flush := func() {
		if err := p.out.Flush(); err != nil {
			p.lose(writing, pending, err)
		} else {
			p.count(func(sum *Counts) { sum.Rows += int64(pending) })
		}
		pending = 0
	}
	defer flush()
	for {
		select {
		case e, more := <-p.toRecord:
			if !more {
				return
			}
			row, ok := e.record()
			if !ok {
				continue
			}
			pending++
			if err := p.out.Write(row); err != nil {
				pending--
				p.lose(writing, 1, err)
				flush()
			}
		case <-ticks.C:
			flush()
		}
	}
}

// record concludes an exchange and returns its row, if it has one.
func (e *exchange) record() (row trace.Request, ok bool) {
	defer e.proxy.open.Done()
	e.conclude()
	if e.sampledOut {
		return row, false
	}
	if ok = e.proxy.guard(func() { row = e.row() }); !ok {
		e.proxy.lose(failed, 1, nil)
	}
	return row, ok
}

func (e *exchange) row() trace.Request {
	p, observed := e.proxy, &e.observed
	x := log.Exchange{Turn: e.turn, Call: e.call, Blocks: e.blocks, Accepted: e.status == http.StatusOK, Input: observed.Counts.Input, Output: observed.Counts.Output}
	if e.noBlocks != "" {
		x.Blocks = nil
		p.count(func(sum *Counts) { sum.NoBlocks[string(e.noBlocks)]++ })
	}
	if x.Blocks != nil && x.Input.Set {
		if bytes, ok := e.call.TextLength(); ok {
			p.count(func(sum *Counts) {
				sum.PromptBytes += int64(bytes)
				sum.PromptTokens += int64(min(x.Input.Value, trace.MaxLength))
			})
		}
	}
	if observed.Chunks > 0 && !x.Output.Set {
		x.TextTokens = trace.Some(observed.Chunks)
		if n, ok := p.cfg.Tokens(observed.Text); ok {
			x.TextTokens.Value = n
		}
	}
	observed.Text = ""
	e2el := log.Milliseconds(e.ended.Sub(e.arrived))
	x.Recorded = log.Recorded{API: e.endpoint, Stream: &e.streamed, Outcome: outcome(e.class), Status: e.status, E2EL: &e2el}
	if !observed.First.IsZero() {
		ttft := log.Milliseconds(observed.First.Sub(e.arrived))
		x.TTFT = &ttft
	}
	if n := observed.Counts.Cached; n.Set {
		x.Cached = &n.Value
	}
	if n := observed.Counts.Reasoning; n.Set {
		x.Reasoning = &n.Value
	}
	return p.rows.Row(&x)
}

func outcome(c replay.Class) string {
	if c == replay.OK {
		return log.OK
	}
	return string(c)
}
