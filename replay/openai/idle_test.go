package openai

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/replay"
)

// While bytes come no further apart than the limit, no deadline passes but the
// request's; and one passes, at most an eighth too late, behind a longer pause.
func TestSilence(t *testing.T) {
	start := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		s := silence{limit: time.Duration(rapid.Int64Range(8, 1e10).Draw(t, "limit"))}
		deadline := start.Add(time.Duration(rapid.Int64Range(1, 1e11).Draw(t, "timeout")))
		now, until := start, s.begin(start, deadline)
		for range rapid.IntRange(0, 30).Draw(t, "arrivals") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(s.limit)).Draw(t, "gap")))
			if now.After(until) && until.Before(deadline) {
				t.Fatalf("limit %v: ended %v before the silence had lasted so long", s.limit, now.Sub(until))
			}
			if !now.Before(deadline) {
				return
			}
			if moved, ok := s.heard(now, deadline); ok {
				until = moved
			}
			if until.After(deadline) || until.After(now.Add(s.limit+s.limit/8)) {
				t.Fatalf("limit %v: it would be waited %v longer", s.limit, until.Sub(now))
			}
		}
		silent := errors.As(s.explain(os.ErrDeadlineExceeded), new(errSilent))
		if silent != until.Before(deadline) || s.explain(io.EOF) != io.EOF {
			t.Fatalf("%v before the request's deadline, silent: %t", deadline.Sub(until), silent)
		}
	})
	var none silence
	deadline := start.Add(time.Hour)
	if _, moved := none.heard(start.Add(time.Minute), deadline); moved || none.begin(start, deadline) != deadline || none.explain(os.ErrDeadlineExceeded) != os.ErrDeadlineExceeded {
		t.Error("there is a limit where none was set")
	}
}

// Deadlines are not moved with each event, which would cost more than the
// event.
func TestSilenceIsCheap(t *testing.T) {
	s, now, moves := silence{limit: 8 * time.Second}, time.Now(), 0
	deadline := now.Add(time.Hour)
	s.begin(now, deadline)
	for range 10_000 { // 100 seconds
		now = now.Add(10 * time.Millisecond)
		if _, moved := s.heard(now, deadline); moved {
			moves++
		}
	}
	if moves > 100 {
		t.Errorf("the deadline was moved %d times", moves)
	}
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	idle := func(cfg *Config) { cfg.Timeout, cfg.IdleTimeout = time.Hour, 40*time.Millisecond }
	for name, script := range map[string]func(*peer){
		"no answer":             once((*peer).hold),
		"stalled in the header": once(func(p *peer) { p.say(streamed[:30]); p.hold() }),
		"stalled in the stream": once(func(p *peer) { p.say(streamed+inChunk(tide), inChunk(tide)); p.hold() }),
		"stalled in a chunk":    once(func(p *peer) { p.say(streamed + "40\r\n" + tide[:20]); p.hold() }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, edit := range readers {
				wantClass(t, send(t, edit(client(t, serve(t, script).url, idle))), replay.Timeout, "idle: nothing arrived for 40ms")
			}
		})
	}
	// The request's own time comes first.
	short := func(cfg *Config) { cfg.Timeout, cfg.IdleTimeout = 40*time.Millisecond, time.Hour }
	for _, edit := range readers {
		wantClass(t, send(t, edit(client(t, serve(t, once((*peer).hold)).url, short))), replay.Timeout, "no complete answer within 40ms")
	}
}
