package analyze_test

import (
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze"
	"moontide/trace"
)

// requests draws traces of all kinds: chained prompts that extend earlier ones,
// prompts of arbitrary ids, and rows that say nothing about their blocks.
func requests(t *rapid.T, size int) []trace.Request {
	// Few ids, so that they meet, next to each other and at a page's border.
	id := rapid.SampledFrom([]uint64{0, 1, 2, 3, 4, 62, 63, 64, 65, 66, 1 << 40, 1<<64 - 1})
	next := uint64(1000)
	var rows []trace.Request
	for range rapid.IntRange(1, 20).Draw(t, "requests") {
		var ids []uint64
		switch rapid.SampledFrom([]string{"chained", "any", "silent"}).Draw(t, "kind") {
		case "chained":
			ids = []uint64{}
			if len(rows) > 0 {
				earlier := rows[rapid.IntRange(0, len(rows)-1).Draw(t, "earlier")].HashIDs
				ids = append(ids, earlier[:rapid.IntRange(0, len(earlier)).Draw(t, "kept")]...)
			}
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				ids = append(ids, next)
				next += rapid.Uint64Range(1, 2).Draw(t, "step")
			}
		case "any":
			ids = append([]uint64{}, rapid.SliceOfN(id, 0, 6).Draw(t, "ids")...)
		}
		isl := max(0, len(ids)*size-rapid.IntRange(-2, size).Draw(t, "short"))
		rows = append(rows, trace.Request{InputLength: isl, HashIDs: ids})
	}
	return rows
}

// bruteForce counts by the definitions: one pass with the set of what was
// cached before, one with the number of prompts in the trace that have each id.
func bruteForce(rows []trace.Request, size int) (want prefixWant, isl int) {
	cached, uses := map[uint64]bool{}, map[uint64]int{}
	for _, r := range rows {
		if len(r.HashIDs) == 0 {
			continue
		}
		hit := 0
		for hit < len(r.HashIDs) && cached[r.HashIDs[hit]] {
			hit++
		}
		for _, id := range r.HashIDs {
			cached[id] = true
		}
		for id := range setOf(r.HashIDs) {
			uses[id]++
		}
		want.requests++
		want.total += len(r.HashIDs)
		want.hitBlocks += hit
		want.hitTokens += min(hit*size, r.InputLength)
		isl += r.InputLength
		if hit > 0 {
			want.mean += float64(hit) / float64(len(r.HashIDs))
			if hit == len(r.HashIDs) {
				want.allHit++
			}
		} else {
			want.noHit++
		}
	}
	want.unique = len(uses)
	shared := 0
	for _, r := range rows {
		n := 0
		for n < len(r.HashIDs) && uses[r.HashIDs[n]] > 1 {
			n++
		}
		shared += min(n*size, r.InputLength)
	}
	n := float64(want.requests)
	want.mean /= n
	want.block = float64(want.hitBlocks) / float64(want.total)
	want.token = float64(want.hitTokens) / float64(isl)
	want.observed = context(float64(shared)/n, float64(isl-shared)/n, float64(shared)/float64(isl))
	return want, isl
}

func setOf(ids []uint64) map[uint64]bool {
	set := map[uint64]bool{}
	for _, id := range ids {
		set[id] = true
	}
	return set
}

func TestPrefixAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 16).Draw(rt, "block size")
		rows := requests(rt, size)
		a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: size})
		if err != nil {
			rt.Fatal(err)
		}
		want, isl := bruteForce(rows, size)
		switch {
		case want.total == 0:
			if a.Prefix != nil {
				rt.Fatalf("Prefix %+v of a trace without blocks", a.Prefix)
			}
		case isl > 0: // rates of no tokens have a test of their own
			checkPrefix(t, a, want)
			if t.Failed() {
				rt.FailNow()
			}
		}
	})
}
