package measure

import (
	"slices"
	"time"

	"moontide/replay"
	"moontide/trace/stats"
)

// Series describes a run over time, in consecutive intervals of equal length.
type Series struct {
	From, Step time.Duration
	Intervals  []Interval
}

// Interval is one interval of a [Series].
type Interval struct {
	// Requests due, sent and ended in the interval.
	Due, Sent, Completed, Failed int
	Output                       float64 // tokens that arrived
	InFlight                     float64 // requests, mean over the interval
	MaxInFlight                  int
	// TTFT covers completed requests with their first token in the interval; the
	// lags cover requests sent in it. All are in milliseconds.
	TTFT, ScheduleLag, ClientLag stats.Sample
}

// intervalSteps lists the possible interval lengths, besides whole hours.
var intervalSteps = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
}

// stepFor returns the shortest step with few enough intervals for a figure and enough
// requests in each.
func stepFor(length time.Duration, requests int) time.Duration {
	const perInterval, fewest, most = 4, 40, 240
	intervals := time.Duration(min(max(requests/perInterval, fewest), most))
	if i := slices.IndexFunc(intervalSteps, func(step time.Duration) bool { return length <= intervals*step }); i >= 0 {
		return intervalSteps[i]
	}
	return (length/intervals + time.Hour).Truncate(time.Hour)
}

// newSeries covers the window or, without one, the whole run.
func newSeries(requests []Request, window Span, tokens *tokenRate, inFlight *spans) Series {
	if window.whole() {
		var begins, ends instants
		for i := range requests {
			q := &requests[i]
			begins.add(min(q.Due, q.Done))
			ends.add(q.Done)
		}
		window = Span{From: begins.first, To: ends.last}
	}
	if len(requests) == 0 || window.To < window.From {
		return Series{}
	}
	b := seriesBuilder{Span: window, step: stepFor(window.To-window.From, len(requests))}
	b.intervals = make([]intervalBuilder, int((window.To-window.From)/b.step)+1)
	for i := range requests {
		b.add(&requests[i])
	}
	for second, counts := range tokens.seconds {
		for i, tokens := range counts[ofTokens] {
			// All of them arrived in the window, even if it starts within a slot.
			b.at(max(second*time.Second+time.Duration(i)*slot, b.From)).Output += float64(tokens)
		}
	}
	inFlight.sweep(b.addInFlight)
	return b.series()
}

type seriesBuilder struct {
	Span
	step      time.Duration
	intervals []intervalBuilder
	outside   intervalBuilder // collects everything not in an interval
}

type intervalBuilder struct {
	Interval
	ttft, scheduleLag, clientLag []float64
	busy                         time.Duration
}

func (b *seriesBuilder) at(instant time.Duration) *intervalBuilder {
	if i := (instant - b.From) / b.step; instant >= b.From && int(i) < len(b.intervals) {
		return &b.intervals[i]
	}
	return &b.outside
}

func (b *seriesBuilder) add(q *Request) {
	b.at(q.Due).Due++
	at := b.at(q.Done)
	countIf(&at.Completed, q.Class == replay.OK)
	countIf(&at.Failed, q.Class.Failed())
	if q.WasSent {
		at := b.at(q.Sent)
		at.Sent++
		at.scheduleLag = append(at.scheduleLag, q.Latency(ScheduleLag).Value)
		at.clientLag = append(at.clientLag, q.Latency(ClientLag).Value)
	}
	if q.Answered && q.Class == replay.OK {
		at := b.at(q.First)
		at.ttft = append(at.ttft, q.Latency(TTFT).Value)
	}
}

func (b *seriesBuilder) addInFlight(from, to time.Duration, inFlight int) {
	at := b.at(from)
	at.MaxInFlight = max(at.MaxInFlight, inFlight)
	for from = max(from, b.From); from < to; {
		at, end := b.at(from), min(to, b.From+((from-b.From)/b.step+1)*b.step)
		at.MaxInFlight = max(at.MaxInFlight, inFlight)
		at.busy += time.Duration(inFlight) * (end - from)
		from = end
	}
}

func (b *seriesBuilder) series() Series {
	s := Series{From: b.From, Step: b.step, Intervals: make([]Interval, len(b.intervals))}
	for i := range b.intervals {
		from, at := b.From+time.Duration(i)*b.step, &b.intervals[i]
		at.TTFT, at.ScheduleLag, at.ClientLag = stats.Of(at.ttft), stats.Of(at.scheduleLag), stats.Of(at.clientLag)
		at.InFlight = float64(at.busy) / float64(max(min(b.step, b.To-from), 1)) // the last interval may be shorter
		s.Intervals[i] = at.Interval
	}
	return s
}

// spans holds the start and end times of requests in flight.
type spans struct{ begins, ends []time.Duration }

func (s *spans) add(begin, end time.Duration) {
	s.begins = append(s.begins, begin)
	s.ends = append(s.ends, end)
}

func (s *spans) extent() (from, length time.Duration) {
	if len(s.begins) == 0 {
		return 0, 0
	}
	from = slices.Min(s.begins)
	return from, slices.Max(s.ends) - from
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
