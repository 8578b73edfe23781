package replay

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moontide/trace"
)

// openServer is a fakeServer whose connections take time to open.
type openServer struct {
	fakeServer
	opens  func(ctx context.Context, row int)
	starts bool          // its calls are Starters
	cost   time.Duration // of Start

	mu        sync.Mutex
	began     map[int]time.Time // Open, by row
	opening   int               // calls of Open under way
	unused    int               // opened, and neither sent nor discarded
	most      int               // connections at once
	discarded int
	started   []int // rows, in the order of Start
	at        map[int]time.Time
	unnoted   []int // sent before the journal had them
	journal   *notes
}

func (s *openServer) Prepare(r trace.Request, row int) (Call, error) {
	call, err := s.fakeServer.Prepare(r, row)
	c := &openCall{Call: call, server: s, row: row}
	if s.starts {
		return &startCall{openCall: c}, err
	}
	return c, err
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
	c.to("sent", func(s *openServer) { s.note(c.row) })
	return c.Call.Send(ctx)
}

// note notes a row that the journal does not have.
func (s *openServer) note(row int) {
	if s.journal != nil && !s.journal.has(row) {
		s.unnoted = append(s.unnoted, row)
	}
}

type startCall struct {
	*openCall
	started bool
}

func (c *startCall) Start() {
	defer time.Sleep(c.server.cost) // after the mutex is free
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.started || c.state == "sent" || c.state == "opening" || c.state == "discarded" {
		panic("a call that is " + c.state + " starts")
	}
	c.started = true
	c.server.started = append(c.server.started, c.row)
	c.server.at[c.row] = time.Now()
	c.server.note(c.row)
}

func (c *startCall) Discard() {
	if c.started {
		panic("a call that was started is discarded")
	}
	c.openCall.Discard()
}

func newOpenServer(answer time.Duration, opens func(ctx context.Context, row int)) *openServer {
	return &openServer{fakeServer: fakeServer{took: always(answer)}, opens: opens, began: map[int]time.Time{}, at: map[int]time.Time{}}
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
		tally := mustRun(t, &Runner{Client: server, Recorder: m}, atMS(1000))
		rec := m.records[0]
		want := server.began[0].Sub(tally.Start) + 500*msec
		if rec.Ready != time.Second || rec.Sent.Value != want || rec.ConnectTime != want-time.Second || rec.ClientLag() != trace.Some(time.Duration(0)) {
			t.Errorf("ready at %v, sent at %v, opening %v, want %v and the rest", rec.Ready, rec.Sent.Value, rec.ConnectTime, want)
		}
	})
}

// MaxConcurrency also limits connections: a request without a slot opens none. Ahead limits
// those that are opened ahead.
func TestConnectionsAreBounded(t *testing.T) {
	for _, c := range []struct {
		limit, ahead int
		answer       time.Duration
		gap          float64 // ms between requests
		fewest, most int
	}{{1, 0, 20 * msec, 5, 1, 1}, {3, 0, 20 * msec, 5, 1, 3}, {0, 8, 0, 0.5, 2, 9}} { // one may be on its way
		synctest.Test(t, func(t *testing.T) {
			server, m := newOpenServer(c.answer, takes(0)), &memory{}
			runner := &Runner{Client: server, Recorder: m, MaxConcurrency: c.limit, Ahead: c.ahead}
			mustRun(t, runner, atMS(everyMS(200, c.gap)...))
			if server.most < c.fewest || server.most > c.most || len(server.began) == 0 || len(m.records) != 200 {
				t.Errorf("%+v: %d connections at once, %d opened ahead, %d records", c, server.most, len(server.began), len(m.records))
			}
		})
	}
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

// Simultaneous requests are sent back to back, in trace order.
func TestOfManyEachLeavesBehindTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cost, n = 15 * time.Microsecond, 50
		server, m := newOpenServer(msec, takes(0)), &memory{}
		server.starts, server.cost = true, cost
		rows := atMS(slices.Repeat([]float64{1000}, n)...)
		tally, err := (&Runner{Client: server, Recorder: m}).Run(t.Context(), trace.FromSlice(rows))
		if err != nil || tally.Sent != n || len(m.records) != n || len(server.started) != n {
			t.Fatalf("%+v, %v, %d started", tally, err, len(server.started))
		}
		for i, row := range server.started {
			if at := server.at[row].Sub(tally.Start); row != i || at != Milliseconds(1000)+time.Duration(i)*cost {
				t.Fatalf("row %d starts %d-th, at %v", row, i, at)
			}
		}
	})
}

// A call whose connection is still being opened is not started: Send waits.
func TestNotStartedWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, m := newOpenServer(msec, func(ctx context.Context, row int) {
			if row == 1 {
				takes(time.Second)(ctx, row)
			}
		}), &memory{}
		server.starts = true
		tally, err := (&Runner{Client: server, Recorder: m}).Run(t.Context(), trace.FromSlice(atMS(0, 0, 0)))
		if err != nil || tally.Sent != 3 || !slices.Equal(server.started, []int{0, 2}) || len(m.records) != 3 {
			t.Errorf("%+v, %v, started %v", tally, err, server.started)
		}
	})
}

// The journal has each row once, before it is started or sent. A row that the journal
// could not take is neither, and nothing is sent after it; its connection is discarded.
func TestNotedBeforeItIsSent(t *testing.T) {
	for _, starts := range []bool{true, false} {
		for _, later := range [][]float64{{19}, {9, 9, 9, 30}} {
			for _, ends := range []bool{false, true} { // the user ends the run at the same time
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					server, noted := newOpenServer(15*msec, takes(0)), &notes{}
					if ends {
						noted.refused = cancel
					}
					server.journal, server.starts = noted, starts
					runner := &Runner{Client: server, Recorder: noted, Duration: 20 * msec}
					tally, err := runner.Run(ctx, trace.FromSlice(atMS(append([]float64{0, 0}, later...)...)))
					sent := len(noted.times) - 1 // rows with the refused one may have been under way
					if err == nil || err.Error() != "disk full" || !tally.Stopped || tally.Sent != sent || len(noted.records) != sent || len(server.unnoted) > 0 || starts && !slices.Equal(server.started, []int{0, 1}) {
						t.Errorf("%+v, %v, started %v, before they were noted %v", tally, err, server.started, server.unnoted)
					}
					if starts && !maps.Equal(noted.times, map[int]int{0: 1, 1: 1, 2: 1}) {
						t.Errorf("noted %v", noted.times)
					}
					if s := runner.Status(); server.unused != 0 || server.opening != 0 || s.Sent != sent || s.InFlight != 0 {
						t.Errorf("%d connections unused, %d opening, %+v", server.unused, server.opening, s)
					}
				})
			}
		}
	}
}
