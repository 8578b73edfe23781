package serving

import (
	"slices"
	"time"

	"moontide/trace"
)

// spans are the times in which requests were in flight.
type spans struct {
	first, last time.Duration
	begins      []time.Duration
	ends        []time.Duration
}

func (s *spans) add(begin, end time.Duration) {
	if len(s.begins) == 0 || begin < s.first {
		s.first = begin
	}
	s.last = max(s.last, end)
	s.begins = append(s.begins, begin)
	s.ends = append(s.ends, end)
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
	if w.n == 0 || at < w.first {
		w.first = at
	}
	w.last = max(w.last, at)
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

// tokenRate finds the second with the most tokens. It counts them in steps of
// 10 ms, so the memory goes with the run's time and not with its tokens.
type tokenRate struct{ steps []float64 }

const step = 10 * time.Millisecond

// maxSteps bounds what a damaged instant can ask for: a year.
const maxSteps = int(365 * 24 * time.Hour / step)

func (t *tokenRate) add(at time.Duration, tokens float64) {
	i := int(at / step)
	if i < 0 || i >= maxSteps {
		return
	}
	if i >= len(t.steps) {
		t.steps = append(t.steps, make([]float64, i+1-len(t.steps))...)
	}
	t.steps[i] += tokens
}

func (t *tokenRate) most() float64 {
	const second = int(time.Second / step)
	most, sum := 0.0, 0.0
	for i, tokens := range t.steps {
		sum += tokens
		if i >= second {
			sum -= t.steps[i-second]
		}
		most = max(most, sum)
	}
	return most
}

// explainer adds up the prompt tokens that a cache which began empty can have
// known. The sum does not depend on the order of the requests: each block is
// computed at least once.
type explainer struct {
	blockSize int
	seen      map[uint64]struct{}
	sum       int
	blind     bool // a prompt that its ids do not explain was sent
}

func (e *explainer) add(r trace.Request) {
	if e.blockSize == 0 || r.HashIDs == nil {
		e.blind = true
		return
	}
	hits, missed := 0, false
	for _, id := range r.HashIDs {
		if _, ok := e.seen[id]; ok {
			if !missed {
				hits++
			}
			continue
		}
		missed = true
		e.seen[id] = struct{}{}
	}
	e.sum += min(hits*e.blockSize, r.InputLength)
}

func (e *explainer) tokens() trace.Opt[int] {
	if e.blind {
		return trace.Opt[int]{}
	}
	return trace.Some(e.sum)
}
