package http1

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// At the deadline, Dial fails with os.ErrDeadlineExceeded, whichever timer of that
// instant fires first: net.Dialer's or that of its context. Before it, and after a
// cancellation, the error is the dialer's.
func TestDialErrors(t *testing.T) {
	refused := errors.New("connection refused")
	for _, test := range []struct {
		after time.Duration // when the dialer fails; the deadline is after a second
		ended bool          // the caller's context is
		want  error
	}{{time.Second, false, os.ErrDeadlineExceeded}, {time.Second - 1, false, refused}, {0, true, refused}} {
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if test.ended {
					cancel()
				}
				defer cancel()
				h := Host{DialContext: func(context.Context, string, string) (net.Conn, error) {
					time.Sleep(test.after)
					return nil, refused
				}}
				if _, err := h.Dial(ctx, time.Now().Add(time.Second)); err != test.want {
					t.Fatalf("after %v: %v, want %v", test.after, err, test.want)
				}
			})
		}
	}
}
