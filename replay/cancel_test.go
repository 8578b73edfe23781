package replay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"moontide/trace"
)

// stuckAfter is a stream that blocks after some rows, until it is released. Then
// it has one more row.
func stuckAfter(rows []trace.Request) (reqs trace.Requests, release func()) {
	released := make(chan struct{})
	return func(yield func(trace.Request, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
		<-released
		yield(trace.Request{Timestamp: trace.Some(0.0)}, nil)
	}, func() { close(released) }
}

// Run returns promptly when its context ends or the sending is to stop, although
// the stream of rows blocks. Nothing is prepared or recorded after that.
func TestRunReturnsWhileTheStreamBlocks(t *testing.T) {
	for _, rows := range []int{0, 1, 100} {
		for _, how := range []string{"context", "drain", "virtual"} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				drain := make(chan struct{})
				server, m := &fakeServer{took: always(time.Millisecond)}, &memory{}
				reqs, release := stuckAfter(atMS(make([]float64, rows)...))
				go func() {
					time.Sleep(time.Hour)
					if how == "drain" {
						close(drain)
					} else {
						cancel()
					}
				}()
				began := time.Now()
				var tally Tally
				var err error
				if how == "virtual" {
					tally, err = (&VirtualRunner{Model: &fakeModel{took: always(time.Millisecond)}, Recorder: m}).Run(ctx, reqs)
				} else {
					tally, err = (&Runner{Client: server, Recorder: m, Drain: drain}).Run(ctx, reqs)
				}
				if took := time.Since(began); took > time.Hour+time.Second {
					t.Errorf("%d rows, %s: Run took %v", rows, how, took)
				}
				if !tally.Stopped || how == "virtual" != errors.Is(err, context.Canceled) || how != "virtual" && err != nil {
					t.Errorf("%d rows, %s: %+v, %v", rows, how, tally, err)
				}
				records, prepared := len(m.records), server.prepared
				release()
				synctest.Wait()
				if len(m.records) != records || server.prepared != prepared {
					t.Errorf("%d rows, %s: work went on after Run returned", rows, how)
				}
			})
		}
	}
}
