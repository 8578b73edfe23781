package run

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

// instants counts instants and remembers the first and the last.
type instants struct {
	n           int
	first, last time.Duration
}

func (i *instants) add(at time.Duration) {
	if i.n == 0 {
		i.first, i.last = at, at
	}
	i.first, i.last = min(i.first, at), max(i.last, at)
	i.n++
}

// rate is the instants a second: gaps over the time they take. It is absent
// where there is no time between the first and the last.
func (i *instants) rate() trace.Opt[float64] {
	if i.last <= i.first {
		return trace.Opt[float64]{}
	}
	return trace.Some(float64(i.n-1) / (i.last - i.first).Seconds())
}

// tokenRate finds the second with the most tokens, and that with the most events
// that brought them, among the seconds that begin at a multiple of a step. It
// counts in steps, so the memory goes with the seconds that have tokens: not with
// the tokens, nor with an instant that a damaged record puts far away.
type tokenRate struct {
	seconds map[time.Duration]*second // that have tokens
	at      time.Duration             // where the one begins that was counted in last
	last    *second
}

func newTokenRate() tokenRate { return tokenRate{seconds: map[time.Duration]*second{}} }

// second holds the tokens of each step of a second, in parts, and the events.
type second struct{ tokens, events [steps]int64 }

const (
	step  = 10 * time.Millisecond
	steps = int(time.Second / step)
	// part is the share of a token in which tokens are counted. Whole numbers
	// of it add up to the same sum in any order, which floats do not.
	part = 1.0 / (1 << 30)
)

// partsOf is a number of tokens in parts.
func partsOf(tokens float64) int64 { return int64(math.Round(tokens / part)) }

// tokensOf is a number of parts in whole tokens.
func tokensOf(parts int64) int { return int(math.Round(float64(parts) * part)) }

// add takes an event that brought tokens. The events of a request are close
// together.
func (t *tokenRate) add(at time.Duration, parts int64) {
	at = max(at, 0) // nothing came before the run's start
	within := at - t.at
	if t.last == nil || uint64(within) >= uint64(time.Second) {
		whole := at / time.Second
		t.at, t.last = whole*time.Second, t.seconds[whole]
		if t.last == nil {
			t.last = new(second)
			t.seconds[whole] = t.last
		}
		within = at - t.at
	}
	place := uint32(within) / uint32(step)
	t.last.tokens[place] += parts
	t.last.events[place]++
}

// mostTokens is rounded to thousandths, which leaves no trace of the parts.
func (t *tokenRate) mostTokens() float64 {
	most := t.most(func(s *second) *[steps]int64 { return &s.tokens })
	return math.Round(float64(most)*part*1000) / 1000
}

func (t *tokenRate) mostEvents() float64 {
	return float64(t.most(func(s *second) *[steps]int64 { return &s.events }))
}

// most slides a window of one second over every second with tokens and the
// one before it.
func (t *tokenRate) most(of func(s *second) *[steps]int64) int64 {
	most := int64(0)
	for at, s := range t.seconds {
		before := t.seconds[at-1]
		if before == nil {
			before = new(second)
		}
		counts, left := of(s), of(before)
		sum := int64(0)
		for _, n := range left {
			sum += n
		}
		for i, n := range counts {
			sum += n - left[i]
			most = max(most, sum)
		}
	}
	return most
}
