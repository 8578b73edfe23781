package fidelity

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/stats"
)

// The longest common run is the one found by comparing all pairs of places.
func TestLongestCommonRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rowKey { return rowKey{isl: rapid.IntRange(0, 3).Draw(t, "isl")} }), 0, 30)
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

// requestsOf draws requests of a few blocks in order of arrival.
func requestsOf(rt *rapid.T) []trace.Request {
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
		all := requestsOf(rt)
		of, err := Collect(trace.FromSlice(all), 10)
		if err != nil {
			rt.Fatal(err)
		}
		p := of.piece(0, len(all), of.distinct)
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
		if got := peakOf(isl)([]*piece{p}); p.span() > 0 && int(got) != peak {
			rt.Fatalf("peak %v, want %d", got, peak)
		}
		for i, r := range all {
			if of.distinct == 0 {
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

// Resamples have sessions of the source, each whole and in order of arrival.
func TestResamples(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := requestsOf(rt)
		for i := range all {
			all[i].SessionID = rapid.StringMatching("[ab]?").Draw(rt, "session")
		}
		of, err := Collect(trace.FromSlice(all), 10)
		if err != nil {
			rt.Fatal(err)
		}
		p, sessions := of.piece(0, len(all), of.distinct), of.bySession()
		for i := range p.column[requests] { // makes each row unique
			p.column[requests][i] = float64(i)
		}
		drawn := p.resample(sessions, stats.NewStream(1, "resample"))
		if !slices.IsSorted(drawn.at) {
			rt.Fatalf("times %v", drawn.at)
		}
		count := map[int]int{}
		for i, row := range drawn.column[requests] {
			count[int(row)]++
			if drawn.column[isl][i] != p.column[isl][int(row)] {
				rt.Fatalf("request %d differs from row %v", i, row)
			}
		}
		for _, rows := range sessions {
			for _, row := range rows {
				if count[row] != count[rows[0]] {
					rt.Fatalf("session %v is not whole: %v", rows, count)
				}
			}
		}
	})
}

// Keys are unique, every aspect says what it is, and the page on synthesis lists it.
func TestAspects(t *testing.T) {
	page, err := os.ReadFile("../../synth/README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, a := range Aspects() {
		if seen[a.Key] || a.Name == "" || !(a.Bound > 0) || len(a.values) == 0 {
			t.Errorf("%+v", a)
		}
		if !strings.Contains(string(page), "`"+a.Key+"`") {
			t.Errorf("synth/README.md lacks %s", a.Key)
		}
		seen[a.Key] = true
	}
}
