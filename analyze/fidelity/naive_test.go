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
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"<1>", "<11>", "<111>"}), 0, 30)
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
		p := of.piece(0, len(all), of.Prefix.UniqueBlocks)
		most := 0
		for i, r := range all {
			tokens := 0
			for _, other := range all[i:] {
				if other.Timestamp.Value-r.Timestamp.Value < 60_000 {
					tokens += other.InputLength
				}
			}
			most = max(most, tokens)
		}
		if got := peak(isl)(nil, p); seconds(nil, p)[0] > 0 && int(got[0]) != most {
			rt.Fatalf("peak %v, want %d", got, most)
		}
		uses := map[uint64]int{}
		for _, r := range all {
			for _, id := range r.HashIDs {
				uses[id]++
			}
		}
		for i, r := range all {
			want := 0
			for _, id := range r.HashIDs {
				if uses[id] == 1 {
					break
				}
				want += 10
			}
			if got := p[i].value[context]; len(r.HashIDs) == 0 != math.IsNaN(got) || len(r.HashIDs) > 0 && int(got) != want {
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
		p := of.piece(0, len(all), of.Prefix.UniqueBlocks)
		for i, r := range p { // makes each row unique
			r.value[one] = float64(i)
		}
		drawn := resample(nil, p.sessions(), stats.NewStream(1, "resample"))
		if !slices.IsSortedFunc(drawn, earlier) {
			rt.Fatal("not in order of arrival")
		}
		count := map[float64]int{} // of a row
		for i, r := range drawn {
			count[r.value[one]]++
			if original := p[int(r.value[one])]; r.value[isl] != original.value[isl] || r.session != original.session {
				rt.Fatalf("request %d differs from row %v", i, r.value[one])
			}
		}
		for _, session := range p.sessions() {
			for _, r := range session {
				if count[r.value[one]] != count[session[0].value[one]] {
					rt.Fatalf("session %v is not whole: %v", r.session, count)
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
		if seen[a.Key] || a.Name == "" || !(a.Bound > 0) || len(a.Values) == 0 {
			t.Errorf("%+v", a)
		}
		if !strings.Contains(string(page), "`"+a.Key+"`") {
			t.Errorf("synth/README.md lacks %s", a.Key)
		}
		seen[a.Key] = true
	}
}
