package diff

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// Source is a run to read.
type Source struct {
	Name    string // used in reports
	Run     runfile.Run
	Records iter.Seq2[replay.Record, error]
	Measure measure.Options
}

// Run is a run prepared for comparison. It takes about 350 bytes per request and up
// to 64 MB for gaps between token chunks.
type Run struct {
	Name string
	Run  runfile.Run
	*measure.Result
	Objectives []measure.Objective // for goodput
	// GapsKept is the share of gaps that the intervals of ITL are computed from.
	GapsKept float64

	requests []request // by row
	gaps     []gap
	gapsSeen int
	gapEvery int // gap is kept
}

type request struct {
	measure.Request
	fingerprint uint64 // of the request body
}

// Read reads a run and computes its metrics. It fails if a record cannot be read or a row is
// recorded twice.
func Read(s Source) (*Run, error) {
	r := &Run{Name: s.Name, Run: s.Run, Objectives: s.Measure.Objectives, gapEvery: 1}
	var err error
	r.Result, err = measure.Compute(func(yield func(replay.Record, error) bool) {
		for rec, err := range s.Records {
			if err == nil {
				r.add(&rec, &s.Measure)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, s.Measure)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.requests, func(a, b request) int { return cmp.Compare(a.Row, b.Row) })
	for i := 1; i < len(r.requests); i++ {
		if row := r.requests[i].Row; row == r.requests[i-1].Row {
			return nil, fmt.Errorf("row %d is in the record twice", row+1)
		}
	}
	r.GapsKept = 1 / float64(r.gapEvery)
	return r, nil
}

func (r *Run) add(rec *replay.Record, opts *measure.Options) {
	q := request{measure.NewRequest(rec, opts), fingerprint(rec.Request)}
	if q.measured() {
		r.addGaps(rec.Row, rec.Gaps)
	}
	r.requests = append(r.requests, q)
}

// measured reports whether the request completed, with latencies.
func (q *request) measured() bool { return q.Counted && q.Answered }

// latency returns a latency of a completed request.
func (q *request) latency(l measure.Latency) trace.Opt[float64] {
	if !q.measured() {
		return trace.Opt[float64]{}
	}
	return q.Latency(l)
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

// gap is a gap between token chunks of a row in milliseconds.
type gap struct {
	row int
	ms  float64
}

// maxGaps is the maximum number of gaps kept per run: beyond it, every second one goes.
const maxGaps = 1 << 21

func (r *Run) addGaps(row int, all []time.Duration) {
	for _, duration := range all {
		if r.gapsSeen%r.gapEvery == 0 {
			r.gaps = append(r.gaps, gap{row, trace.MS(duration)})
		}
		r.gapsSeen++
		if len(r.gaps) == maxGaps {
			for i := range maxGaps / 2 {
				r.gaps[i] = r.gaps[2*i]
			}
			r.gaps, r.gapEvery = r.gaps[:maxGaps/2], 2*r.gapEvery
		}
	}
}
