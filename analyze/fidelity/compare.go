package fidelity

import (
	"fmt"
	"index/suffixarray"
	"math"
	"slices"
	"strings"

	"moontide/trace"
	"moontide/trace/stats"
)

// Report judges a drawn trace.
type Report struct {
	Source, Drawn *Trace
	Pieces        int // of the drawn trace that are compared with the source
	Aspects       []Aspect
	// Copied is the most successive requests that have the same ISL, OSL and time since the
	// arrival before as successive requests of the source, up to 1,000. MaxCopied is the
	// largest number that passes: 5, or three times that between the source's halves, for a
	// periodic source repeats itself.
	Copied, MaxCopied int
}

// Novel reports whether the drawn trace is no copy.
func (r *Report) Novel() bool { return r.Copied <= r.MaxCopied }

// Pass reports whether all aspects pass and the trace is novel.
func (r *Report) Pass() bool {
	return r.Novel() && !slices.ContainsFunc(r.Aspects, func(a Aspect) bool { return a.Outcome == Failed })
}

// Compare judges a drawn trace against its source, of which no more requests than the
// drawn trace has should have been collected. A rate scale other than 1 is how many times
// as many sessions the drawn trace has in the same time: the source's rate, its peaks and
// the sizes of caches are multiplied by it. Gaps are not judged then.
func Compare(source, drawn *Trace, rateScale float64) *Report {
	scaled := func(n int) int { return max(1, int(math.Round(rateScale*float64(n)))) }
	own := source.piece(0, source.Requests, source.Prefix.UniqueBlocks)
	length := min(scaled(source.Requests), drawn.Requests)
	var pieces []piece
	for from := 0; from < drawn.Requests; from += length {
		pieces = append(pieces, drawn.piece(min(from, drawn.Requests-length), length, scaled(source.Prefix.UniqueBlocks)))
	}
	rows := source.requests.rows()
	half := len(rows) / 2
	r := &Report{
		Source: source, Drawn: drawn, Pieces: len(pieces), Aspects: Aspects(),
		Copied: longestCommonRun(rows, drawn.requests.rows()), MaxCopied: max(5, 3*longestCommonRun(rows[:half], rows[half:])),
	}
	for i, floor := range floorsOf(own, r.Aspects) {
		r.Aspects[i].judge([]piece{own}, pieces, floor, rateScale)
	}
	return r
}

// judge compares an aspect.
func (a *Aspect) judge(source, drawn []piece, floor, rateScale float64) {
	largest := a.compare(source, drawn, rateScale)
	a.Outcome = NotApplicable
	switch {
	case slices.ContainsFunc(a.Values, func(v Value) bool { return !v.Source.Set }):
		a.Reason = a.lacks
	case a.Key == "turn_gaps" && len(a.Values[0].in(source, nil)) < 15:
		a.Reason = "fewer than 15 turn gaps" // perhaps of one session
	case a.Key == "gaps" && rateScale != 1:
		a.Reason = "gaps do not scale with the rate" // sessions are added at the times of others
	case slices.ContainsFunc(a.Values, func(v Value) bool { return !v.Drawn.Set }):
		a.Outcome, a.Reason = Failed, "drawn trace: "+a.lacks
	default:
		a.Gap, a.Floor, a.Limit = trace.Some(largest), trace.Some(floor), trace.Some(max(a.Bound, 2*floor))
		if a.Outcome = Failed; largest <= a.Limit.Value {
			a.Outcome = Passed
		}
	}
}

// floorsOf returns the noise floor of each aspect: the higher one of runs of sessions and of
// runs of requests, corrected for the small number of runs to choose from.
func floorsOf(source piece, aspects []Aspect) []float64 {
	pairs := min(max(2<<20/len(source), 4), 30) // fewer of a long trace
	floors := make([]float64, len(aspects))
	for _, sessions := range [][]piece{source.sessions(), slices.Collect(slices.Chunk(source, 1))} {
		random := stats.NewStream(0, "noise")
		gaps := make([][]float64, len(aspects))
		var a, b [1]piece
		for range pairs {
			a[0], b[0] = resample(a[0][:0], sessions, random), resample(b[0][:0], sessions, random)
			for i := range aspects {
				if gap := aspects[i].compare(a[:], b[:], 1); !math.IsInf(gap, 0) {
					gaps[i] = append(gaps[i], gap)
				}
			}
		}
		for i, a := range aspects {
			most := map[Measure]float64{KS: 0.3, LogRatio: 0.25, Difference: 0.3, Relative: 0.25}[a.Measure] // a small source does not pass everything
			floors[i] = min(max(floors[i], stats.Of(gaps[i]).Quantile(0.75)*math.Sqrt(1+1/(2.*nearbyRuns))), most)
		}
	}
	return floors
}

// rows returns what a copied row has in common with its original: ISL, OSL, and the µs since
// the arrival before.
func (p piece) rows() []string {
	rows := make([]string, len(p))
	for i, r := range p {
		rows[i] = fmt.Sprintf("<%.0f %.0f %.0f>", r.value[isl], r.value[osl], math.Round(1000*(r.at-p[max(i-1, 0)].at)))
	}
	return rows
}

// longestCommonRun returns the length of the longest sequence of rows that is in both,
// up to 1,000.
func longestCommonRun(a, b []string) (longest int) {
	known := suffixarray.New([]byte(strings.Join(a, "")))
	for from := range b {
		for longest < min(1000, len(b)-from) && known.Lookup([]byte(strings.Join(b[from:from+longest+1], "")), 1) != nil {
			longest++
		}
	}
	return longest
}
