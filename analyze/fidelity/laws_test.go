package fidelity_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"moontide/analyze/fidelity"
	"moontide/synth/spec"
	"moontide/trace"
	"moontide/trace/stats"
)

// chat is a stationary workload of conversations with shared prompts.
const chat = `
num_requests: 1500
rate: 3
unique_isl: lognormal:2000:0.5
osl: lognormal:300:0.7
shared: {count: 20, tokens: 1024, zipf: 1}
sessions: {turns: geometric:4, think_time: lognormal:20s:1, new_tokens: lognormal:300:0.7, timestamps: all}
`

// drawn returns the rows of a description.
func drawn(t testing.TB, description string, seed uint64) []trace.Request {
	t.Helper()
	s, err := spec.Parse([]byte(fmt.Sprintf("%sseed: %d\n", description, seed)), spec.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := trace.Collect(s.Requests())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func collect(t testing.TB, rows []trace.Request) *fidelity.Trace {
	t.Helper()
	of, err := fidelity.Collect(trace.FromSlice(rows), 512)
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// compare judges rows against as many of a source.
func compare(t testing.TB, source, of []trace.Request) *fidelity.Report {
	t.Helper()
	return fidelity.Compare(collect(t, source[:min(len(source), len(of))]), collect(t, of), 1)
}

// outcomes returns the keys of the aspects with an outcome.
func outcomes(r *fidelity.Report, of string) (keys []string) {
	for _, x := range r.Aspects {
		if x.Outcome == of {
			keys = append(keys, x.Key)
		}
	}
	return keys
}

func result(t testing.TB, r *fidelity.Report, key string) fidelity.Aspect {
	t.Helper()
	i := slices.IndexFunc(r.Aspects, func(x fidelity.Aspect) bool { return x.Key == key })
	if i < 0 {
		t.Fatalf("no aspect %q", key)
	}
	return r.Aspects[i]
}

func clone(rows []trace.Request) []trace.Request {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].HashIDs = slices.Clone(rows[i].HashIDs)
	}
	return rows
}

// A trace resembles itself exactly, but is a copy.
func TestItself(t *testing.T) {
	source := drawn(t, chat, 1)
	r := compare(t, source, source)
	for _, x := range r.Aspects {
		if x.Outcome != fidelity.Passed || x.Gap.Value != 0 {
			t.Errorf("%+v", x)
		}
	}
	if r.Pass() || r.Copied < min(len(source), 1000) {
		t.Errorf("%d rows are copied of at most %d", r.Copied, r.MaxCopied)
	}
}

// Another draw of the same law passes but for chance, at the source's length, at three
// times of it, at a third, and at twice the rate if that is asked for.
func TestAnotherDraw(t *testing.T) {
	failed := 0
	count := func(r *fidelity.Report) {
		t.Helper()
		keys := outcomes(r, fidelity.Failed)
		if failed += len(keys); len(keys) > 2 || !r.Novel() {
			t.Errorf("%v fail, %d rows are copied", keys, r.Copied)
		}
	}
	long, fast := strings.Replace(chat, "1500", "4500", 1), strings.Replace(chat, "rate: 3", "rate: 6", 1)
	for seed := range uint64(2) {
		source, longer := drawn(t, chat, 2*seed+1), drawn(t, long, 2*seed+2)
		count(compare(t, source, drawn(t, chat, 2*seed+2)))
		r := compare(t, source, longer)
		if count(r); r.Pieces != 3 {
			t.Errorf("%d pieces", r.Pieces)
		}
		count(compare(t, longer, source))
		count(fidelity.Compare(collect(t, source[:750]), collect(t, drawn(t, fast, 2*seed+2)), 2))
	}
	if failed > 5 {
		t.Errorf("%d of 56 aspects fail", failed)
	}
}

// Each fault of a copy of the source fails in the aspects that it concerns, and does not
// in others.
func TestFaults(t *testing.T) {
	source := drawn(t, chat, 1)
	for name, c := range map[string]struct {
		change func([]trace.Request) []trace.Request
		fails  []string // among others
		passes []string
	}{
		"longer answers": {func(rows []trace.Request) []trace.Request {
			for i := range rows {
				rows[i].OutputLength = rows[i].OutputLength * 3 / 2
			}
			return rows
		}, []string{"lengths", "peak_minute"}, []string{"lru_curve", "turn_gaps", "rate"}},
		"faster": {func(rows []trace.Request) []trace.Request {
			for i := range rows {
				rows[i].Timestamp.Value /= 2
			}
			return rows
		}, []string{"gaps", "turn_gaps", "peak_minute", "rate"}, []string{"lengths", "lru_curve", "context"}},
		"shuffled": {func(rows []trace.Request) []trace.Request {
			times := make([]float64, len(rows))
			for i, r := range rows {
				times[i] = r.Timestamp.Value
			}
			stats.NewStream(1, "shuffle").Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			for i := range rows {
				rows[i].Timestamp.Value = times[i]
			}
			return rows
		}, []string{"lru_curve", "turn_gaps"}, []string{"lengths", "gaps", "context", "rate"}},
		"nothing shared": {func(rows []trace.Request) []trace.Request {
			id := uint64(1)
			for i := range rows {
				for j := range rows[i].HashIDs {
					rows[i].HashIDs[j] = id
					id++
				}
			}
			return rows
		}, []string{"lru_curve", "context"}, []string{"lengths", "peak_minute"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := compare(t, source, c.change(clone(source)))
			for _, key := range c.fails {
				if x := result(t, r, key); x.Outcome != fidelity.Failed {
					t.Errorf("%s passes: %+v", key, x)
				}
			}
			for _, key := range c.passes {
				if x := result(t, r, key); x.Outcome != fidelity.Passed {
					t.Errorf("%s does not pass: %+v", key, x)
				}
			}
		})
	}
}

// A drift of the source is no noise: its floors hardly differ from those of a source
// without one.
func TestDriftIsNoNoise(t *testing.T) {
	steady := drawn(t, chat, 1)
	drifting := clone(steady)
	for i := range drifting {
		if i > len(drifting)*2/3 {
			drifting[i].OutputLength *= 2
		}
	}
	floor := func(rows []trace.Request) float64 { return result(t, compare(t, rows, rows), "lengths").Floor.Value }
	if a, b := floor(steady), floor(drifting); b > 2*a {
		t.Errorf("floor %v of a steady source, %v of a drifting one", a, b)
	}
	if x := result(t, compare(t, drifting, steady), "lengths"); x.Outcome != fidelity.Failed {
		t.Errorf("%+v", x)
	}
}

// The floor of the rate of random arrivals is the upper quartile of the relative difference
// of two of them, 1.63 standard errors.
func TestFloorOfARate(t *testing.T) {
	for _, n := range []int{100, 1000} {
		rows := drawn(t, fmt.Sprintf("num_requests: %d\nisl: 100\nosl: 100\nrate: 1\n", n), 1)
		x := result(t, compare(t, rows, rows), "rate")
		if want := 1.63 / math.Sqrt(float64(n)); x.Floor.Value < want/2 || x.Floor.Value > want*2 {
			t.Errorf("%d requests: floor %v, want about %v", n, x.Floor.Value, want)
		}
	}
}

// A source of few sessions, or with most requests in one of them, has higher floors than
// one of many with as many requests, and says so.
func TestFewSessions(t *testing.T) {
	floor := func(turns int, few bool) float64 {
		rows := drawn(t, fmt.Sprintf("num_requests: 2000\nisl: lognormal:4000:1:max=50000\nosl: 1\nrate: 0.3\nsessions: {turns: %d, think_time: 2s, new_tokens: 1, timestamps: all}\n", turns), 1)
		r := compare(t, rows, rows)
		if r.Source.FewSessions() != few {
			t.Errorf("sessions of %d turns: few is %v", turns, !few)
		}
		return result(t, r, "lengths").Floor.Value
	}
	if few, many := floor(125, true), floor(4, false); few < 1.5*many {
		t.Errorf("floor %v of 16 sessions, %v of 500", few, many)
	}
}

// An aspect that the source lacks is not applicable, with the reason.
func TestNotApplicable(t *testing.T) {
	rows := drawn(t, "num_requests: 100\nisl: uniform:100:900\nosl: uniform:1:9\n", 1)
	for i := range rows {
		rows[i].HashIDs = nil
	}
	r, scaled := compare(t, rows, rows), fidelity.Compare(collect(t, rows[:50]), collect(t, rows), 2)
	for i := range rows {
		rows[i].Timestamp.Value = 5
	}
	at := compare(t, rows, rows)
	for _, c := range []struct {
		report      *fidelity.Report
		key, reason string
	}{
		{r, "lru_curve", "no block ids"}, {r, "context", "no block ids"}, {r, "turn_gaps", "no times between turns"},
		{scaled, "gaps", "gaps do not scale with the rate"},
		{at, "gaps", "all requests arrive at once"}, {at, "rate", "all requests arrive at once"}, {at, "peak_minute", "all requests arrive at once"},
	} {
		if x := result(t, c.report, c.key); x.Outcome != fidelity.NotApplicable || x.Reason != c.reason || x.Gap.Set {
			t.Errorf("%+v", x)
		}
	}
	if one := compare(t, rows[:1], rows[:1]); len(outcomes(one, fidelity.Failed)) > 0 {
		t.Errorf("one row: %+v", one.Aspects)
	}
}

// With half or three times the sessions at the times of the source, rate and peak minute are
// half and three times those of the source, also if it is shorter than a minute.
func TestRateScale(t *testing.T) {
	rows := drawn(t, "num_requests: 200\nisl: 100\nosl: 100\nrate: 6\n", 1)
	for _, scale := range []float64{0.5, 3} {
		var scaled []trace.Request
		for i, r := range rows {
			for range int(scale*float64(i+1)) - int(scale*float64(i)) {
				scaled = append(scaled, r)
			}
		}
		r := fidelity.Compare(collect(t, rows), collect(t, scaled), scale)
		for _, key := range []string{"peak_minute", "rate"} {
			if x := result(t, r, key); x.Gap.Value > 0.01 || !x.Gap.Set {
				t.Errorf("%g times the rate: %+v", scale, x)
			}
		}
	}
}

// Periodic rows repeat themselves, so those of a drawn trace are no copy; rows in random
// order are.
func TestPeriodicRowsAreNoCopy(t *testing.T) {
	var periodic, random []trace.Request
	lengths := stats.NewStream(1, "lengths")
	for i := range 400 {
		r := trace.Request{Timestamp: trace.Some(float64(i) * 142.857), InputLength: 1000 + i%7, OutputLength: 64}
		periodic = append(periodic, r)
		r.InputLength = 1 + lengths.IntN(5000)
		random = append(random, r)
	}
	for _, c := range []struct {
		what string
		rows []trace.Request
		pass bool
	}{{"periodic", periodic, true}, {"random", random, false}} {
		r := compare(t, c.rows, c.rows)
		if r.Novel() != c.pass {
			t.Errorf("%s rows: %d are copied of at most %d", c.what, r.Copied, r.MaxCopied)
		}
		if gap := result(t, r, "gaps").Gap; gap != trace.Some(0.0) {
			t.Errorf("%s rows: a distance of %v between the gaps", c.what, gap)
		}
	}
}
