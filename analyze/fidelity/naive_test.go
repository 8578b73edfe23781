package fidelity

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
)

// The longest common run is the one found by comparing all pairs of places.
func TestLongestCommonRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOfN(rapid.Uint64Range(0, 3), 0, 30)
		a, b := keys.Draw(rt, "a"), keys.Draw(rt, "b")
		want := 0
		for i := range a {
			for j := range b {
				n := 0
				for i+n < len(a) && j+n < len(b) && a[i+n] == b[j+n] {
					n++
				}
				want = max(want, n)
			}
		}
		if got := longestCommonRun(a, b); got != want {
			rt.Fatalf("%d, want %d", got, want)
		}
	})
}

// rows draws requests of a few blocks in order of arrival.
func rows(rt *rapid.T) []trace.Request {
	var all []trace.Request
	at := 0.0
	for range rapid.IntRange(1, 30).Draw(rt, "requests") {
		at += float64(rapid.IntRange(0, 40_000).Draw(rt, "gap"))
		ids := rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 4).Draw(rt, "ids")
		all = append(all, trace.Request{
			Timestamp: trace.Some(at), InputLength: 10*len(ids) + 1, OutputLength: rapid.IntRange(1, 9).Draw(rt, "osl"), HashIDs: ids,
		})
	}
	return all
}

func TestColumnsAgainstNaive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := rows(rt)
		of, err := Collect(trace.FromSlice(all), Options{BlockSize: 10})
		if err != nil {
			rt.Fatal(err)
		}
		p := of.piece(0, len(all), of.unique(len(all)))
		peak := 0
		for i, r := range all {
			tokens := 0
			for _, other := range all[i:] {
				if other.Timestamp.Value-r.Timestamp.Value < 60_000 {
					tokens += other.InputLength
				}
			}
			peak = max(peak, tokens)
		}
		if got := peakOf("", "", isl).value(p); int(got) != peak {
			rt.Fatalf("peak %v, want %d", got, peak)
		}
		for i, r := range all {
			if len(of.blocks) == 0 {
				break
			}
			want := 0
			for _, id := range r.HashIDs {
				if !slices.ContainsFunc(slices.Delete(slices.Clone(all), i, i+1), func(o trace.Request) bool { return slices.Contains(o.HashIDs, id) }) {
					break
				}
				want += 10
			}
			if got := p.column[context][i]; len(r.HashIDs) == 0 != math.IsNaN(got) || len(r.HashIDs) > 0 && int(got) != want {
				rt.Fatalf("request %d: context %v, want %d", i, got, want)
			}
		}
	})
}

// Resamples have the requests of the source with their values.
func TestResamples(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := rows(rt)
		of, err := Collect(trace.FromSlice(all), Options{BlockSize: 10})
		if err != nil {
			rt.Fatal(err)
		}
		p := of.piece(0, len(all), of.unique(len(all)))
		n := len(all)
		for _, r := range []resampler{newRuns(p, max(1, n/3), nearbyRuns), newRuns(p, 1, runsOfTrace), newClusters(of, p)} {
			drawn := r.draw()
			if !slices.IsSorted(drawn.at) {
				rt.Fatalf("times %v", drawn.at)
			}
			if _, runs := r.(*runs); runs && len(drawn.at) != n {
				rt.Fatalf("%d requests, want %d", len(drawn.at), n)
			}
			for i := range drawn.at {
				if !slices.ContainsFunc(all, func(r trace.Request) bool {
					return float64(r.InputLength) == drawn.column[isl][i] && float64(r.OutputLength) == drawn.column[osl][i]
				}) {
					rt.Fatalf("request %d is none of the source", i)
				}
			}
		}
	})
}

func TestParseLimits(t *testing.T) {
	for text, want := range map[string]map[string]float64{
		"2x":                   {"isl_mean": 0.04, "lru_10": 0.06},
		"isl_mean=5%":          {"isl_mean": 0.05, "osl_mean": 0.02},
		"lru=0.04, lru_1=10%":  {"lru_1": 0.1, "lru_10": 0.04, "lru_100": 0.04},
		"0.5x,turn_gap_ks=0.2": {"turn_gap_ks": 0.2, "isl_mean": 0.01},
		"isl_ks=0":             {"isl_ks": 0},
	} {
		limits, err := ParseLimits(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for _, a := range Aspects() {
			if bound, given := want[a.Key]; given && math.Abs(limits.bound(a)-bound) > 1e-12 {
				t.Errorf("%s: bound of %s is %v, want %v", text, a.Key, limits.bound(a), bound)
			}
		}
	}
	for _, text := range []string{"", "2", "x", "-1x", "Infx", "isl_mean", "isl_mean=", "isl_mean=-1%", "isl_mean=NaN", "is=1%", "nothing=1%", "2x,"} {
		if _, err := ParseLimits(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Keys are unique, and every aspect says what it is.
func TestAspects(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range Aspects() {
		if seen[a.Key] || a.Name == "" || a.Definition == "" || !(a.Bound > 0) || a.KS && a.Relative || !a.KS && a.value == nil {
			t.Errorf("%+v", a)
		}
		seen[a.Key] = true
	}
}

// Copied blocks count only along a prompt and without those of several sessions.
func TestCopiedBlocks(t *testing.T) {
	of := func(prompts ...[]uint64) *Trace {
		var all []trace.Request
		for i, ids := range prompts {
			all = append(all, trace.Request{Timestamp: trace.Some(float64(i)), InputLength: 10 * len(ids), HashIDs: ids})
		}
		t.Helper()
		c, err := Collect(trace.FromSlice(all), Options{BlockSize: 10})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const big = 1 << 40
	source := of([]uint64{1, 2, 3 * big, 4}, []uint64{1, 2, 5, 6 * big, 7})
	for _, c := range []struct {
		drawn []uint64
		want  int
	}{
		{[]uint64{1, 2}, 0},                // the template
		{[]uint64{1, 2, 8 * big}, 0},       // and a new block
		{[]uint64{1, 2, 3 * big}, 1},       // a block of one session
		{[]uint64{1, 2, 5, 6 * big}, 2},    // two
		{[]uint64{6 * big, 5}, 0},          // other prefixes
		{[]uint64{9 * big, 6 * big}, 0},    // the same
		{[]uint64{9 * big, 5, 6 * big}, 1}, // after another beginning
	} {
		if got := copiedBlocks(source, of(c.drawn)); got != c.want {
			t.Errorf("%v: %d, want %d", c.drawn, got, c.want)
		}
	}
	if source.sequential() || !of([]uint64{3, 4, 5}).sequential() {
		t.Error("sequential ids are not told from others")
	}
	counted := of([]uint64{3, 4, 5})
	for _, c := range []struct {
		drawn *Trace
		want  bool
	}{{of([]uint64{5, 6}), true}, {of([]uint64{6, 7}), false}, {of([]uint64{2, 5 * big}), false}} {
		if n := noveltyOf(counted, c.drawn); n.Sequential != c.want {
			t.Errorf("ids %v beside 3 to 5: sequential is %v", c.drawn.ids, n.Sequential)
		}
	}
}
