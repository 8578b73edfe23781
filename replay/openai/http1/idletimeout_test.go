package http1

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// While the gaps between reads are within the limit, only the request's deadline
// passes. After a longer gap the idle deadline passes, at most an eighth of the
// limit late.
func TestIdleDeadline(t *testing.T) {
	start := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		s := idleDeadline{limit: time.Duration(rapid.Int64Range(8, 1e10).Draw(t, "limit"))}
		deadline := start.Add(time.Duration(rapid.Int64Range(1, 1e11).Draw(t, "timeout")))
		s.request = deadline
		now, until := start, s.start(start)
		for range rapid.IntRange(0, 30).Draw(t, "arrivals") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(s.limit)).Draw(t, "gap")))
			if now.After(until) && until.Before(deadline) {
				t.Fatalf("limit %v: ended %v before the silence had lasted so long", s.limit, now.Sub(until))
			}
			if !now.Before(deadline) {
				return
			}
			if moved, ok := s.received(now); ok {
				until = moved
			}
			if until.After(deadline) || until.After(now.Add(s.limit+s.limit/8)) {
				t.Fatalf("limit %v: it would be waited %v longer", s.limit, until.Sub(now))
			}
		}
		silent := errors.As(s.explain(os.ErrDeadlineExceeded), new(*IdleError))
		if silent != until.Before(deadline) || s.explain(io.EOF) != io.EOF {
			t.Fatalf("%v before the request's deadline, silent: %t", deadline.Sub(until), silent)
		}
	})
	deadline := start.Add(time.Hour)
	none := idleDeadline{request: deadline}
	if _, moved := none.received(start.Add(time.Minute)); moved || none.start(start) != deadline || none.explain(os.ErrDeadlineExceeded) != os.ErrDeadlineExceeded {
		t.Error("an idle deadline without a limit")
	}
}

// Deadlines are not moved with each event, which would cost more than handling the
// event.
func TestIdleDeadlineIsCheap(t *testing.T) {
	now, moves := time.Now(), 0
	s := idleDeadline{limit: 8 * time.Second, request: now.Add(time.Hour)}
	s.start(now)
	for range 10_000 { // 100 seconds
		now = now.Add(10 * time.Millisecond)
		if _, moved := s.received(now); moved {
			moves++
		}
	}
	if moves > 100 {
		t.Errorf("the deadline was moved %d times", moves)
	}
}
