package diff

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Source is a run to be read.
type Source struct {
	Name    string // in reports
	Run     runfile.Run
	Records iter.Seq2[replay.Record, error]
	Measure run.Options
}

// Run is a run that was read. It takes about 140 bytes per request and 8 bytes per
// gap between token chunks, up to 32 MB of gaps.
type Run struct {
	Name    string
	Run     runfile.Run
	Verdict run.Verdict
	// Completed and Failed count requests, InputEstimates and OutputEstimates
	// those whose tokens the server did not count.
	Completed, Failed               int
	InputEstimates, OutputEstimates int
	Objectives                      []run.Objective // of goodput
	// GapsKept is the share of gaps that intervals of ITL are computed from.
	GapsKept float64

	values   map[string]trace.Opt[float64] // by the metric's key
	requests []request                     // by row
	gaps     gaps
	load     load
}

// request is the part of a record that a comparison needs.
type request struct {
	run.Timing
	end              time.Duration
	row              int
	print            uint64 // of what was asked for
	isl              int
	input, cached    int
	completed        bool // in the window, as a whole
	failed           bool // in the window, at its end
	measured         bool // completed, with its latencies
	good             bool // in the window, at its end, and kept to all objectives
	cachedKnown      bool
	gapsFrom, gapsTo int // its own among those kept
}

// Read reads a run once and computes the metrics that it can be compared by; nil
// is [DefaultMetrics]. It fails if the records do or if a row is recorded twice.
func Read(s Source, metrics []run.Metric) (*Run, error) {
	if metrics == nil {
		metrics = DefaultMetrics()
	}
	r := &Run{Name: s.Name, Run: s.Run, Objectives: s.Measure.Objectives, values: map[string]trace.Opt[float64]{}}
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
	for _, m := range metrics {
		r.values[m.Key] = m.Value(result)
	}
	r.Verdict, r.Completed, r.Failed = result.Verdict, result.Completed, result.Failed
	r.InputEstimates, r.OutputEstimates = result.InputEstimates, result.OutputEstimates
	r.GapsKept = 1 / float64(max(1, r.gaps.every))
	r.load = loadOf(r.requests, s.Measure.Window, result.Duration)
	return r, nil
}

func (r *Run) add(rec *replay.Record, window run.Span) {
	q := request{
		Timing: run.TimingOf(rec), end: rec.Done, row: rec.Row, print: fingerprint(rec.Request), isl: rec.InputLength,
		input: rec.InputLength, cached: rec.Counts.Cached.Value,
	}
	if rec.Counts.Input.Set {
		q.input = rec.Counts.Input.Value
	}
	whole := window == run.Span{}
	ok := rec.Class == replay.OK
	q.completed = ok && (whole || rec.Sent.Set && window.From <= rec.Sent.Value && rec.Done <= window.To)
	q.failed = !ok && (whole || window.From <= rec.Done && rec.Done <= window.To)
	q.good = ok && (whole || window.From <= rec.Done && rec.Done <= window.To) && r.meetsObjectives(rec)
	q.cachedKnown = q.completed && rec.Counts.Cached.Set
	q.measured = q.completed && q.Answered
	if q.measured {
		q.gapsFrom, q.gapsTo = r.addGaps(rec.Gaps)
	}
	r.requests = append(r.requests, q)
}

// meetsObjectives reports whether a request meets all objectives.
func (r *Run) meetsObjectives(rec *replay.Record) bool {
	for _, o := range r.Objectives {
		if !o.MetBy(rec) {
			return false
		}
	}
	return true
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
