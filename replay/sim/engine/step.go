package engine

import "time"

// beginStep schedules a step like vLLM's V1 scheduler: running sequences in
// order of admission, then waiting requests while sequences, tokens and blocks
// are available.
func (e *oneEngine) beginStep() {
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
	e.beginLeap(b, !preempted)
}

// scheduleRunning schedules one token of every decoding sequence, and the rest
// of the budget for the prompt that the previous step left unfinished, which
// was admitted last. A sequence that finds no free block preempts the one
// admitted last, possibly itself.
func (e *oneEngine) scheduleRunning(b *batch, budget *int) (preempted bool) {
	for i := 0; i < len(e.running); i++ {
		r := e.running[i]
		n := 1
		if r.computed < r.target {
			n = min(r.target-r.computed, *budget)
		}
		for e.missingBlocks(r, r.computed+n) > e.kv.free {
			preempted = true
			last := e.running[len(e.running)-1]
			e.preempt(last)
			if last == r {
				return true
			}
		}
		e.schedule(r, n, b)
		*budget -= n
	}
	return preempted
}

// missingBlocks returns the number of blocks that a request needs for tokens,
// in addition to those it has.
func (e *oneEngine) missingBlocks(r *Request, tokens int) int {
	if tokens <= r.room {
		return 0
	}
	return e.kv.blocksFor(tokens) - r.chained - r.others
}

// schedule adds n tokens of a request to the step. Blocks that they fill are
// cached immediately: a request in the same step may use them, because it reads
// them, layer by layer, after they are written.
func (e *oneEngine) schedule(r *Request, n int, b *batch) {
	r.scheduled = n
	if r.computed < r.target {
		b.prefill += n
		b.pairs += n*r.computed + n*(n-1)/2
	} else {
		b.sequences++
		b.context += r.computed + n
	}
	e.allocate(r, r.computed+n)
	e.cacheBlocks(r, r.computed+n)
}

// allocate allocates blocks for tokens of a request.
func (e *oneEngine) allocate(r *Request, tokens int) {
	if n := e.missingBlocks(r, tokens); n > 0 {
		e.kv.allocate(n)
		r.others += n
		r.room += n * e.cfg.BlockSize
	}
}

// cacheBlocks caches the full blocks of the first tokens of a request whose
// hashes are known.
func (e *oneEngine) cacheBlocks(r *Request, tokens int) {
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

// preempt moves the sequence admitted last back to the head of the queue. Its
// tokens are recomputed unless they are still cached by then.
func (e *oneEngine) preempt(r *Request) {
	e.running = e.running[:len(e.running)-1]
	e.release(r)
	r.computed, r.scheduled = 0, 0
	r.preempted++
	r.state = waiting
	e.setBacklog(r, r.known())
	e.queue.pushFront(r)
	e.stats.Preemptions++
	e.preemptions = append(e.preemptions, Event{r, Preempted, e.free})
}

// admit admits requests from the queue. A request that does not fit blocks
// those after it.
func (e *oneEngine) admit(b *batch, budget *int) {
	for *budget > 0 && len(e.running)+e.phased.len() < e.cfg.MaxSeqs && e.queue.len() > 0 {
		r := e.queue.front()
		hashes := e.reusable(r)
		hits, freeHits := e.kv.lookUp(hashes)
		known, from := r.known(), max(hits*e.cfg.BlockSize, r.Prompt.cached)
		r.target = known
		if r.computed > 0 { // by a prefill engine
			from, r.target = r.computed, r.computed
		} else if from == known {
			// The next token is computed from the last one, so the last block
			// is always computed, in place.
			from -= e.cfg.BlockSize
		}
		n := min(known-from, *budget)
		upTo := from + n
		if e.cfg.PhasedTPOT > 0 {
			upTo = r.maxTokens()
		}
		if e.kv.blocksFor(upTo)-hits > e.kv.free-freeHits {
			return
		}
		e.queue.pop()
		r.chain, r.chained, r.room = e.kv.follow(nil, hashes[:hits]), hits, hits*e.cfg.BlockSize
		e.allocate(r, upTo)
		e.run(r, from)
		e.schedule(r, n, b)
		*budget -= n
	}
}

// run adds a request with some tokens computed to the running ones.
func (e *oneEngine) run(r *Request, computed int) {
	r.state = running
	r.computed = computed
	e.setBacklog(r, r.target-computed)
	e.running = append(e.running, r)
	if r.admitted { // by this engine or a prefill engine
		return
	}
	r.admitted, r.cached = true, computed
	e.stats.Admitted++
	e.stats.Queued += e.free - r.arrived
	e.stats.QueriedTokens += r.Prompt.tokens
	e.stats.HitTokens += computed
}

// finishStep ends the current step.
func (e *oneEngine) finishStep(events []Event) []Event {
	if e.leap.steps > 1 {
		e.endLeap(e.leap.steps)
	}
	e.stepping, e.free = false, e.stepEnd
	staying := e.running[:0]
	for _, r := range e.running {
		prefill := r.computed < r.target
		r.computed += r.scheduled
		r.scheduled = 0
		if prefill {
			e.setBacklog(r, r.target-r.computed)
			if r.computed < r.target {
				staying = append(staying, r)
				continue
			}
		}
		if events = e.generate(r, e.stepEnd, events); r.state != running {
			continue
		}
		if e.cfg.PhasedTPOT > 0 {
			r.state = phased
			e.phased.add(r, e.stepEnd, e.cfg.PhasedTPOT)
			continue
		}
		staying = append(staying, r)
	}
	clear(e.running[len(staying):])
	e.running = staying
	return events
}

// generate adds a token to an answer and ends the answer after its last one.
func (e *oneEngine) generate(r *Request, at time.Duration, events []Event) []Event {
	kind := Token
	if r.generated == 0 {
		kind = First
		e.stats.PromptTokens += r.Prompt.tokens
	}
	r.generated++
	e.stats.GeneratedTokens++
	if kind == First || !e.coarse {
		events = append(events, Event{r, kind, at})
	}
	if r.generated < r.until {
		return events
	}
	if r.until < r.Output {
		r.state = transferring
		e.transferring++
		return append(events, Event{r, handover, at})
	}
	e.remove(r)
	e.stalled = false
	return append(events, Event{r, Finished, at})
}
