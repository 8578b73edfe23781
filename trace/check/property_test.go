package check_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/check"
)

// wellFormed draws a trace that obeys the format: arrivals in order, chained
// ids, turns that follow their session.
func wellFormed(t *rapid.T) (all []trace.Request, size int) {
	size = rapid.SampledFrom([]int{16, 48, 512}).Draw(t, "block size")
	floor := rapid.Bool().Draw(t, "floor")
	var prompts [][]uint64 // whole blocks only
	next, at := uint64(rapid.IntRange(0, 1000).Draw(t, "first id")), 0.0
	begun := map[string]bool{}
	for range rapid.IntRange(1, 60).Draw(t, "rows") {
		var ids []uint64
		if len(prompts) > 0 && rapid.Bool().Draw(t, "shares") {
			earlier := rapid.SampledFrom(prompts).Draw(t, "with")
			ids = append(ids, earlier[:rapid.IntRange(0, len(earlier)).Draw(t, "blocks")]...)
		}
		for range rapid.IntRange(0, 5).Draw(t, "own blocks") {
			ids = append(ids, next)
			next++
		}
		prompts = append(prompts, ids)
		tail := rapid.IntRange(1, size-1).Draw(t, "tail")
		r := trace.Request{InputLength: len(ids)*size + tail, OutputLength: rapid.IntRange(1, 50).Draw(t, "output")}
		r.HashIDs = append([]uint64{}, ids...)
		if !floor {
			r.HashIDs = append(r.HashIDs, next)
			next++
		}
		at += rapid.Float64Range(0, 2000).Draw(t, "gap")
		r.Timestamp = trace.Some(at)
		if s := rapid.IntRange(0, 20).Draw(t, "session"); s < 10 {
			r.SessionID = fmt.Sprint("s", s)
			if begun[r.SessionID] {
				r.Timestamp, r.Delay = never, trace.Some(float64(s))
			}
			begun[r.SessionID] = true
		}
		all = append(all, r)
	}
	return all, size
}

func TestWellFormedHasNoError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, size := wellFormed(t)
		given := rapid.SampledFrom([]int{0, size}).Draw(t, "given")
		report := run(t, all, check.Options{BlockSize: given})
		arithmetic := []check.Kind{check.TooFewIDs, check.TooManyIDs}
		// Times and delays are drawn, and may look like another unit.
		unit := func(f check.Finding) bool {
			return f.Kind == check.TimeUnit || f.Kind == check.DelayUnit
		}
		report.Findings = slices.DeleteFunc(report.Findings, unit)
		for _, f := range report.Findings {
			if f.Severity == check.Error || slices.Contains(arithmetic, f.Kind) {
				t.Errorf("%+v", f)
			}
		}
		if !report.Replayable() {
			t.Error("not replayable")
		}
	})
}

// A replay rejects rows that trace.InOrder rejects, so the check must report them.
func TestBackwardsIffNotInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, _ := wellFormed(t)
		if rapid.Bool().Draw(t, "shuffled") {
			all = rapid.Permutation(all).Draw(t, "order")
		}
		report := run(t, all, check.Options{})
		_, disorder := trace.Collect(trace.InOrder(trace.FromSlice(all)))
		found := false
		for _, f := range report.Findings {
			found = found || f.Kind == check.TimeBackwards
		}
		if found != (disorder != nil) {
			t.Errorf("time going backwards: %v; InOrder: %v", found, disorder)
		}
	})
}
