package measure

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
)

// Span is a part of a run, including both ends. The zero Span is the whole run.
type Span struct {
	From, To time.Duration
	// SentUntil is the last send time inside, for a span that ignores when requests are
	// done; 0 means that requests have to be done inside.
	SentUntil time.Duration
}

func (s Span) whole() bool { return s == Span{} }

// Has reports whether a time is inside.
func (s Span) Has(at time.Duration) bool { return s.whole() || s.From <= at && at <= s.To }

// Holds reports whether a request is inside.
func (s Span) Holds(rec *replay.Record) bool {
	switch {
	case s.whole():
		return true
	case !rec.Sent.Set || rec.Sent.Value < s.From:
		return false
	case s.SentUntil > 0:
		return rec.Sent.Value <= s.SentUntil
	}
	return rec.Done <= s.To
}

// clip returns the part of an interval that is inside, if any.
func (s Span) clip(from, to time.Duration) (time.Duration, time.Duration, bool) {
	if s.whole() {
		return from, to, true
	}
	from, to = max(from, s.From), min(to, s.To)
	return from, to, from <= to
}

// Extent returns the span from the first request sent to the last one done, without the
// requests that a window leaves out because they were sent first or last.
func Extent(records iter.Seq2[replay.Record, error], w runfile.Window) (Span, error) {
	var begins, ends instants
	var sent []time.Duration // with requests to leave out
	for rec, err := range records {
		if err != nil {
			return Span{}, err
		}
		if rec.Sent.Set {
			begins.add(rec.Sent.Value)
			ends.add(rec.Done)
			if w.WarmupRequests+w.CooldownRequests > 0 {
				sent = append(sent, rec.Sent.Value)
			}
		}
	}
	s := Span{From: begins.first, To: ends.last}
	switch kept := len(sent) - w.WarmupRequests - w.CooldownRequests; {
	case sent == nil:
	case kept <= 0:
		s.To = s.From
	default:
		slices.Sort(sent)
		s.From = sent[w.WarmupRequests]
		if w.CooldownRequests > 0 {
			s.SentUntil, s.To = sent[w.WarmupRequests+kept-1], sent[len(sent)-1]
		}
	}
	return s, nil
}

// Cut returns a run's extent without its warm-up and cool-down, or an error if
// nothing is left. For the zero window, it returns the zero Span.
func Cut(extent Span, w runfile.Window) (Span, error) {
	if w == (runfile.Window{}) {
		return Span{}, nil
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	cut := extent
	cut.From, cut.To = cut.From+seconds(w.WarmupSeconds), cut.To-seconds(w.CooldownSeconds)
	if n := w.WarmupRequests + w.CooldownRequests; n > 0 && extent.To <= extent.From {
		return Span{}, fmt.Errorf("leaving out %d requests leaves nothing of the run", n)
	}
	if cut.To <= cut.From {
		return Span{}, fmt.Errorf("a warm-up of %vs and a cool-down of %vs leave nothing of a run of %v",
			w.WarmupSeconds, w.CooldownSeconds, (extent.To - extent.From).Round(time.Millisecond))
	}
	return cut, nil
}
