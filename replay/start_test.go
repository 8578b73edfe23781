package replay

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moontide/trace"
)

// startServer is an openServer whose calls are Starters.
type startServer struct {
	*openServer
	cost time.Duration

	mu      sync.Mutex
	started []int // rows, in the order of Start
	at      map[int]time.Time
	unnoted []int // started before the journal had them
	journal *notes
}

func (s *startServer) Prepare(r trace.Request, row int) (Call, error) {
	call, err := s.openServer.Prepare(r, row)
	return &startCall{openCall: call.(*openCall), server: s}, err
}

type startCall struct {
	*openCall
	server  *startServer
	started bool
}

func (c *startCall) Start() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.started || c.state == "sent" || c.state == "opening" || c.state == "discarded" {
		panic("a call that is " + c.state + " starts")
	}
	c.started = true
	c.server.started = append(c.server.started, c.row)
	c.server.at[c.row] = time.Now()
	if j := c.server.journal; j != nil && !j.has(c.row) {
		c.server.unnoted = append(c.server.unnoted, c.row)
	}
	time.Sleep(c.server.cost)
}

func (c *startCall) Discard() {
	if c.started {
		panic("a call that was started is discarded")
	}
	c.openCall.Discard()
}

func newStartServer(cost time.Duration, opens func(context.Context, int)) *startServer {
	return &startServer{openServer: newOpenServer(msec, opens), cost: cost, at: map[int]time.Time{}}
}

// Simultaneous requests are sent back to back, in trace order.
func TestOfManyEachLeavesBehindTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cost, n = 15 * time.Microsecond, 50
		server, m := newStartServer(cost, takes(0)), &memory{}
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
		server, m := newStartServer(0, func(ctx context.Context, row int) {
			if row == 1 {
				takes(time.Second)(ctx, row)
			}
		}), &memory{}
		tally, err := (&Runner{Client: server, Recorder: m}).Run(t.Context(), trace.FromSlice(atMS(0, 0, 0)))
		if err != nil || tally.Sent != 3 || !slices.Equal(server.started, []int{0, 2}) || len(m.records) != 3 {
			t.Errorf("%+v, %v, started %v", tally, err, server.started)
		}
	})
}

// The journal has each row once, before it is started. A row that the journal
// could not take is neither started nor sent, and nothing is sent after it.
func TestNotedBeforeItIsStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, later := range [][]float64{{19}, {9, 9, 9, 30}} {
			for _, ends := range []bool{false, true} { // the user ends the run at the same time
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				server, noted := newStartServer(0, takes(0)), &notes{}
				if ends {
					noted.refused = cancel
				}
				server.journal, server.took = noted, always(15*msec)
				runner := &Runner{Client: server, Recorder: noted, Duration: 20 * msec}
				tally, err := runner.Run(ctx, trace.FromSlice(atMS(append([]float64{0, 0}, later...)...)))
				if err == nil || err.Error() != "disk full" || !tally.Stopped || tally.Sent != 2 || len(noted.records) != 2 || !slices.Equal(server.started, []int{0, 1}) || len(server.unnoted) > 0 {
					t.Errorf("%+v, %v, started %v, before they were noted %v", tally, err, server.started, server.unnoted)
				}
				if want := map[int]int{0: 1, 1: 1, 2: 1}; !maps.Equal(noted.times, want) {
					t.Errorf("noted %v, want %v", noted.times, want)
				}
				if s := runner.Status(); server.unused != 0 || server.opening != 0 || s.InFlight != 0 {
					t.Errorf("%d connections unused, %d opening, %+v", server.unused, server.opening, s)
				}
			}
		}
	})
}
