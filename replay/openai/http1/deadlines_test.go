package http1

import (
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// While the gaps between reads are within the limit, only the deadline of the
// response passes. After a longer gap the idle deadline passes, at most an eighth of
// the limit late.
func TestIdleDeadline(t *testing.T) {
	start := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.Int64Range(8, 1e10).Draw(t, "limit"))
		deadline := start.Add(time.Duration(rapid.Int64Range(1, 1e11).Draw(t, "timeout")))
		d := deadlines{response: deadline, idle: limit}
		if until := d.begin(); until != deadline {
			t.Fatalf("the idle deadline counts %v before the start", deadline.Sub(until))
		}
		now := start
		until, moved := d.received(Read, now)
		if !moved {
			t.Fatal("the start of the content does not set the idle deadline")
		}
		for range rapid.IntRange(0, 30).Draw(t, "arrivals") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(limit)).Draw(t, "gap")))
			if now.After(until) && until.Before(deadline) {
				t.Fatalf("limit %v: ended %v before the silence had lasted so long", limit, now.Sub(until))
			}
			if !now.Before(deadline) {
				return
			}
			if moved, ok := d.received(Read, now); ok {
				until = moved
			}
			if until.After(deadline) || until.After(now.Add(limit+limit/8)) {
				t.Fatalf("limit %v: it would be waited %v longer", limit, until.Sub(now))
			}
		}
		silent := errors.As(d.explain(os.ErrDeadlineExceeded), new(*IdleError))
		if silent != until.Before(deadline) || d.explain(io.EOF) != io.EOF {
			t.Fatalf("%v before the response's deadline, silent: %t", deadline.Sub(until), silent)
		}
	})
	deadline := start.Add(time.Hour)
	none := deadlines{response: deadline}
	if until, _ := none.received(Read, start.Add(time.Minute)); until != deadline || none.begin() != deadline || none.explain(os.ErrDeadlineExceeded) != os.ErrDeadlineExceeded {
		t.Error("an idle deadline without a limit")
	}
}

// Each phase of a response has its own deadline, and none is later than that of the
// response.
func TestDeadlineOfEachPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		idle := 80*s + 10*s // an eighth late
		for _, tc := range []struct {
			response  time.Duration
			actions   []Action // one per second
			want      time.Duration
			wantError error
		}{
			{1000 * s, nil, 300 * s, ErrNotStarted},
			{200 * s, nil, 200 * s, os.ErrDeadlineExceeded},
			{1000 * s, []Action{Await, Await, Await}, 300 * s, ErrNotStarted}, // keep-alives are no start
			{1000 * s, []Action{Await, Read}, 1*s + idle, &IdleError{80 * s}},
			{50 * s, []Action{Read}, 50 * s, os.ErrDeadlineExceeded},
			{1000 * s, []Action{Read, Linger}, 1*s + restTime, os.ErrDeadlineExceeded},
			{1000 * s, []Action{Read, Linger, Linger}, 1*s + restTime, os.ErrDeadlineExceeded},       // the wait is not extended
			{1000 * s, []Action{Read, Linger, Read}, 2*s + idle, &IdleError{80 * s}},                 // the answer goes on
			{1000 * s, []Action{Read, Linger, Read, Linger}, 3*s + restTime, os.ErrDeadlineExceeded}, // and ends again
			{1000 * s, []Action{Await, Drain}, 1*s + restTime, os.ErrDeadlineExceeded},
		} {
			start := time.Now()
			d := deadlines{response: start.Add(tc.response), start: start.Add(300 * s), idle: 80 * s}
			until := d.begin()
			for i, action := range tc.actions {
				if i > 0 {
					time.Sleep(s)
				}
				if moved, ok := d.received(action, time.Now()); ok {
					until = moved
				}
			}
			err := d.explain(os.ErrDeadlineExceeded)
			if got := until.Sub(start); got != tc.want || err.Error() != tc.wantError.Error() || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("actions %v of a response of %v: the deadline is %v (%v), want %v (%v)", tc.actions, tc.response, got, err, tc.want, tc.wantError)
			}
		}
	})
}
