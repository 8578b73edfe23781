package diff

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// Source is a run to read.
type Source struct {
	Name    string // used in reports
	Run     runfile.Run
	Records iter.Seq2[replay.Record, error]
	Measure run.Options
}

// Run is a run prepared for comparison. It takes about 150 bytes per request and up
// to 32 MB for gaps between token chunks.
type Run struct {
	Name              string
	Run               runfile.Run
	Verdict           run.Verdict
	Result            *run.Result     // without gaps, figures and the predictions of each request
	Completed, Failed int             // requests
	Objectives        []run.Objective // for goodput
	// GapsKept is the share of gaps that the intervals of ITL are computed from.
	GapsKept float64

	values   map[string]trace.Opt[float64] // by metric key
	counts   map[string]int                // of the values that a latency was computed from
	requests []request                     // by row
	gaps     gaps
	load     load
	reasoned bool // an answer began with reasoning
}

type request struct {
	run.Timing
	end              time.Duration
	row              int
	fingerprint      uint64 // of the request body
	model            uint64 // hash of the requested model, 0 if not recorded
	isl              int
	turn             trace.Opt[int] // in its session
	input, cached    int
	completed        bool // completely inside the window
	ended            bool // succeeded, ending in the window
	failed           bool // failed, ending in the window
	abandoned        bool // closed by the client, ending in the window
	measured         bool // completed, with latencies
	good             bool // ended, and met all objectives
	cachedKnown      bool
	gapsFrom, gapsTo int // range in the run's gaps
}

// Read reads a run and computes the metrics to compare, by default [DefaultMetrics].
// It fails if a record cannot be read or a row is recorded twice.
func Read(s Source, metrics []run.Metric) (*Run, error) {
	if metrics == nil {
		metrics = DefaultMetrics()
	}
	r := &Run{Name: s.Name, Run: s.Run, Objectives: s.Measure.Objectives, values: map[string]trace.Opt[float64]{}, counts: map[string]int{}}
	result, err := run.Compute(func(yield func(replay.Record, error) bool) {
		for rec, err := range s.Records {
			if err == nil {
				r.add(&rec, s.Measure.Window)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, s.Measure)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.requests, func(a, b request) int { return cmp.Compare(a.row, b.row) })
	for i := 1; i < len(r.requests); i++ {
		if row := r.requests[i].row; row == r.requests[i-1].row {
			return nil, fmt.Errorf("row %d is in the record twice", row+1)
		}
	}
	for i := range r.requests {
		r.requests[i].turn = result.Sessions.TurnOf(r.requests[i].row)
	}
	for _, m := range slices.Concat(withTTFVT(metrics), sometimes()) {
		r.values[m.Key] = m.Value(result)
		r.counts[m.Key] = m.Count(result)
	}
	r.Verdict, r.Completed, r.Failed = result.Verdict, result.Completed, result.Failed
	kept := *result
	kept.ITL, kept.ITLPerToken, kept.Detail, kept.Cache.Prediction.Each = stats.Sample{}, stats.Sample{}, nil, nil
	r.Result, r.reasoned = &kept, result.Reasoned > 0
	r.GapsKept = 1 / float64(max(1, r.gaps.every))
	r.load = loadOf(r.requests, s.Measure.Window, result.Duration)
	return r, nil
}

func (r *Run) add(rec *replay.Record, window run.Span) {
	q := request{
		Timing: run.TimingOf(rec), end: rec.Done, row: rec.Row, fingerprint: fingerprint(rec.Request), model: modelHash(rec.Model), isl: rec.InputLength,
		input: rec.InputLength, cached: rec.Counts.Cached.Value,
	}
	if rec.Counts.Input.Set {
		q.input = rec.Counts.Input.Value
	}
	ok, inside := rec.Class == replay.OK, window.Has(rec.Done)
	q.completed, q.ended, q.failed, q.abandoned = ok && window.Holds(rec), ok && inside, rec.Class.Failed() && inside, rec.Class == replay.Abandoned && inside
	q.good = q.ended && !slices.ContainsFunc(r.Objectives, func(o run.Objective) bool { return !o.MetBy(rec) })
	q.cachedKnown = q.completed && rec.Counts.Cached.Set
	q.measured = q.completed && q.Answered
	if q.measured {
		q.gapsFrom, q.gapsTo = r.addGaps(rec.Gaps)
	}
	r.requests = append(r.requests, q)
}

// latency returns a latency of a completed request.
func (q *request) latency(l run.Latency) trace.Opt[float64] {
	if !q.measured {
		return trace.Opt[float64]{}
	}
	return q.Latency(l)
}

func (q *request) cachedShare() trace.Opt[float64] {
	return trace.Opt[float64]{Value: float64(q.cached) / float64(max(1, q.input)), Set: q.cachedKnown && q.input > 0}
}

func modelHash(name string) uint64 {
	if name == "" {
		return 0
	}
	return xxhash.Sum64String(name)
}

func fingerprint(r trace.Request) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a, applied to words
	hash := uint64(offset)
	mix := func(x uint64) {
		hash = (hash ^ x) * prime
		hash ^= hash >> 32
	}
	mix(uint64(r.InputLength))
	mix(uint64(r.OutputLength))
	for _, id := range r.HashIDs {
		mix(id)
	}
	return hash
}

// gaps holds the gaps between token chunks in milliseconds, thinned out if too many.
type gaps struct {
	values []float64
	seen   int
	every  int
}

// maxGaps is the maximum number of gaps kept per run.
const maxGaps = 1 << 22

func (r *Run) addGaps(all []time.Duration) (from, to int) {
	g := &r.gaps
	g.every = max(1, g.every)
	for len(g.values)+len(all)/g.every >= maxGaps && len(g.values) > 0 {
		r.thinGaps()
	}
	from = len(g.values)
	for _, gap := range all {
		if g.seen%g.every == 0 {
			g.values = append(g.values, float64(gap)/float64(time.Millisecond))
		}
		g.seen++
	}
	return from, len(g.values)
}

func (r *Run) thinGaps() {
	g := &r.gaps
	g.every *= 2
	half := g.values[:0]
	for i := 0; i < len(g.values); i += 2 {
		half = append(half, g.values[i])
	}
	g.values = half
	for i := range r.requests {
		q := &r.requests[i]
		q.gapsFrom, q.gapsTo = (q.gapsFrom+1)/2, (q.gapsTo+1)/2
	}
}

// load holds the completed work by stretches of equal duration, because rates are
// per time, not per row.
type load struct {
	seconds  float64 // of each stretch
	requests [stretches]float64
	good     [stretches]float64 // requests that met all objectives
	output   [stretches]float64 // tokens
	tokens   [stretches]float64 // of prompts and answers
}

// loadOf spreads output tokens evenly from the first to the last, and counts prompt
// tokens at the first.
func loadOf(requests []request, window run.Span, duration time.Duration) load {
	l := load{seconds: duration.Seconds() / stretches}
	if duration <= 0 {
		return l
	}
	whole, from := window == run.Span{}, window.From
	if whole {
		from = firstSent(requests)
	}
	place := func(at time.Duration) float64 { return stretches * float64(at-from) / float64(duration) }
	add := func(in *[stretches]float64, at time.Duration, n float64) {
		in[max(0, min(int(place(at)), stretches-1))] += n
	}
	for i := range requests {
		q := &requests[i]
		add(&l.requests, q.end, count(q.ended))
		add(&l.good, q.end, count(q.good))
		if q.completed {
			add(&l.tokens, q.First, float64(q.input))
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

// spread adds n evenly between two positions. Parts outside the run are dropped.
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

func firstSent(requests []request) (first time.Duration) {
	found := false
	for i := range requests {
		if q := &requests[i]; q.WasSent && (!found || q.Sent < first) {
			first, found = q.Sent, true
		}
	}
	return first
}
