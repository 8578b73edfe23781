package engine

import "time"

// phasedQueue holds the sequences that decode outside the steps
// ([Config.PhasedTPOT]), ordered by next token. All have the same period, so a
// sequence moves to the end after each token, and only new sequences need a
// search.
type phasedQueue struct {
	fifo[phasedToken]
	count uint64 // sequences added so far
}

// phasedToken is a sequence and the time of its next token.
type phasedToken struct {
	at time.Duration
	r  *Request
}

func (q *phasedQueue) next() (time.Duration, bool) {
	if q.len() == 0 {
		return 0, false
	}
	return q.front().at, true
}

// add assigns a phase to a sequence that has its first token now; the second
// follows within a period. Multiples of the golden ratio spread any number of
// phases evenly (Weyl's sequence).
func (q *phasedQueue) add(r *Request, now, period time.Duration) {
	const golden = 0.6180339887498949
	q.count++
	share := golden * float64(q.count)
	share -= float64(int64(share))
	phase := time.Duration(share * float64(period))
	at := now - now%period + phase
	if at <= now {
		at += period
	}
	q.insert(phasedToken{at, r}, func(other phasedToken) bool { return other.at > at })
}

// phasedToken generates a token for the next phased sequence.
func (e *oneEngine) phasedToken(events []Event) []Event {
	next := e.phased.pop()
	r := next.r
	k := r.rank
	r.computed++
	k.cacheBlocks(r, r.computed)
	events = k.generate(r, next.at, events)
	if r.state == phased {
		e.phased.push(phasedToken{next.at + e.cfg.PhasedTPOT, r})
		return events
	}
	k.phased--
	e.free = max(e.free, next.at)
	return events
}
