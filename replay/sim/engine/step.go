package engine

import "time"

// begin schedules a step, as vLLM's V1 scheduler does: the running sequences in
// order of admission, then waiting requests while there are a place, tokens
// and blocks for them.
func (e *Engine) begin() {
	var b batch
	budget := e.cfg.MaxBatchedTokens
	preempted := e.scheduleRunning(&b, &budget)
	if !preempted {
		e.admit(&b, &budget)
	}
	if b.prefill+b.sequences == 0 {
		e.stalled = true
		return
	}
	took := e.cfg.Costs.of(b)
	e.stepping, e.end = true, e.free+took
	e.stats.Steps++
	e.stats.Busy += took
	e.stats.PrefillTokens += b.prefill
}

// scheduleRunning gives every decoding sequence its token, and what is left of
// the budget to the prompt that the step before left unfinished: it was the
// last to be admitted, so it comes last. Sequences that find no block free
// preempt the one that was admitted last, which may be themselves.
func (e *Engine) scheduleRunning(b *batch, budget *int) (preempted bool) {
	for i := 0; i < len(e.running); i++ {
		r := e.running[i]
		n := 1
		if r.computed < r.target {
			n = min(r.target-r.computed, *budget)
		}
		for e.lacks(r, r.computed+n) > e.kv.free {
			preempted = true
			last := e.running[len(e.running)-1]
			e.preempt(last)
			if last == r {
				return true
			}
		}
		e.put(r, n, b)
		*budget -= n
	}
	return preempted
}

// lacks is the number of blocks that a request needs for so many tokens beyond
// those that it has.
func (e *Engine) lacks(r *Request, tokens int) int {
	if tokens <= r.room {
		return 0
	}
	return e.kv.blocksFor(tokens) - r.chained - r.others
}

// put puts n tokens of a request into the step. Blocks that they fill can be
// found from now on: a request of the same step may use them, for it reads
// them, layer by layer, after they are written.
func (e *Engine) put(r *Request, n int, b *batch) {
	r.scheduled = n
	if r.computed < r.target {
		b.prefill += n
	} else {
		b.sequences++
		b.context += r.computed + n
	}
	upTo := r.computed + n
	e.grow(r, upTo)
	e.keep(r, upTo)
}

// grow gives a request blocks for so many tokens.
func (e *Engine) grow(r *Request, tokens int) {
	if n := e.lacks(r, tokens); n > 0 {
		e.kv.allocate(n)
		r.others += n
		r.room += n * e.cfg.BlockSize
	}
}

// keep makes the full blocks of the first so many tokens of a request
// findable, as far as they are known.
func (e *Engine) keep(r *Request, tokens int) {
	if r.chained == r.blocks {
		return
	}
	upTo := min(tokens/e.cfg.BlockSize, r.blocks)
	if n := upTo - r.chained; n > 0 {
		r.chain = e.kv.keep(r.chain, r.Prompt.blocks[r.chained:upTo])
		r.chained = upTo
		r.others -= n
	}
}

// preempt sends the sequence that was admitted last back to the head of the
// queue. All of it is computed again, but for what is still cached by then.
func (e *Engine) preempt(r *Request) {
	e.running = e.running[:len(e.running)-1]
	e.release(r)
	r.computed, r.scheduled = 0, 0
	r.preempted++
	r.state = waiting
	e.owe(r, r.known())
	e.queue.pushFront(r)
	e.stats.Preemptions++
	e.lost = append(e.lost, Event{r, Preempted, e.free})
}

// admit takes requests from the queue, first come first served: one that finds
// no room holds up those behind it.
func (e *Engine) admit(b *batch, budget *int) {
	for *budget > 0 && len(e.running)+e.ticks.len() < e.cfg.MaxSeqs {
		r := e.queue.front()
		if r == nil {
			return
		}
		hashes := r.reusable()
		hits, freeHits := e.kv.lookUp(hashes)
		known, from := r.known(), hits*e.cfg.BlockSize
		r.target = known
		if r.computed > 0 { // elsewhere
			from, r.target = r.computed, r.computed
		} else if from == known {
			// The next token comes from the last one, so that is computed in
			// any case, and its block with it, in place.
			from -= e.cfg.BlockSize
		}
		n := min(known-from, *budget)
		upTo := from + n
		if e.cfg.PhasedTPOT > 0 {
			upTo = r.most()
		}
		if e.kv.blocksFor(upTo)-hits > e.kv.free-freeHits {
			return
		}
		e.queue.pop()
		r.chain, r.chained, r.room = e.kv.follow(nil, hashes[:hits]), hits, hits*e.cfg.BlockSize
		e.grow(r, upTo)
		e.place(r, from)
		e.put(r, n, b)
		*budget -= n
	}
}

// place makes a request a running one, of which so many tokens are there.
func (e *Engine) place(r *Request, computed int) {
	r.state = running
	r.computed = computed
	e.owe(r, r.target-computed)
	e.running = append(e.running, r)
	if r.admitted { // here or elsewhere
		return
	}
	r.admitted, r.cached = true, computed
	e.stats.QueriedTokens += r.Prompt.tokens
	e.stats.HitTokens += computed
}

// finishStep ends the step under way: what it computed is there.
func (e *Engine) finishStep(events []Event) []Event {
	e.stepping, e.free = false, e.end
	staying := e.running[:0]
	for _, r := range e.running {
		prefill := r.computed < r.target
		r.computed += r.scheduled
		r.scheduled = 0
		if prefill {
			e.owe(r, r.target-r.computed)
			if r.computed < r.target {
				staying = append(staying, r)
				continue
			}
		}
		if events = e.generate(r, e.end, events); r.state != running {
			continue
		}
		if e.cfg.PhasedTPOT > 0 {
			r.state = phased
			e.ticks.add(r, e.end, e.cfg.PhasedTPOT)
			continue
		}
		staying = append(staying, r)
	}
	clear(e.running[len(staying):])
	e.running = staying
	return events
}

// generate adds a token to an answer, and ends it with the last.
func (e *Engine) generate(r *Request, at time.Duration, events []Event) []Event {
	kind := Token
	if r.generated == 0 {
		kind = First
		e.stats.PromptTokens += r.Prompt.tokens
	}
	r.generated++
	e.stats.GeneratedTokens++
	events = append(events, Event{r, kind, at})
	if r.generated < r.until {
		return events
	}
	if r.until < r.Output {
		r.state = holding
		e.held++
		return append(events, Event{r, handover, at})
	}
	e.quit(r)
	e.stalled = false
	return append(events, Event{r, Finished, at})
}
