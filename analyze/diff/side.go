package diff

import (
	"sync"
	"time"

	"moontide/analyze/run"
	"moontide/trace"
)

// side is the runs of one side with their stretches.
type side struct {
	runs    []*Run
	cut     *cut
	samples *samples
}

func newSide(runs []*Run, c *cut) side {
	return side{runs: runs, cut: c, samples: &samples{made: map[run.Latency]func() *sample{}}}
}

// samples makes each sample once, for whoever asks first.
type samples struct {
	mu   sync.Mutex
	made map[run.Latency]func() *sample
}

// sample is that of a latency.
func (s side) sample(l run.Latency) *sample {
	s.samples.mu.Lock()
	get, known := s.samples.made[l]
	if !known {
		get = sync.OnceValue(func() *sample {
			if l == run.ITL {
				return newSample(s.gapItems())
			}
			return newSample(s.items(l))
		})
		s.samples.made[l] = get
	}
	s.samples.mu.Unlock()
	return get()
}

// each calls do for every request of the side.
func (s side) each(do func(r *Run, q *request, stretch uint8)) {
	for _, r := range s.runs {
		for i := range r.requests {
			do(r, &r.requests[i], s.cut.of(r.requests[i].row))
		}
	}
}

func (s side) items(l run.Latency) []item {
	n := 0
	for _, r := range s.runs {
		n += len(r.requests)
	}
	items := make([]item, 0, n)
	s.each(func(_ *Run, q *request, stretch uint8) {
		if v := q.latency(l); v.Set {
			items = append(items, item{v.Value, stretch})
		}
	})
	return items
}

func (s side) gapItems() []item {
	n := 0
	for _, r := range s.runs {
		n += len(r.gaps.values)
	}
	items := make([]item, 0, n)
	s.each(func(r *Run, q *request, stretch uint8) {
		for _, gap := range r.gaps.values[q.gapsFrom:q.gapsTo] {
			items = append(items, item{gap, stretch})
		}
	})
	return items
}

// values are what each run measured.
func (s side) values(m run.Metric) (all []trace.Opt[float64]) {
	for _, r := range s.runs {
		all = append(all, r.values[m.Key])
	}
	return all
}

// means are those of a latency in each run that has any.
func (s side) means(l run.Latency) (all runs) {
	for _, r := range s.runs {
		var m mean
		for i := range r.requests {
			m.add(r.requests[i].latency(l))
		}
		if v := m.value(); v.Set {
			all = append(all, v)
		}
	}
	return all
}

// cachedShare is of the requests whose server said what was cached.
func (s side) cachedShare() statistic {
	var share ratio
	s.each(func(_ *Run, q *request, stretch uint8) {
		if q.completed {
			share.parts[stretch] += float64(q.cached)
			share.whole[stretch] += float64(q.input)
		}
	})
	return share.statistic()
}

func (s side) failedShare() statistic {
	var share ratio
	s.each(func(_ *Run, q *request, stretch uint8) {
		if q.failed {
			share.parts[stretch]++
		}
		if q.failed || q.completed {
			share.whole[stretch]++
		}
	})
	return share.statistic()
}

// load is what a run answered in each stretch of its time, which here are of
// equal length: a rate has no rows.
type load struct {
	seconds float64 // of each stretch
	ended   [stretches]float64
	good    [stretches]float64 // of these, that kept to all objectives
	output  [stretches]float64 // tokens
	tokens  [stretches]float64 // of prompts, too
}

// rate is what the runs of a side answered of something a second.
func (s side) rate(what func(l *load) *[stretches]float64) statistic {
	var r ratio
	for _, run := range s.runs {
		for i, n := range what(&run.load) {
			r.parts[i] += n
			r.whole[i] += run.load.seconds
		}
	}
	return r.statistic()
}

// loadOf puts the tokens of an answer evenly between its first and its last, and
// those of a prompt where its answer begins.
func loadOf(requests []request, window run.Span, duration time.Duration) load {
	l := load{seconds: duration.Seconds() / stretches}
	if duration <= 0 {
		return l
	}
	whole, from := window == run.Span{}, window.From
	if whole {
		from = start(requests)
	}
	place := func(at time.Duration) float64 { return stretches * float64(at-from) / float64(duration) }
	count := func(in *[stretches]float64, at time.Duration, n float64) {
		in[max(0, min(int(place(at)), stretches-1))] += n
	}
	for i := range requests {
		q := &requests[i]
		if q.completed || !whole && !q.failed && from <= q.end && q.end <= window.To {
			count(&l.ended, q.end, 1)
		}
		if q.good {
			count(&l.good, q.end, 1)
		}
		if q.completed {
			count(&l.tokens, q.First, float64(q.input))
		}
		if q.Answered && (q.completed || !whole) {
			spread(&l.output, place(q.First), place(q.Last), float64(q.Output))
		}
	}
	for i, n := range l.output {
		l.tokens[i] += n
	}
	return l
}

// spread puts n evenly between two places. What lies outside is left out.
func spread(in *[stretches]float64, from, to, n float64) {
	if to <= from {
		if i := int(from); from >= 0 && i <= stretches {
			in[min(i, stretches-1)] += n
		}
		return
	}
	for i := max(0, int(from)); i < stretches && float64(i) < to; i++ {
		if part := min(to, float64(i+1)) - max(from, float64(i)); part > 0 {
			in[i] += n * part / (to - from)
		}
	}
}

// start is when the first request was sent.
func start(requests []request) (first time.Duration) {
	found := false
	for i := range requests {
		if q := &requests[i]; q.WasSent && (!found || q.Sent < first) {
			first, found = q.Sent, true
		}
	}
	return first
}
