package analyze_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/analyze"
	"moontide/trace"
	"moontide/trace/stats"
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

// values returns the values of a distribution in order, but for the rounding of
// ranks.
func values(d stats.Sample) []float64 {
	var all []float64
	for i := range d.Count {
		all = append(all, d.Quantile(float64(i)/float64(max(1, d.Count-1))))
	}
	return all
}

func sameValues(d stats.Sample, want ...float64) bool {
	slices.Sort(want)
	return slices.EqualFunc(values(d), want, func(a, b float64) bool {
		return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b))
	})
}

// timed is a prompt of whole blocks of 10 tokens that arrives at a time in ms.
func timed(ms float64, ids ...uint64) trace.Request {
	r := prompt(10*len(ids), ids...)
	r.Timestamp = trace.Some(ms)
	return r
}

// example is three prompts that share 1 (two of them 1 2 3), and an unrelated one.
var example = []trace.Request{
	timed(0, 1, 2, 3, 4), timed(1000, 1, 9), timed(3000, 1, 2, 3, 5, 6), timed(7000, 20, 21),
}

var byTens = analyze.Options{BlockSize: 10}

// twice are two rows for each root from one to another.
func twice(from, to uint64) (rows []trace.Request) {
	for id := from; id <= to; id++ {
		rows = append(rows, timed(0, id), timed(0, id))
	}
	return rows
}

func TestRoots(t *testing.T) {
	most := []analyze.Root{{ID: 5, Requests: 3, ChainBlocks: 1, ChainTokens: 10}}
	for _, id := range []uint64{3, 4, 6, 7, 8, 9, 10, 11, 12} {
		most = append(most, analyze.Root{ID: id, Requests: 2, ChainBlocks: 1, ChainTokens: 10})
	}
	tests := []struct {
		name string
		rows []trace.Request
		want analyze.Roots
	}{
		{"one of two is shared", example, analyze.Roots{Distinct: 2, Shared: 1, Requests: 3,
			Top: []analyze.Root{{ID: 1, Requests: 3, ChainBlocks: 1, ChainTokens: 10}}}},
		{"a chain ends where the shortest prompt does",
			[]trace.Request{timed(0, 5, 6, 7, 8), timed(0, 5, 6, 7, 9), timed(0, 5, 6)},
			analyze.Roots{Distinct: 1, Shared: 1, Requests: 3, Top: []analyze.Root{{ID: 5, Requests: 3, ChainBlocks: 2, ChainTokens: 20}}}},
		{"no more tokens than the shortest prompt", []trace.Request{prompt(27, 5, 6, 7), prompt(23, 5, 6, 7)},
			analyze.Roots{Distinct: 1, Shared: 1, Requests: 2, Top: []analyze.Root{{ID: 5, Requests: 2, ChainBlocks: 3, ChainTokens: 23}}}},
		{"most first, ties in order of first use, only the top 10",
			slices.Concat(twice(3, 14), []trace.Request{timed(0, 5)}), analyze.Roots{Distinct: 12, Shared: 12, Requests: 25, Top: most}},
		{"nothing shared", []trace.Request{timed(0, 1), timed(0, 2), prompt(3)}, analyze.Roots{Distinct: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := analyzed(t, byTens, test.rows...).Prefix.Roots
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("roots (-want +got):\n%s", diff)
			}
		})
	}
}

// Ids of single blocks show where a known one follows a new one.
func TestUnchained(t *testing.T) {
	p := analyzed(t, byTens, prompt(20, 1, 2), prompt(30, 1, 9, 2), prompt(30, 1, 9, 2), prompt(30, 1, 9, 4), prompt(20, 5, 5)).Prefix
	if p.Unchained != 2 {
		t.Errorf("%d prompts have a known block after a new one, want 1 9 2 and 5 5", p.Unchained)
	}
}

// chainedRows draws prompts that extend prefixes of each other, whose ids are
// numbers in order or any.
func chainedRows(t *rapid.T, size int) (rows []trace.Request) {
	next, stride := uint64(0), rapid.SampledFrom([]uint64{1, 0x9e3779b97f4a7c15}).Draw(t, "stride")
	for i := range rapid.IntRange(1, 25).Draw(t, "requests") {
		var ids []uint64
		if len(rows) > 0 {
			earlier := rows[rapid.IntRange(0, len(rows)-1).Draw(t, "earlier")].HashIDs
			ids = append(ids, earlier[:rapid.IntRange(0, len(earlier)).Draw(t, "kept")]...)
		}
		for range rapid.IntRange(0, 4).Draw(t, "more") {
			ids = append(ids, next*stride)
			next++
		}
		isl := max(0, len(ids)*size-rapid.IntRange(0, size-1).Draw(t, "short"))
		r := prompt(isl, ids...)
		if rapid.IntRange(0, 9).Draw(t, "timed") > 0 {
			r.Timestamp = trace.Some(float64(i*100 + rapid.IntRange(0, 99).Draw(t, "ms")))
		}
		rows = append(rows, r)
	}
	return rows
}

func TestReuseAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := chainedRows(rt, 16)
		if rapid.Bool().Draw(rt, "any") {
			rows = requests(rt, 16)
			for i := range rows {
				rows[i].Timestamp = trace.Some(float64(i * i))
			}
		}
		a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: 16})
		if err != nil {
			rt.Fatal(err)
		}
		if a.Prefix == nil {
			return
		}
		var times, apart []float64
		lastUse := map[uint64]int{}
		for i, r := range rows {
			counted := map[uint64]bool{}
			for _, id := range r.HashIDs {
				last, known := lastUse[id]
				if !known {
					break
				}
				if counted[id] {
					continue
				}
				counted[id] = true
				apart = append(apart, float64(i-last))
				if r.Timestamp.Set && rows[last].Timestamp.Set {
					times = append(times, r.Timestamp.Value-rows[last].Timestamp.Value)
				}
			}
			for _, id := range r.HashIDs {
				lastUse[id] = i
			}
		}
		if got := a.Prefix.Reuse; !sameValues(got.Time, times...) || !sameValues(got.Requests, apart...) {
			rt.Fatalf("times %v, requests %v, want %v, %v", values(got.Time), values(got.Requests), times, apart)
		}
	})
}
