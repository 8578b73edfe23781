package engine

import (
	"slices"
	"sort"
	"time"
)

// tickRing holds the sequences that decode out of step, in order of their next
// tokens. All have the same period, so whoever had a token is last in line
// again and only newcomers take a search.
type tickRing struct {
	ticks []tick // from head on
	head  int
	count uint64 // of sequences so far
}

type tick struct {
	at time.Duration
	r  *Request
}

func (t *tickRing) len() int { return len(t.ticks) - t.head }

func (t *tickRing) next() (time.Duration, bool) {
	if t.len() == 0 {
		return 0, false
	}
	return t.ticks[t.head].at, true
}

// add gives a sequence that has its first token now a phase, the second token
// coming within a period. Multiples of the golden ratio spread any number of
// phases evenly over the period (Weyl's sequence).
func (t *tickRing) add(r *Request, now, period time.Duration) {
	const golden = 0.6180339887498949
	t.count++
	share := golden * float64(t.count)
	share -= float64(int64(share))
	phase := time.Duration(share * float64(period))
	at := now - now%period + phase
	if at <= now {
		at += period
	}
	i := t.head + sort.Search(t.len(), func(i int) bool { return t.ticks[t.head+i].at > at })
	t.ticks = slices.Insert(t.ticks, i, tick{at, r})
}

// turn puts the sequence that comes first last, one period later.
func (t *tickRing) turn(period time.Duration) {
	first := t.ticks[t.head]
	first.at += period
	t.drop()
	t.ticks = append(t.ticks, first)
}

// drop takes the first out.
func (t *tickRing) drop() {
	t.ticks[t.head] = tick{}
	t.head++
	if t.head > 64 && t.head > len(t.ticks)/2 {
		n := copy(t.ticks, t.ticks[t.head:])
		clear(t.ticks[n:])
		t.ticks, t.head = t.ticks[:n], 0
	}
}

func (t *tickRing) remove(r *Request) {
	i := slices.IndexFunc(t.ticks, func(k tick) bool { return k.r == r })
	t.ticks = slices.Delete(t.ticks, i, i+1)
}

// tick gives the sequence that is next its token.
func (e *Engine) tick(events []Event) []Event {
	next := e.ticks.ticks[e.ticks.head]
	r := next.r
	r.computed++
	e.keep(r, r.computed)
	events = e.generate(r, next.at, events)
	if r.state == phased {
		e.ticks.turn(e.cfg.PhasedTPOT)
		return events
	}
	e.ticks.drop()
	e.free = max(e.free, next.at)
	return events
}
