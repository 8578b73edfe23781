package replay

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moontide/trace"
)

// openServer is a fakeServer whose connections take time to open.
type openServer struct {
	fakeServer
	opens func(ctx context.Context, row int)

	mu        sync.Mutex
	began     map[int]time.Time // Open, by row
	opening   int               // calls of Open under way
	unused    int               // opened, and neither sent nor discarded
	most      int               // connections at once
	discarded int
}

func (s *openServer) Prepare(r trace.Request, row int) (Call, error) {
	call, err := s.fakeServer.Prepare(r, row)
	return &openCall{Call: call, server: s, row: row}, err
}

type openCall struct {
	Call
	server *openServer
	row    int
	state  string
}

func (c *openCall) to(state string, f func(s *openServer)) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	was := c.state
	legal := map[string]string{"opening": "", "opened": "opening", "discarded": "opened"}
	if from, ok := legal[state]; ok && was != from || state == "sent" && was != "" && was != "opened" {
		panic("a call that is " + was + " becomes " + state)
	}
	if was == "opened" {
		c.server.unused--
	}
	c.state = state
	f(c.server)
}

func (c *openCall) Open(ctx context.Context) {
	c.to("opening", func(s *openServer) { s.began[c.row] = time.Now(); s.opening++ })
	c.server.opens(ctx, c.row)
	c.to("opened", func(s *openServer) {
		s.opening--
		s.unused++
		s.fakeServer.mu.Lock()
		s.most = max(s.most, s.unused+s.flying)
		s.fakeServer.mu.Unlock()
	})
}

func (c *openCall) Discard() { c.to("discarded", func(s *openServer) { s.discarded++ }) }

func (c *openCall) Send(ctx context.Context) Outcome {
	c.to("sent", func(*openServer) {})
	return c.Call.Send(ctx)
}

func newOpenServer(answer time.Duration, opens func(ctx context.Context, row int)) *openServer {
	return &openServer{fakeServer: fakeServer{took: always(answer)}, opens: opens, began: map[int]time.Time{}}
}

func takes(d time.Duration) func(context.Context, int) {
	return func(ctx context.Context, _ int) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
}

func everyMS(n int, gap float64) (ms []float64) {
	for i := range n {
		ms = append(ms, 1000+float64(i)*gap)
	}
	return ms
}

// A connection is open when a request is due, including the first one, and was not
// opened long before.
func TestConnectionsAreOpenedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, m := newOpenServer(msec, takes(openLead)), &memory{}
		rows := atMS(append([]float64{0, 1}, everyMS(100, 7)...)...)
		for i := range 3 { // and later turns
			rows[30*i].SessionID = "s"
			rows = append(rows, trace.Request{SessionID: "s", Delay: trace.Some(2000.0)})
		}
		tally, err := (&Runner{Client: server, Recorder: m}).Run(t.Context(), trace.FromSlice(rows))
		if err != nil || tally.Sent != len(rows) {
			t.Fatalf("%+v, %v", tally, err)
		}
		for row, rec := range m.records {
			ahead := tally.Start.Add(rec.Ready).Sub(server.began[row])
			if ahead < openLead || ahead > 2*openLead || rec.Sent.Value != rec.Ready || rec.ConnectTime != 0 {
				t.Fatalf("row %d: opened %v ahead, sent %v after it was ready, opening %v", row, ahead, rec.Sent.Value-rec.Ready, rec.ConnectTime)
			}
		}
		if server.unused != 0 || server.discarded != 0 {
			t.Errorf("%d connections unused, %d discarded", server.unused, server.discarded)
		}
	})
}

// The wait for a slow connection is separate from the client's own lateness.
func TestSlowConnectionsAreNotTheClientsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, m := newOpenServer(msec, takes(500*msec)), &memory{}
		tally, err := (&Runner{Client: server, Recorder: m}).Run(t.Context(), trace.FromSlice(atMS(1000)))
		if err != nil {
			t.Fatal(err)
		}
		rec := m.records[0]
		want := server.began[0].Sub(tally.Start) + 500*msec
		if rec.Ready != time.Second || rec.Sent.Value != want || rec.ConnectTime != want-time.Second || rec.ClientLag() != trace.Some(time.Duration(0)) {
			t.Errorf("ready at %v, sent at %v, opening %v, want %v and the rest", rec.Ready, rec.Sent.Value, rec.ConnectTime, want)
		}
	})
}

// MaxConcurrency also limits connections: a request without a slot opens none.
func TestNoConnectionWithoutASlot(t *testing.T) {
	for _, limit := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			server, m := newOpenServer(20*msec, takes(msec)), &memory{}
			runner := &Runner{Client: server, Recorder: m, MaxConcurrency: limit}
			if _, err := runner.Run(t.Context(), trace.FromSlice(atMS(everyMS(200, 5)...))); err != nil {
				t.Fatal(err)
			}
			if server.most > limit || len(server.began) == 0 || len(m.records) != 200 {
				t.Errorf("limit %d: %d connections at once, %d opened ahead, %d records", limit, server.most, len(server.began), len(m.records))
			}
		})
	}
}

func TestOpenedAheadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, m := newOpenServer(0, takes(0)), &memory{}
		runner := &Runner{Client: server, Recorder: m, Ahead: 8}
		if _, err := runner.Run(t.Context(), trace.FromSlice(atMS(everyMS(500, 0.5)...))); err != nil {
			t.Fatal(err)
		}
		if server.most < 2 || server.most > 9 { // one may be on its way
			t.Errorf("%d connections at once", server.most)
		}
	})
}

// Connections opened for unsent requests are discarded, however the run ends.
func TestWhatIsNotSentIsDiscarded(t *testing.T) {
	for _, how := range []string{"drained", "cancelled", "failed"} {
		for _, opening := range []time.Duration{0, 24 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				server, m := newOpenServer(msec, takes(0)), &memory{}
				server.opens = func(ctx context.Context, row int) {
					if row > 5 {
						takes(opening)(ctx, row)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				drain := make(chan struct{})
				switch how {
				case "drained":
					time.AfterFunc(1002*msec, func() { close(drain) })
				case "cancelled":
					time.AfterFunc(1002*msec, cancel)
				case "failed":
					m.fail = errors.New("no space left")
				}
				runner := &Runner{Client: server, Recorder: m, Drain: drain}
				began := time.Now()
				tally, _ := runner.Run(ctx, trace.FromSlice(atMS(everyMS(100, 4)...)))
				if !tally.Stopped || server.discarded == 0 || server.unused != 0 || server.opening != 0 || time.Since(began) > 2*time.Second {
					t.Errorf("%s: %+v after %v; %d opened, %d unused, %d discarded", how, tally, time.Since(began), len(server.began), server.unused, server.discarded)
				}
			})
		}
	}
}
