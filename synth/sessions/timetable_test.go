package sessions_test

import (
	"slices"
	"strings"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/stats"
)

// A source with few timestamps keeps these and the requests at each. Repetitions begin
// the mean gap after its end; the last regime is held with its gap.
func TestTimetable(t *testing.T) {
	t.Parallel()
	const hour = 3600e3
	sizes := []int{30, 10, 25, 40, 15}
	var rows []trace.Request
	for i, n := range sizes {
		for k := range n {
			rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i) * hour), InputLength: 100 + k, OutputLength: 10 + k})
		}
	}
	m := fit(t, rows, sessions.Options{})
	if notes := strings.Join(m.Notes(), "\n"); !strings.Contains(notes, "5 timestamps with at least 5 requests each") {
		t.Errorf("no note on the timestamps in %q", notes)
	}
	counts := func(m *sessions.Model, n int) map[float64]int {
		at := map[float64]int{}
		for _, r := range draw(t, m, 1, n) {
			at[r.Timestamp.Value/hour]++
		}
		return at
	}
	check := func(what string, got map[float64]int, want ...int) {
		t.Helper()
		for i, n := range want {
			if got[float64(i)] != n {
				t.Errorf("%s: %d requests in hour %d, want %d", what, got[float64(i)], i, n)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: timestamps %v, want %d", what, got, len(want))
		}
	}
	check("repeated", counts(m, 2*len(rows)), 30, 10, 25, 40, 15, 30, 10, 25, 40, 15)
	check("held", counts(m.Hold(), len(rows)+30), 30, 10, 25, 40, 15, 15, 15)
	double, err := m.AtRate(2)
	if err != nil {
		t.Fatal(err)
	}
	check("at twice the rate", counts(double, 2*len(rows)), 60, 20, 50, 80, 30)
}

// A batch at one timestamp keeps it and the order of the turns of its conversations, in
// longer traces too.
func TestBatchAtOneTime(t *testing.T) {
	t.Parallel()
	const conversations, turns, together = 200, 4, 10 // these many take turns
	var rows []trace.Request
	ids := make([][]uint64, conversations)
	for i := range conversations * turns {
		c := i/(together*turns)*together + i%together
		for range 2 {
			ids[c] = append(ids[c], uint64(len(rows)*2+len(ids[c])%2))
		}
		rows = append(rows, trace.Request{Timestamp: trace.Some(5.0), InputLength: len(ids[c]) * agentBlock, OutputLength: 10, HashIDs: slices.Clone(ids[c])})
	}
	m := fit(t, rows, sessions.Options{BlockSize: agentBlock})
	for _, c := range []struct {
		*sessions.Model
		n int
	}{{m, len(rows)}, {m, 3 * len(rows)}, {m.Hold(), 3 * len(rows)}} {
		latest, later, since := map[uint64]int{}, 0, 0
		for i, r := range draw(t, c.Model, 1, c.n) {
			if r.Timestamp.Value != 0 {
				t.Fatalf("request %d of %d is at %v ms", i, c.n, r.Timestamp.Value)
			}
			if before, ok := latest[r.HashIDs[0]]; ok {
				later++
				since += i - before
			}
			latest[r.HashIDs[0]] = i
		}
		if share := float64(later) / float64(c.n); share < .7 || share > .8 {
			t.Errorf("of %d requests, %.2f are later turns, want 0.75", c.n, share)
		}
		if mean := float64(since) / float64(later); mean < .9*together || mean > 1.1*together {
			t.Errorf("of %d requests, later turns come %.1f requests after the one before, want %d", c.n, mean, together)
		}
	}
}

// A source with few timestamps is not divided into clusters, which would not keep them.
func TestTimetableIsNotDivided(t *testing.T) {
	t.Parallel()
	var rows []trace.Request
	for i := range 3000 {
		hour := i / 500
		rows = append(rows, trace.Request{Timestamp: trace.Some(3600e3 * float64(hour)), InputLength: 100 + 5000*(hour%2) + i%50, OutputLength: 10 + 300*(hour%2)})
	}
	at := map[float64]int{}
	for _, r := range draw(t, fit(t, rows, sessions.Options{}), 1, len(rows)) {
		at[r.Timestamp.Value]++
	}
	for hour := range 6 {
		if n := at[3600e3*float64(hour)]; n != 500 {
			t.Errorf("%d requests in hour %d, want 500", n, hour)
		}
	}
}

// The means of windows vary as if requests were drawn independently, although those of
// whole traces hardly do.
func TestWindowsVary(t *testing.T) {
	t.Parallel()
	random := stats.NewStream(1, "rows")
	var rows []trace.Request
	for i := range 6000 {
		rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i)), InputLength: 1 + int(1000*random.ExpFloat64()), OutputLength: 1})
	}
	m := fit(t, rows, sessions.Options{})
	const seeds, windows = 5, 20
	ratio := 0.0
	for seed := range uint64(seeds) {
		var means, all []float64
		drawn := draw(t, m, seed, len(rows))
		for w := range windows {
			sum := 0.0
			for _, r := range drawn[w*len(rows)/windows : (w+1)*len(rows)/windows] {
				sum += float64(r.InputLength)
				all = append(all, float64(r.InputLength))
			}
			means = append(means, sum*windows/float64(len(rows)))
		}
		variance := stats.Of(means).Std * stats.Of(means).Std
		ratio += variance / (stats.Of(all).Std * stats.Of(all).Std) * float64(len(rows)) / windows / seeds
	}
	if ratio < .5 || ratio > 1.4 {
		t.Errorf("the variance of the means of windows is %.2f of that of independent requests", ratio)
	}
}
