package virtual_test

import (
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/virtual"
	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// turn is a row of session s.
func turn(isl, osl int, ids ...uint64) trace.Request {
	r := row(0, isl, osl, ids...)
	r.SessionID = "s"
	return r
}

func TestLiveAnswers(t *testing.T) {
	const traceBlock, block = 40, 16
	rows := []trace.Request{
		turn(100, 29, 1, 2, 3),         // 128 tokens are cached in the end
		turn(180, 10, 1, 2, 4, 5, 6),   // continues them
		turn(240, 0, 1, 2, 4, 5, 7, 8), // an answer of one token, which is never cached
		turn(300, 5, 1, 2, 4, 5, 7, 8, 9, 10),
		turn(90, 5, 1, 2, 11), // compacted
	}
	rows[4].ID, rows[4].After = "compacted", nil
	sub := row(0, 150, 3, 1, 2, 4, 5) // a sub-agent that begins as the first turn and its answer do
	sub.ID, sub.After = "sub", []string{"first"}
	rows[0].ID = "first"
	rows = append(rows, sub)
	base := func(row, tokens int) replay.Base {
		return replay.Base{Row: trace.Some(row), Answer: transcript.Generated{Tokens: tokens}}
	}
	bases := []replay.Base{{}, base(0, 29), base(1, 10), base(2, 1), base(3, 5), base(0, 29)}
	for _, tt := range []struct {
		live, generated bool
		cached          []int
	}{
		{false, false, []int{0, 80, 160, 240, 80, 144}},
		{false, true, []int{0, 80, 160, 240, 80, 144}},
		{true, false, []int{0, 96, 176, 240, 80, 144}},
		{true, true, []int{0, 128, 176, 240, 80, 144}},
	} {
		cfg := virtual.Config{
			Deployment:     engine.Deployment{Engine: engine.Config{BlockSize: block}},
			TraceBlockSize: traceBlock, CacheGenerated: tt.generated, LiveAnswers: tt.live, Graph: tracetest.Graph(t, rows...),
		}
		m := run(t, cfg, 1, rows...)
		for i, want := range tt.cached {
			rec := m[i]
			if rec.Counts.Cached.Value != want {
				t.Errorf("live %v, generated cached %v, row %d: %d tokens cached, want %d", tt.live, tt.generated, i, rec.Counts.Cached.Value, want)
			}
			if tt.live && rec.Base != bases[i] || !tt.live && rec.Base != (replay.Base{}) {
				t.Errorf("live %v, row %d: base %+v", tt.live, i, rec.Base)
			}
		}
	}
}

func TestCancelAfter(t *testing.T) {
	cfg := virtual.Config{
		Deployment: engine.Deployment{Engine: engine.Config{
			Costs: engine.Costs{Step: 10 * engine.Millisecond, PrefillToken: engine.Millisecond / 2}, KVBlocks: 10, MaxModelLen: 2000,
		}},
		TraceBlockSize: 16, LiveAnswers: true, CancelAfter: 100 * ms,
	}
	rows := []trace.Request{
		row(0, 32, 10, 1, 2),    // would end at 116 ms
		row(200, 20, 9, 3, 4),   // ends at 300 ms, just in time
		row(350, 32, 1, 1, 2),   // what the first request computed is still cached
		row(400, 80, 30, 5),     // 6 of 10 blocks
		row(410, 80, 30, 6),     // waits for them until 500 ms
		row(700, 9000, 1, 7),    // too long
		row(800, 16, 1, 8, 9),   // the turn after the first request: not sent
		row(900, 160, 1, 10, 1), // all blocks: none is lost
	}
	rows[0].SessionID, rows[6].SessionID = "s", "s"
	cfg.Graph = tracetest.Graph(t, rows...)
	m := run(t, cfg, 0, rows...)
	if _, sent := m[6]; sent || len(m) != len(rows)-1 {
		t.Fatalf("%d records; one of the row after an abandoned one: %v", len(m), m)
	}
	for i, want := range map[int]struct {
		class        replay.Class
		done         time.Duration
		first        bool
		gaps, cached int
	}{
		0: {replay.Abandoned, 100 * ms, true, 7, 0},
		1: {replay.OK, 300 * ms, true, 8, 0},
		2: {replay.OK, 368 * ms, true, 0, 16},
		3: {replay.Abandoned, 500 * ms, true, 5, 0},
		4: {replay.Abandoned, 510 * ms, false, 0, 0},
		5: {replay.HTTPError, 700 * ms, false, 0, 0},
		7: {replay.OK, 990 * ms, true, 0, 0},
	} {
		r := m[i]
		if r.Class != want.class || r.Done != want.done || r.First.Set != want.first || len(r.Gaps) != want.gaps || r.Counts.Cached.Value != want.cached {
			t.Errorf("row %d: class %q, done %v, first token %v, %d gaps, %d cached; want %+v", i, r.Class, r.Done, r.First, len(r.Gaps), r.Counts.Cached.Value, want)
		}
		if (r.Class == replay.OK) == (r.Error != "") {
			t.Errorf("row %d: error %q", i, r.Error)
		}
	}
}
