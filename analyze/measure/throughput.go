package measure

import (
	"slices"
	"time"

	"moontide/trace"
)

// spans holds the start and end times of requests in flight.
type spans struct{ begins, ends []time.Duration }

func (s *spans) add(begin, end time.Duration) {
	s.begins = append(s.begins, begin)
	s.ends = append(s.ends, end)
}

func (s *spans) length() time.Duration {
	if len(s.begins) == 0 {
		return 0
	}
	return slices.Max(s.ends) - slices.Min(s.begins)
}

// sweep visits the intervals of constant requests in flight in order, some of them empty. A
// request that ends when another starts does not overlap it.
func (s *spans) sweep(visit func(from, to time.Duration, inFlight int)) {
	slices.Sort(s.begins)
	slices.Sort(s.ends)
	now, inFlight, ended := time.Duration(0), 0, 0
	advance := func(to time.Duration, change int) {
		if now < to {
			visit(now, to, inFlight)
		}
		now, inFlight = to, inFlight+change
	}
	for _, begin := range s.begins {
		for ; ended < len(s.ends) && s.ends[ended] <= begin; ended++ {
			advance(s.ends[ended], -1)
		}
		advance(begin, 1)
		visit(begin, begin, inFlight)
	}
	for ; ended < len(s.ends); ended++ {
		advance(s.ends[ended], -1)
	}
}

func (s *spans) most() (most int) {
	s.sweep(func(_, _ time.Duration, inFlight int) { most = max(most, inFlight) })
	return most
}

// instants counts times and keeps the first and the last.
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

// rate returns the number per second from the first to the last, absent if all times
// are equal.
func (i *instants) rate() trace.Opt[float64] {
	if i.span() <= 0 {
		return trace.Opt[float64]{}
	}
	return trace.Some(float64(i.n) / i.span().Seconds())
}

func (i *instants) span() time.Duration { return i.last - i.first }

// tokenRate finds the most tokens and events in any second that starts at a multiple
// of a slot, in memory that depends only on the seconds with events.
type tokenRate struct {
	seconds map[time.Duration]*second // with events
	from    time.Duration             // of latest
	latest  *second                   // most recently added to
}

func newTokenRate() tokenRate { return tokenRate{seconds: map[time.Duration]*second{}} }

type second struct{ tokens, events [slots]int64 }

const (
	slot  = 10 * time.Millisecond
	slots = int(time.Second / slot)
)

// add is fast for successive events in the same second.
func (t *tokenRate) add(at time.Duration, tokens int) {
	at = max(at, 0)
	within := at - t.from
	if t.latest == nil || uint64(within) >= uint64(time.Second) {
		whole := at / time.Second
		t.from, t.latest = whole*time.Second, t.seconds[whole]
		if t.latest == nil {
			t.latest = new(second)
			t.seconds[whole] = t.latest
		}
		within = at - t.from
	}
	i := uint32(within) / uint32(slot)
	t.latest.tokens[i] += int64(tokens)
	t.latest.events[i]++
}

func (t *tokenRate) mostTokens() float64 {
	return float64(t.most(func(s *second) *[slots]int64 { return &s.tokens }))
}

func (t *tokenRate) mostEvents() float64 {
	return float64(t.most(func(s *second) *[slots]int64 { return &s.events }))
}

// most slides a window over each second and the previous one.
func (t *tokenRate) most(of func(s *second) *[slots]int64) int64 {
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
