package run

import (
	"fmt"
	"math"
	"slices"

	"moontide/trace/stats"
)

// Breakdown divides the requests of a run into groups by one property.
type Breakdown struct {
	By     string // name of the property
	Groups []Group
}

// Group holds the requests with similar values of a property.
type Group struct {
	Name string
	// Completed requests are covered by the latencies: with a window, those entirely
	// inside it. Failed requests ended inside it.
	Completed, Failed int
	TTFT, TPOT, E2EL  stats.Sample
}

// band covers values below a limit, from that of the previous band.
type band struct {
	below float64
	name  string
}

var (
	turnBands = []band{
		{2, "1"}, {3, "2"}, {4, "3"}, {6, "4-5"}, {11, "6-10"}, {21, "11-20"}, {51, "21-50"}, {MaxEachTurn + 1, "51-100"},
		{math.Inf(1), "over 100"},
	}
	hitBands = []band{
		{math.SmallestNonzeroFloat64, "none"}, {0.25, "below 25 %"}, {0.5, "25 to 50 %"}, {0.75, "50 to 75 %"}, {0.9, "75 to 90 %"},
		{math.Inf(1), "90 % and more"},
	}
)

func islBands() []band {
	const first = 512
	bands := []band{{first, fmt.Sprintf("below %d", first)}}
	for low := first; low <= math.MaxInt32; low *= 2 {
		bands = append(bands, band{2 * float64(low), fmt.Sprintf("%d to %d", low, 2*low-1)})
	}
	return bands
}

func breakdowns(requests []Request, r *Result) []Breakdown {
	hits := make(map[int]float64, len(r.Cache.Prediction.Each)) // predicted hit rate by row
	for i := range r.Cache.Prediction.Each {
		if p := &r.Cache.Prediction.Each[i]; p.ISL > 0 {
			hits[p.Row] = float64(p.Predicted) / float64(p.ISL)
		}
	}
	var all []Breakdown
	for _, property := range []struct {
		name  string
		bands []band
		of    func(q *Request) (value float64, known bool)
	}{
		{"ISL", islBands(), func(q *Request) (float64, bool) { return float64(q.ISL), true }},
		{"predicted share of the prompt that is cached", hitBands, func(q *Request) (float64, bool) {
			hit, known := hits[q.Row]
			return hit, known
		}},
	} {
		if groups := groupRequests(requests, r.Window, property.bands, property.of); len(groups) > 1 {
			all = append(all, Breakdown{property.name, groups})
		}
	}
	return all
}

func groupRequests(requests []Request, window Span, bands []band, of func(q *Request) (value float64, known bool)) []Group {
	all := make([]groupCollector, len(bands))
	for i := range requests {
		q := &requests[i]
		failed := q.Class.Failed() && window.Has(q.End)
		value, known := of(q)
		if !known || !q.Counted && !failed {
			continue
		}
		g := &all[slices.IndexFunc(bands, func(b band) bool { return value < b.below })]
		if !q.Counted {
			g.failed++
			continue
		}
		g.complete(&q.Timing)
	}
	var groups []Group
	for i := range all {
		if g := &all[i]; g.completed+g.failed > 0 {
			groups = append(groups, g.group(bands[i].name))
		}
	}
	return groups
}
