package run

import (
	"slices"
	"time"

	"moontide/replay"
	"moontide/trace/stats"
)

// Series is a run over time, in stretches of equal length that follow each other.
type Series struct {
	From, Step time.Duration
	Stretches  []Stretch
}

// Stretch is what happened in a part of a run.
type Stretch struct {
	// Requests by when they were due, were sent and ended.
	Due, Sent, Completed, Failed int
	Output                       float64 // tokens that arrived
	InFlight                     float64 // requests, mean over the time
	MostInFlight                 int     // at once
	// TTFT is of the completed requests whose first token came in it, the lags
	// of the requests that were sent in it, in milliseconds.
	TTFT, ScheduleLag, ClientLag stats.Sample
}

// seriesSteps are the lengths of stretches. A series takes the shortest of which
// as few cover it as mostStretches says, and else whole hours.
var seriesSteps = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
}

// mostStretches is into how many a series of so many requests is divided: few
// requests in each would show nothing but that they are few.
func mostStretches(requests int) time.Duration {
	const few, least, most = 4, 40, 240
	return time.Duration(min(max(requests/few, least), most))
}

// stepFor is the length of the stretches of a time, in which there were so many
// requests.
func stepFor(length time.Duration, requests int) time.Duration {
	most := mostStretches(requests)
	for _, step := range seriesSteps {
		if length <= most*step {
			return step
		}
	}
	return (length/most + time.Hour).Truncate(time.Hour)
}

// seriesOf divides what was measured: the window, or from the first request due
// to the last one done.
func seriesOf(requests []Request, window Span, tokens *tokenRate) Series {
	if window.whole() {
		var begins, ends instants
		for i := range requests {
			q := &requests[i]
			begins.add(min(q.Due, q.End))
			ends.add(q.End)
		}
		window = Span{begins.first, ends.last}
	}
	s := &seriesMaker{Series: Series{From: window.From, Step: stepFor(window.To-window.From, len(requests))}}
	if len(requests) == 0 || window.To < window.From {
		return Series{}
	}
	s.Stretches = make([]Stretch, int((window.To-window.From)/s.Step)+1)
	s.values = make([]stretchValues, len(s.Stretches))
	for i := range requests {
		s.add(&requests[i])
	}
	for second, counts := range tokens.seconds {
		for i, parts := range counts.tokens {
			// What was counted is of the window, which may begin within a step.
			if at := s.at(max(second*time.Second+time.Duration(i)*step, s.From)); at != nil {
				at.tokens += parts
			}
		}
	}
	s.finish(requests, window)
	return s.Series
}

// seriesMaker is a series in the making.
type seriesMaker struct {
	Series
	values []stretchValues
}

type stretchValues struct {
	ttft, schedule, client []float64
	tokens                 int64 // in parts
	busy                   time.Duration
}

// index is the place of an instant, -1 outside.
func (s *seriesMaker) index(at time.Duration) int {
	if at < s.From {
		return -1
	}
	if i := int((at - s.From) / s.Step); i < len(s.Stretches) {
		return i
	}
	return -1
}

func (s *seriesMaker) at(at time.Duration) *stretchValues {
	if i := s.index(at); i >= 0 {
		return &s.values[i]
	}
	return nil
}

func (s *seriesMaker) add(q *Request) {
	if i := s.index(q.Due); i >= 0 {
		s.Stretches[i].Due++
	}
	if i := s.index(q.End); i >= 0 {
		if q.Class == replay.OK {
			s.Stretches[i].Completed++
		} else {
			s.Stretches[i].Failed++
		}
	}
	if !q.WasSent {
		return
	}
	if i := s.index(q.Sent); i >= 0 {
		s.Stretches[i].Sent++
		v := &s.values[i]
		v.schedule = append(v.schedule, q.Latency(ScheduleLag).Value)
		v.client = append(v.client, q.Latency(ClientLag).Value)
	}
	if i := s.index(q.First); q.Answered && q.Class == replay.OK && i >= 0 {
		s.values[i].ttft = append(s.values[i].ttft, q.Latency(TTFT).Value)
	}
}

func (s *seriesMaker) finish(requests []Request, window Span) {
	s.countInFlight(requests, window)
	for i := range s.Stretches {
		at, v := &s.Stretches[i], &s.values[i]
		at.TTFT, at.ScheduleLag, at.ClientLag = stats.Of(v.ttft), stats.Of(v.schedule), stats.Of(v.client)
		at.Output = float64(v.tokens) * part
		at.InFlight = float64(v.busy) / float64(s.length(i, window))
	}
}

// length is that of a stretch, of which the last may be cut short.
func (s *seriesMaker) length(i int, window Span) time.Duration {
	begin := s.From + time.Duration(i)*s.Step
	return max(min(s.Step, window.To-begin), 1)
}

// countInFlight follows the number of requests in flight from change to change.
// One that ends as another begins is not in flight with it.
func (s *seriesMaker) countInFlight(requests []Request, window Span) {
	begins, ends := make([]time.Duration, 0, len(requests)), make([]time.Duration, 0, len(requests))
	for i := range requests {
		if q := &requests[i]; q.WasSent && q.Sent <= window.To && q.End >= window.From {
			begins, ends = append(begins, max(q.Sent, window.From)), append(ends, min(q.End, window.To))
		}
	}
	slices.Sort(begins)
	slices.Sort(ends)
	now, inFlight, ended := window.From, 0, 0
	for _, at := range begins {
		for ended < len(ends) && ends[ended] <= at {
			s.pass(now, ends[ended], inFlight)
			now, inFlight, ended = ends[ended], inFlight-1, ended+1
		}
		s.pass(now, at, inFlight)
		now, inFlight = at, inFlight+1
		i := s.index(at)
		s.Stretches[i].MostInFlight = max(s.Stretches[i].MostInFlight, inFlight)
	}
	for ; ended < len(ends); ended++ {
		s.pass(now, ends[ended], inFlight)
		now, inFlight = ends[ended], inFlight-1
	}
}

// pass says that so many were in flight from one instant to another.
func (s *seriesMaker) pass(from, to time.Duration, inFlight int) {
	for i := s.index(from); i >= 0 && from < to; i++ {
		end := min(to, s.From+time.Duration(i+1)*s.Step)
		s.values[i].busy += time.Duration(inFlight) * (end - from)
		s.Stretches[i].MostInFlight = max(s.Stretches[i].MostInFlight, inFlight)
		from = end
	}
}
