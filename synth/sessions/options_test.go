package sessions_test

import (
	"math"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// Session ids of the source define the sessions; drawn sessions get new ids.
func TestGivenSessions(t *testing.T) {
	w := workloads["small"]
	w.sessions = true
	rows := w.rows()
	m := fit(t, rows, sessions.Options{BlockSize: w.blockSize})
	d := compare(t, rows, m, len(rows), 2, []int{3000, 30_000, infinite})
	d.within(t, bands{lengths: .04, context: .04, gap: .05, std: .1, spearman: .05, turns: .1, think: .1, hits: []float64{.02}})
	named := make(map[string]bool)
	for _, r := range rows {
		named[r.SessionID] = true
	}
	for _, r := range draw(t, m, 1, 1000) {
		if r.SessionID == "" || named[r.SessionID] {
			t.Fatalf("session %q", r.SessionID)
		}
	}
}

// Later turns with delays in the source have delays when drawn.
func TestDelays(t *testing.T) {
	w := workloads["small"]
	w.sessions, w.delays = true, true
	rows := w.rows()
	m := fit(t, rows, sessions.Options{BlockSize: w.blockSize})
	from, to := look(t, rows, w.blockSize, []int{infinite}), look(t, draw(t, m, 1, len(rows)), w.blockSize, []int{infinite})
	ratio := func(what string, got, want, band float64) {
		t.Helper()
		if math.Abs(got/want-1) > band {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	ratio("turns", to.Sessions.Turns.Mean, from.Sessions.Turns.Mean, .15)
	ratio("delay", to.Sessions.Delay.Mean, from.Sessions.Delay.Mean, .1)
	ratio("delays", float64(to.Sessions.Delay.Count), float64(from.Sessions.Delay.Count), .05)
	ratio("rate of sessions", to.Arrivals.Rate.Value, from.Arrivals.Rate.Value, .25)
	ratio("hit rate", to.hits[0], from.hits[0], .03)
	begun := make(map[string]bool)
	for _, r := range draw(t, m, 1, 2000) {
		if begun[r.SessionID] != r.Delay.Set || r.Delay.Set == r.Timestamp.Set {
			t.Fatalf("turn %+v ; its session had begun: %v", r, begun[r.SessionID])
		}
		begun[r.SessionID] = true
	}
}

// All sessions start at the same time.
func TestAllAtOnce(t *testing.T) {
	w := workloads["small"]
	w.sessions, w.delays, w.requests = true, true, 1000
	rows := w.rows()
	for i := range rows {
		if rows[i].Timestamp.Set {
			rows[i].Timestamp = trace.Some(0.0)
		}
	}
	m := fit(t, rows, sessions.Options{BlockSize: w.blockSize})
	from, to := look(t, rows, w.blockSize, nil), look(t, draw(t, m, 1, len(rows)), w.blockSize, nil)
	if a, b := from.Sessions.Turns.Mean, to.Sessions.Turns.Mean; b < .5*a || b > 1.3*a {
		t.Errorf("%v turns a session, want %v", b, a)
	}
}

// Rows without block ids still have lengths and arrivals.
func TestNoBlocks(t *testing.T) {
	w := workloads["unshared"]
	rows := w.rows()
	for i := range rows {
		rows[i].HashIDs = nil
	}
	m := fit(t, rows, sessions.Options{})
	if m.BlockSize().Tokens != 0 {
		t.Errorf("block size %v", m.BlockSize())
	}
	compareLengths(t, rows, draw(t, m, 1, len(rows)))
	for _, r := range draw(t, m, 1, 100) {
		if r.HashIDs != nil || r.ContextLen.Set {
			t.Fatalf("%+v", r)
		}
	}
}

func compareLengths(t *testing.T, a, b []trace.Request) {
	t.Helper()
	x, y := look(t, a, 0, nil), look(t, b, 0, nil)
	if r := y.ISL.Mean / x.ISL.Mean; r < .9 || r > 1.1 {
		t.Errorf("ISL is %v times as long", r)
	}
	if r := y.Arrivals.Rate.Value / x.Arrivals.Rate.Value; r < .95 || r > 1.05 {
		t.Errorf("the rate is %v times as high", r)
	}
}

// Where partial last blocks have no ids in the source, neither have drawn ones.
func TestFullBlocksOnly(t *testing.T) {
	w := workloads["bursts"]
	rows := w.rows()
	for i := range rows {
		rows[i].HashIDs = rows[i].HashIDs[:rows[i].InputLength/w.blockSize]
	}
	m := fit(t, rows, sessions.Options{BlockSize: w.blockSize})
	if m.Irregular() != 0 {
		t.Errorf("%d rows are irregular", m.Irregular())
	}
	for _, r := range draw(t, m, 1, 1000) {
		if len(r.HashIDs) != r.InputLength/w.blockSize {
			t.Fatalf("%d blocks for %d tokens", len(r.HashIDs), r.InputLength)
		}
	}
	compare(t, rows, m, len(rows), 2, []int{1000, 10_000, infinite}).within(t, bands{
		lengths: .03, context: .03, gap: .05, std: .1, spearman: .05, turns: .1, think: .2, hits: []float64{.03},
	})
}

// Sources of a few requests can be learned.
func TestTinySources(t *testing.T) {
	for n := 5; n < 80; n += 3 {
		w := workloads["toolagent"]
		w.requests = n
		m := fit(t, w.rows(), sessions.Options{BlockSize: w.blockSize})
		for range m.Requests(1, 500) {
		}
	}
	same := make([]trace.Request, 50)
	for i := range same {
		same[i] = trace.Request{Timestamp: trace.Some(7.0), InputLength: 700, OutputLength: 1, HashIDs: []uint64{1, 2}}
	}
	for _, r := range draw(t, fit(t, same, sessions.Options{}), 1, 100) {
		if r.Timestamp.Value != 0 || r.InputLength != 700 || len(r.HashIDs) != 2 {
			t.Fatalf("%+v", r)
		}
	}
}
