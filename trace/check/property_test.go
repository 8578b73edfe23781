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

// drawGraph draws rows of few sessions and request ids, which wait for some of any.
func drawGraph(t *rapid.T) (all []trace.Request) {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"})
	for i := range rapid.IntRange(1, 12).Draw(t, "rows") {
		r := trace.Request{Timestamp: trace.Some(1000 * float64(i)), InputLength: rapid.IntRange(1, 300).Draw(t, "isl"), OutputLength: rapid.IntRange(1, 2000).Draw(t, "osl")}
		r.HashIDs = chain(r.InputLength, rapid.IntRange(0, 5).Draw(t, "shared"), i+1)
		r.SessionID = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "session")
		if rapid.Bool().Draw(t, "named") {
			r.ID = id.Draw(t, "id")
		}
		if rapid.IntRange(0, 2).Draw(t, "waits") == 0 {
			r.After = rapid.SliceOfN(id, 0, 3).Draw(t, "after")
		}
		all = append(all, r)
	}
	return all
}

// counted returns the findings of some kinds.
func counted(t *rapid.T, all []trace.Request) map[check.Kind]int {
	found := map[check.Kind]int{}
	for _, f := range run(t, all, check.Options{BlockSize: blockSize}).Findings {
		found[f.Kind] = f.Count
	}
	return found
}

// A trace is replayable only if it has a graph, and no request is missing.
func TestGraphIsThatOfATrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawGraph(t)
		var b trace.GraphBuilder
		for i, r := range all {
			b.Add(r, i+1)
		}
		g, err := b.Graph()
		found := counted(t, all)
		if got, want := found[check.MissingRequest], g.Lost(); got != want {
			t.Errorf("%d missing requests, want %d", got, want)
		}
		if got := found[check.Cycle]+found[check.DuplicateRequestID] > 0; got != (err != nil) {
			t.Errorf("it has no graph: %v; the graph: %v", got, err)
		}
	})
}

// Turns are compared with the one before of their session, or the last that they name.
func TestTurnsAreComparedWithTheOneBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawGraph(t)
		want := map[check.Kind]int{}
		latest, named := map[string]trace.Request{}, map[string]trace.Request{}
		for _, r := range all {
			before, known := latest[r.SessionID]
			if r.After != nil {
				before, known = trace.Request{}, false
				for _, id := range r.After {
					if n, ok := named[id]; ok && n.SessionID == r.SessionID && (!known || n.Timestamp.Value > before.Timestamp.Value) {
						before, known = n, true
					}
				}
			}
			if known = known && r.SessionID != ""; known {
				if r.InputLength < before.InputLength {
					want[check.TurnShrinks]++
				} else if full := len(before.HashIDs) - 1; full > 0 && (len(r.HashIDs) < full || r.HashIDs[full-1] != before.HashIDs[full-1]) {
					want[check.TurnDiverges]++
				}
			}
			latest[r.SessionID] = r
			if _, twice := named[r.ID]; r.ID != "" && !twice {
				named[r.ID] = r
			}
		}
		found := counted(t, all)
		for _, kind := range []check.Kind{check.TurnShrinks, check.TurnDiverges} {
			if found[kind] != want[kind] {
				t.Errorf("%s: %d, want %d in %s", kind, found[kind], want[kind], fmt.Sprint(all))
			}
		}
	})
}
