package engine

import "time"

// plan schedules a rank's part of a step like vLLM's V1 scheduler: running
// sequences in order of admission, then waiting requests while sequences, tokens
// and blocks are available.
//
// Requests that arrived after the horizon wait. same reports whether nothing but
// the end of a request or an arrival changes the next step.
func (k *rank) plan(horizon time.Duration) (b batch, same bool) {
	budget, late := k.cfg.MaxBatchedTokens, false
	preempted := k.scheduleRunning(&b, &budget)
	if !preempted {
		late = k.admit(&b, &budget, horizon)
	}
	k.stalled = b.prefill+b.sequences == 0 && !late
	k.stats.PrefillTokens += b.prefill
	return b, !preempted && !late
}

// scheduleRunning schedules one token of every decoding sequence, and the rest
// of the budget for the prompt that the previous step left unfinished, which
// was admitted last. A sequence that finds no free block preempts the one
// admitted last, possibly itself.
func (k *rank) scheduleRunning(b *batch, budget *int) (preempted bool) {
	for i := 0; i < len(k.running); i++ {
		r := k.running[i]
		n := 1
		if r.computed < r.target {
			n = min(r.target-r.computed, *budget)
		}
		for k.missingBlocks(r, r.computed+n) > k.kv.free {
			preempted = true
			last := k.running[len(k.running)-1]
			k.preempt(last)
			if last == r {
				return true
			}
		}
		k.schedule(r, n, b)
		*budget -= n
	}
	return preempted
}

// missingBlocks returns the number of blocks that a request needs for tokens,
// in addition to those it has.
func (k *rank) missingBlocks(r *Request, tokens int) int {
	if tokens <= r.room {
		return 0
	}
	return k.kv.blocksFor(tokens) - r.chained - r.others
}

// schedule adds n tokens of a request to the step. Blocks that they fill are
// cached immediately: a request in the same step may use them, because it reads
// them, layer by layer, after they are written.
func (k *rank) schedule(r *Request, n int, b *batch) {
	r.scheduled = n
	if r.computed < r.target {
		b.prefill += n
		b.pairs += n*r.computed + n*(n-1)/2
	} else {
		b.sequences++
		b.context += r.computed + n
	}
	k.allocate(r, r.computed+n)
	k.cacheBlocks(r, r.computed+n)
}

// allocate allocates blocks for tokens of a request.
func (k *rank) allocate(r *Request, tokens int) {
	if n := k.missingBlocks(r, tokens); n > 0 {
		k.kv.allocate(n)
		r.others += n
		r.room += n * k.cfg.BlockSize
	}
}

// cacheBlocks caches the full blocks of the first tokens of a request whose
// hashes are known.
func (k *rank) cacheBlocks(r *Request, tokens int) {
	if r.chained == r.blocks {
		return
	}
	upTo := min(tokens/k.cfg.BlockSize, r.blocks)
	if n := upTo - r.chained; n > 0 {
		r.chain = k.kv.keep(r.chain, r.Prompt.blocks[r.chained:upTo])
		r.chained = upTo
		r.others -= n
	}
}

// preempt moves the sequence admitted last back to the head of the queue. Its
// tokens are recomputed unless they are still cached by then.
func (k *rank) preempt(r *Request) {
	k.running = k.running[:len(k.running)-1]
	k.release(r)
	r.computed, r.scheduled = 0, 0
	r.preempted++
	r.state = waiting
	k.setBacklog(r, r.known())
	k.queue.pushFront(r)
	k.stats.Preemptions++
	k.engine.preemptions = append(k.engine.preemptions, Event{r, Preempted, k.engine.free})
}

// admit admits requests from the queue. A request that does not fit blocks
// those after it.
func (k *rank) admit(b *batch, budget *int, horizon time.Duration) (late bool) {
	for *budget > 0 && len(k.running)+k.phased < k.cfg.MaxSeqs && k.queue.len() > 0 {
		r := k.queue.front()
		if r.reached > horizon {
			return true
		}
		hashes := k.reusable(r)
		hits, freeHits := k.kv.lookUp(hashes)
		known, from := r.known(), max(hits*k.cfg.BlockSize, r.Prompt.cached)
		r.target = known
		if r.computed > 0 { // by a prefill engine
			from, r.target = r.computed, r.computed
		} else if from == known {
			// The next token is computed from the last one, so the last block
			// is always computed, in place.
			from -= k.cfg.BlockSize
		}
		n := min(known-from, *budget)
		upTo := from + n
		if k.cfg.PhasedTPOT > 0 {
			upTo = r.maxTokens()
		}
		if k.kv.blocksFor(upTo)-hits > k.kv.free-freeHits {
			return false
		}
		k.queue.pop()
		r.chain, r.chained, r.room = k.kv.follow(nil, hashes[:hits]), hits, hits*k.cfg.BlockSize
		k.allocate(r, upTo)
		k.run(r, from)
		k.schedule(r, n, b)
		*budget -= n
	}
	return false
}

// run adds a request with some tokens computed to the running ones.
func (k *rank) run(r *Request, computed int) {
	r.state = running
	r.computed = computed
	k.setBacklog(r, r.target-computed)
	k.running = append(k.running, r)
	if r.admitted { // by this engine or a prefill engine
		return
	}
	r.admitted, r.cached = true, computed
	k.stats.Admitted++
	k.stats.Queued += k.engine.free - r.arrived
	k.stats.QueriedTokens += r.Prompt.tokens
	k.stats.HitTokens += computed
}

// finish ends the rank's part of a step.
func (k *rank) finish(at time.Duration, events []Event) []Event {
	staying := k.running[:0]
	for _, r := range k.running {
		prefill := r.computed < r.target
		r.computed += r.scheduled
		r.scheduled = 0
		if prefill {
			k.setBacklog(r, r.target-r.computed)
			if r.computed < r.target {
				staying = append(staying, r)
				continue
			}
		}
		if events = k.generate(r, at, events); r.state != running {
			continue
		}
		if k.cfg.PhasedTPOT > 0 {
			r.state = phased
			k.phased++
			k.engine.phased.add(r, at, k.cfg.PhasedTPOT)
			continue
		}
		staying = append(staying, r)
	}
	clear(k.running[len(staying):])
	k.running = staying
	return events
}

// generate adds a token to an answer and ends the answer after its last one.
func (k *rank) generate(r *Request, at time.Duration, events []Event) []Event {
	kind := Token
	if r.generated == 0 {
		kind = First
		k.stats.PromptTokens += r.Prompt.tokens
	}
	r.generated++
	k.stats.GeneratedTokens++
	if kind == First || !k.coarse {
		events = append(events, Event{r, kind, at})
	}
	if r.generated < r.until {
		return events
	}
	if r.until < r.Output {
		r.state = transferring
		k.transferring++
		return append(events, Event{r, handover, at})
	}
	k.remove(r)
	k.stalled = false
	return append(events, Event{r, Finished, at})
}
