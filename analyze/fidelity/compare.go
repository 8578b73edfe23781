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
	// Source and Drawn are the values, Gap is between them, and Floor is the noise
	// floor. Limit is the larger of Bound and twice Floor.
	Source, Drawn, Gap, Floor, Limit trace.Opt[float64]
	Outcome                          Outcome
	Reason                           string // of an aspect without a gap
}

// Compare judges a drawn trace against its source, of which no more requests than the
// drawn trace has should have been collected. Collected TTFTs are compared if both have
// them.
func Compare(source, drawn *Trace, limits Limits) *Report {
	n := min(source.Requests(), drawn.Requests())
	unique := source.unique(n)
	own := source.piece(0, n, unique)
	var pieces []*piece
	for from := 0; from < drawn.Requests(); from += n {
		from := min(from, drawn.Requests()-n)
		pieces = append(pieces, drawn.piece(from, from+n, unique))
	}
	whole := pieces
	if len(pieces) > 1 {
		whole = []*piece{drawn.basic(0, drawn.Requests())}
	}
	aspects := Aspects()
	floors := noise(source, own, unique, aspects)
	r := &Report{Source: source, Drawn: drawn, Pieces: len(pieces), Novelty: noveltyOf(source, drawn)}
	for i, a := range aspects {
		a.Bound = limits.bound(a)
		if a.column == ttft && len(pieces) > 1 && source.atOnce() {
			a.needs = longerBatch
		}
		of := pieces
		if a.whole {
			of = whole
		}
		r.Results = append(r.Results, a.judge(source, drawn, []*piece{own}, of, floors[i]))
	}
	return r
}

func (a Aspect) judge(source, drawn *Trace, own, of []*piece, floor float64) Result {
	r := Result{Aspect: a, Outcome: NotApplicable}
	lacks := func(t *Trace) string {
		if a.needs == nil {
			return ""
		}
		return a.needs(t)
	}
	if r.Reason = lacks(source); r.Reason != "" {
		return r
	}
	if a.few > 0 && max(a.sample(own).Count, a.sample(of).Count) <= a.few {
		r.Reason = fmt.Sprintf("fewer than %d values in both traces", a.few+1)
		return r
	}
	r.Source = trace.Some(a.shown(own))
	if reason := lacks(drawn); reason != "" {
		r.Outcome, r.Reason = Failed, "drawn trace: "+reason
		return r
	}
	r.Drawn = trace.Some(a.shown(of))
	g := a.gap(own, of)
	if math.IsNaN(g) || math.IsNaN(r.Source.Value) {
		r.Source, r.Drawn = trace.Opt[float64]{}, trace.Opt[float64]{}
		r.Reason = "no values"
		return r
	}
	limit := max(a.Bound, 2*floor)
	r.Gap, r.Floor, r.Limit = trace.Some(g), trace.Some(floor), trace.Some(limit)
	r.Outcome = Failed
	if g <= limit {
		r.Outcome = Passed
	}
	return r
}
