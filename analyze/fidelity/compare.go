package fidelity

import (
	"fmt"
	"math"

	"moontide/trace"
)

// Report judges a drawn trace.
type Report struct {
	Source, Drawn *Trace
	// Pieces is the number of pieces of the drawn trace that are compared with the
	// source.
	Pieces  int
	Results []Result
	Novelty Novelty
}

// Pass reports whether all aspects pass and the trace is novel.
func (r *Report) Pass() bool { return len(r.Failed()) == 0 && r.Novelty.Pass() }

// Failed returns the results that did not pass.
func (r *Report) Failed() (failed []Result) {
	for _, x := range r.Results {
		if x.Outcome == Failed {
			failed = append(failed, x)
		}
	}
	return failed
}

// Outcome is how an aspect came out.
type Outcome string

// The outcomes.
const (
	Passed        Outcome = "pass"
	Failed        Outcome = "fail"
	NotApplicable Outcome = "n/a" // the source has no such values
)

// Result is the comparison of an aspect.
type Result struct {
	Aspect
	Values []Value
	// Gap is the largest of those of Values, and Floor is the noise floor. Limit is the
	// larger of Bound and twice Floor.
	Gap, Floor, Limit trace.Opt[float64]
	Outcome           Outcome
	Reason            string // of an aspect without a gap
}

// Value is one of the values of an aspect.
type Value struct {
	Name, Unit         string
	Source, Drawn, Gap trace.Opt[float64]
}

// Compare judges a drawn trace against its source, of which no more requests than the
// drawn trace has should have been collected. A rate scale other than 1 is how many times
// as many sessions the drawn trace has in the same time: the source's times are divided by
// it, except between the turns of a session, and cache sizes are multiplied. Gaps are not
// judged then.
func Compare(source, drawn *Trace, rateScale float64) *Report {
	scaled := func(n int) int { return max(1, int(math.Round(rateScale*float64(n)))) }
	own := source.piece(0, source.Requests(), source.distinct)
	for i := range own.at {
		own.at[i] /= rateScale
		own.column[gap][i] /= rateScale
	}
	of := min(scaled(source.Requests()), drawn.Requests())
	var pieces []*piece
	for from := 0; from < drawn.Requests(); from += of {
		from := min(from, drawn.Requests()-of)
		pieces = append(pieces, drawn.piece(from, from+of, scaled(source.distinct)))
	}
	aspects := Aspects()
	floors := noise(source, own, aspects)
	r := &Report{Source: source, Drawn: drawn, Pieces: len(pieces), Novelty: noveltyOf(source, drawn)}
	for i, a := range aspects {
		r.Results = append(r.Results, a.judge([]*piece{own}, pieces, floors[i], rateScale != 1))
	}
	return r
}

// minTurnGaps is how many turn gaps of the source are compared: fewer may be of one session
// that another trace of the same kind does not have.
const minTurnGaps = 15

func (a Aspect) judge(own, of []*piece, floor float64, rescaled bool) Result {
	r := Result{Aspect: a, Outcome: NotApplicable}
	lacking := ""
	for i := range a.values {
		v := &a.values[i]
		x := Value{Name: v.name, Unit: v.unit, Source: known(a.shown(v, own)), Drawn: known(a.shown(v, of))}
		if x.Source.Set && x.Drawn.Set {
			x.Gap = known(a.gapOf(v, own, of))
		}
		if r.Values = append(r.Values, x); !x.Drawn.Set {
			lacking = "drawn trace: " + a.lacks
		}
		if !x.Source.Set {
			r.Reason = a.lacks
		}
	}
	if a.Key == "turn_gaps" && r.Reason == "" && len(pooled(own, turnGap)) < minTurnGaps {
		r.Reason = fmt.Sprintf("fewer than %d turn gaps", minTurnGaps)
	}
	if a.Key == "gaps" && r.Reason == "" && rescaled {
		// Sessions are added at the times of others: bursts grow, and gaps do not shrink.
		r.Reason = "gaps do not scale with the rate"
	}
	if r.Reason != "" {
		return r
	}
	r.Outcome, r.Reason = Failed, lacking
	if lacking == "" {
		r.Gap, r.Floor, r.Limit = known(a.gap(own, of)), trace.Some(floor), trace.Some(max(a.Bound, 2*floor))
		if r.Gap.Set && r.Gap.Value <= r.Limit.Value {
			r.Outcome = Passed
		}
	}
	return r
}

// known returns a value unless it is NaN or infinite.
func known(v float64) trace.Opt[float64] {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return trace.Opt[float64]{}
	}
	return trace.Some(v)
}
