package serving

import (
	"math"
	"slices"
	"time"

	"moontide/trace"
)

// spans are the times in which requests were in flight.
type spans struct{ begins, ends []time.Duration }

func (s *spans) add(begin, end time.Duration) {
	s.begins = append(s.begins, begin)
	s.ends = append(s.ends, end)
}

// length is from the first begin to the last end.
func (s *spans) length() time.Duration {
	if len(s.begins) == 0 {
		return 0
	}
	return slices.Max(s.ends) - slices.Min(s.begins)
}

// most is the largest number in flight at once. One that ends as another
// begins is not in flight with it.
func (s *spans) most() int {
	slices.Sort(s.begins)
	slices.Sort(s.ends)
	most, ended := 0, 0
	for i, at := range s.begins {
		for ended < len(s.ends) && s.ends[ended] <= at {
			ended++
		}
		most = max(most, i+1-ended)
	}
	return most
}

// window counts instants and remembers the first and the last.
type window struct {
	n           int
	first, last time.Duration
}

func (w *window) add(at time.Duration) {
	if w.n == 0 {
		w.first, w.last = at, at
	}
	w.first, w.last = min(w.first, at), max(w.last, at)
	w.n++
}

// rate is the instants a second: gaps over the time they take. It is absent
// where there is no time between the first and the last.
func (w *window) rate() trace.Opt[float64] {
	if w.last <= w.first {
		return trace.Opt[float64]{}
	}
	return trace.Some(float64(w.n-1) / (w.last - w.first).Seconds())
}

// tokenRate finds the second with the most tokens, among the seconds that
// begin at a multiple of a step. It counts in steps, so the memory goes with
// the seconds that have tokens: not with the tokens, nor with an instant that
// a damaged record puts far away.
type tokenRate map[time.Duration]*[steps]int64 // by whole second

const (
	step  = 10 * time.Millisecond
	steps = int(time.Second / step)
	// part is the share of a token in which tokens are counted. Whole numbers
	// of it add up to the same sum in any order, which floats do not.
	part = 1.0 / (1 << 30)
)

func (t tokenRate) add(at time.Duration, tokens float64) {
	at = max(at, 0) // nothing came before the run's start
	second := at / time.Second
	counts := t[second]
	if counts == nil {
		counts = new([steps]int64)
		t[second] = counts
	}
	counts[at%time.Second/step] += int64(math.Round(tokens / part))
}

// most slides a window of one second over every second with tokens and the
// one before it. Rounded to thousandths, no trace is left of the parts.
func (t tokenRate) most() float64 {
	most := int64(0)
	for second, counts := range t {
		before := t[second-1]
		if before == nil {
			before = new([steps]int64)
		}
		sum := int64(0)
		for _, n := range before {
			sum += n
		}
		for i, n := range counts {
			sum += n - before[i]
			most = max(most, sum)
		}
	}
	return math.Round(float64(most)*part*1000) / 1000
}

// explainer bounds the prompt tokens that a cache which began empty can have
// known, whatever the order in which requests came: a block is computed at
// least once, the cheapest time being where the fewest of its tokens are in a
// prompt.
type explainer struct {
	blockSize int
	least     map[uint64]int // tokens of a block where it had the fewest
	sum       int
	blind     bool // a prompt that its ids do not explain was sent
}

// add takes a prompt that was sent. One that is not counted may have filled
// the cache for others, but its own tokens are in no sum.
func (e *explainer) add(r trace.Request, counted bool) {
	if e.blockSize == 0 || r.HashIDs == nil {
		e.blind = true
		return
	}
	for i, id := range r.HashIDs {
		tokens := 0
		if counted {
			tokens = max(0, min(e.blockSize, r.InputLength-i*e.blockSize))
		}
		least, seen := e.least[id]
		if !seen {
			e.least[id] = tokens
			continue
		}
		e.sum += max(tokens, least)
		e.least[id] = min(tokens, least)
	}
}

func (e *explainer) tokens() trace.Opt[int] {
	if e.blind {
		return trace.Opt[int]{}
	}
	return trace.Some(e.sum)
}
