package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"moontide/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer is a Client whose answers take the time returned by took. It runs on
// the bubble's clock, so instants can be compared for equality.
type fakeServer struct {
	took    func(r trace.Request) time.Duration
	class   func(r trace.Request) Class
	prepare func(r trace.Request) error

	mu       sync.Mutex
	prepared int
	flying   int
	most     int
}

func (s *fakeServer) Prepare(r trace.Request, row int) (Call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepared++
	if s.prepare != nil {
		if err := s.prepare(r); err != nil {
			return nil, err
		}
	}
	return fakeCall{s, r}, nil
}

type fakeCall struct {
	server *fakeServer
	r      trace.Request
}

func (c fakeCall) Send(ctx context.Context) Outcome {
	s := c.server
	s.mu.Lock()
	s.flying++
	s.most = max(s.most, s.flying)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.flying--; s.mu.Unlock() }()
	o := Outcome{Sent: time.Now()}
	select {
	case <-time.After(s.took(c.r)):
		o.First, o.Last = time.Now(), time.Now()
		o.Counts.Output = trace.Some(1)
	case <-ctx.Done():
		o.Class = Canceled
	}
	if s.class != nil && o.Class == OK {
		o.Class = s.class(c.r)
	}
	o.Done = time.Now()
	return o
}

// memory is a Recorder that keeps records by row.
type memory struct {
	records map[int]Record
	fail    error // after one record
	tally   Tally
}

func (m *memory) Record(rec Record) error {
	if m.fail != nil && len(m.records) == 1 {
		return m.fail
	}
	if m.records == nil {
		m.records = map[int]Record{}
	}
	m.records[rec.Row] = rec
	return nil
}

func always(d time.Duration) func(trace.Request) time.Duration {
	return func(trace.Request) time.Duration { return d }
}

func atMS(ms ...float64) []trace.Request {
	var rows []trace.Request
	for _, m := range ms {
		rows = append(rows, trace.Request{Timestamp: trace.Some(m), InputLength: 1, OutputLength: 1})
	}
	return rows
}

func scan(t testing.TB, rows []trace.Request) Plan {
	t.Helper()
	plan, err := Scan(trace.FromSlice(rows))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// mustRun runs rows on a Runner or VirtualRunner without an error.
func mustRun(t testing.TB, r interface {
	Run(context.Context, trace.Requests) (Tally, error)
}, rows []trace.Request) Tally {
	t.Helper()
	tally, err := r.Run(t.Context(), trace.FromSlice(rows))
	if err != nil {
		t.Fatal(err)
	}
	return tally
}

// rowsOf returns f of each row's record.
func rowsOf[T any](m *memory, n int, f func(Record) T) []T {
	var out []T
	for i := range n {
		out = append(out, f(m.records[i]))
	}
	return out
}

// replayed runs rows on a clock of its own, in which nothing takes time but answers.
func replayed(t *testing.T, r *Runner, rows []trace.Request) (m *memory, tally Tally, took time.Duration) {
	t.Helper()
	m = &memory{}
	synctest.Test(t, func(t *testing.T) {
		var err error
		began := time.Now()
		r.Recorder = m
		if tally, err = r.Run(t.Context(), trace.FromSlice(rows)); err != nil {
			t.Fatal(err)
		}
		took = time.Since(began)
	})
	return m, tally, took
}

func sentAt(r Record) time.Duration { return r.Sent.Value }

const msec = time.Millisecond

func equal[T comparable](t *testing.T, what string, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// arrival is a row that arrives at a time, and turn one that is due a delay after the row
// before of its session. Both are in ms.
func arrival(session string, ms float64) trace.Request {
	return trace.Request{SessionID: session, Timestamp: trace.Some(ms), InputLength: 1, OutputLength: 1}
}

func turn(session string, delay float64) trace.Request {
	return trace.Request{SessionID: session, Delay: trace.Some(delay), InputLength: 1, OutputLength: 1}
}

// Due times are offsets from the start, which nothing moves. A request is sent when it is
// ready: due, with the rows over that it waits for, and with a slot. In a closed loop a
// request is due when there is room for it, and sessions that go on come before others.
func TestWhenRequestsAreSent(t *testing.T) {
	lengths := atMS(0, 0, 0, 0, 0)
	for i, took := range []int{30, 10, 10, 50, 10} {
		lengths[i].InputLength = took
	}
	early, late := arrival("s", 150), arrival("s", 5000) // its turn comes long after its arrival, and long before
	graph := []trace.Request{arrival("", 0), turn("", 5), arrival("", 50)}
	graph[0].ID, graph[1].After, graph[2].ID = "a", []string{"a", "later"}, "later"
	for name, test := range map[string]struct {
		runner     *Runner
		took       func(trace.Request) time.Duration
		rows       []trace.Request
		due, ready []float64 // ms; ready is nil if it is due
	}{
		"slow server": {&Runner{Ahead: 1}, always(10 * time.Second), atMS(0, 0, 1.5, 3_600_000), []float64{0, 0, 1.5, 3_600_000}, nil},
		"limit":       {&Runner{MaxConcurrency: 2}, always(10 * msec), atMS(0, 0, 0, 1, 50), []float64{0, 0, 0, 1, 50}, []float64{0, 0, 10, 10, 50}},
		"turns": {
			&Runner{}, always(100 * msec), []trace.Request{arrival("s", 10), turn("s", 20), arrival("", 15), early, {SessionID: "s"}, late, turn("s", 0.5)},
			[]float64{10, 130, 15, 150, 330, 5000, 5100.5}, []float64{10, 130, 15, 230, 330, 5000, 5100.5},
		},
		"later row": {&Runner{Graph: scan(t, graph).Graph}, always(20 * msec), graph, []float64{0, 75, 50}, nil},
		"closed loop": {
			&Runner{MaxConcurrency: 2, Closed: true}, func(r trace.Request) time.Duration { return time.Duration(r.InputLength) * msec },
			lengths, []float64{0, 0, 10, 20, 30}, nil,
		},
		"closed loop of sessions": { // a a b (while a thinks) b a c c
			&Runner{MaxConcurrency: 1, Closed: true}, always(10 * msec),
			[]trace.Request{arrival("a", 0), arrival("b", 0), arrival("c", 0), arrival("a", 0), arrival("b", 0), arrival("c", 0), turn("a", 15)},
			[]float64{0, 20, 50, 10, 30, 60, 40}, nil,
		},
	} {
		server := &fakeServer{took: test.took}
		test.runner.Client = server
		m, tally, _ := replayed(t, test.runner, test.rows)
		if test.ready == nil {
			test.ready = test.due
		}
		for i, row := range test.rows {
			rec, ready := m.records[i], Milliseconds(test.ready[i])
			if rec.Due != Milliseconds(test.due[i]) || rec.Ready != ready || rec.Sent != trace.Some(ready) || rec.Done != ready+test.took(row) {
				t.Errorf("%s: row %d is due at %v, ready at %v, sent at %v, done at %v", name, i, rec.Due, rec.Ready, rec.Sent.Value, rec.Done)
			}
		}
		if limit := test.runner.MaxConcurrency; tally.Sent != len(test.rows) || tally.Failed+tally.Skipped != 0 || tally.Stopped || limit > 0 && server.most != limit {
			t.Errorf("%s: %+v, %d in flight at once", name, tally, server.most)
		}
	}
}

// Whatever ends a run, all that was sent is recorded: Drain lets requests in flight finish,
// the end of the context cuts them short, and failures of the recorder or the trace fail
// the run.
func TestWhatEndsARun(t *testing.T) {
	broken := errors.New("broken")
	rows := trace.FromSlice(atMS(0, 10, 20, 30))
	for name, test := range map[string]struct {
		reqs  trace.Requests
		end   func(r *Runner, m *memory, cancel func())
		err   error
		tally Tally
	}{
		"drain": {rows, func(r *Runner, _ *memory, _ func()) {
			drain := make(chan struct{})
			r.Drain = drain
			time.AfterFunc(15*msec, func() { close(drain) })
		}, nil, Tally{Sent: 2, Stopped: true}},
		"cancel":     {rows, func(_ *Runner, _ *memory, cancel func()) { time.AfterFunc(15*msec, cancel) }, nil, Tally{Sent: 2, Failed: 2, Canceled: 2, Stopped: true}},
		"full disk":  {rows, func(_ *Runner, m *memory, _ func()) { m.fail = broken }, broken, Tally{Sent: 2, Unrecorded: 1, Stopped: true}},
		"bad stream": {func(yield func(trace.Request, error) bool) { yield(trace.Request{}, broken) }, nil, broken, Tally{Stopped: true}},
		"no rows":    {trace.FromSlice(nil), nil, nil, Tally{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			took := 100 * msec
			if test.err != nil {
				took = msec
			}
			m := &memory{}
			runner := &Runner{Client: &fakeServer{took: always(took)}, Recorder: m}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.end != nil {
				test.end(runner, m, cancel)
			}
			tally, err := runner.Run(ctx, test.reqs)
			start := tally.Start
			if tally.Start = (time.Time{}); !errors.Is(err, test.err) || tally != test.tally || len(m.records) != tally.Sent-tally.Unrecorded {
				t.Errorf("%s: %+v, %v, %d records", name, tally, err, len(m.records))
			}
			for row, rec := range m.records {
				if canceled := name == "cancel"; canceled && (rec.Class != Canceled || rec.Done != 15*msec) || !canceled && rec.Done != rec.Sent.Value+took {
					t.Errorf("%s: row %d ended %v at %v", name, row, rec.Class, rec.Done)
				}
			}
			if _, err := runner.Run(ctx, test.reqs); !errors.Is(err, ErrReused) || start.IsZero() {
				t.Errorf("%s: a second run: %v", name, err)
			}
			runner = &Runner{Client: runner.Client, Sessions: SessionLimits{Open: 1}}
			if _, err := runner.Run(t.Context(), test.reqs); !errors.Is(err, ErrNoGraph) {
				t.Errorf("limits of sessions without a graph: %v", err)
			}
		})
	}
}

// Turns in their think time delay nothing and take no memory: their bodies are prepared
// shortly before they are due, and those of other rows in a bounded number.
func TestThinkingSessionsHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, ahead = 100, 8
		server, m := &fakeServer{}, &memory{}
		var rows []trace.Request
		for i := range sessions {
			rows = append(rows, arrival(fmt.Sprint(i), 0))
		}
		for i := range sessions {
			rows = append(rows, turn(fmt.Sprint(i), 15_000))
		}
		want := map[int]time.Duration{}
		for i := range sessions {
			want[i], want[sessions+i], want[2*sessions+i] = 0, 15_010*msec, time.Duration(1000+i)*msec
			rows = append(rows, atMS(float64(1000 + i))[0])
		}
		sent := 0
		server.took = func(trace.Request) time.Duration {
			server.mu.Lock()
			defer server.mu.Unlock()
			// In the channel, in the schedule, one on its way between them, and the one that
			// is being sent.
			if sent++; sent > sessions && sent < 2*sessions-ahead && (server.prepared-sent+1 > 2*ahead+2 || server.prepared < sent+ahead/2) {
				t.Errorf("%d requests are prepared, %d sent", server.prepared, sent)
			}
			return 10 * msec
		}
		mustRun(t, &Runner{Client: server, Recorder: m, Ahead: ahead}, rows)
		for row, at := range want {
			if got := sentAt(m.records[row]); got != at {
				t.Fatalf("row %d was sent at %v, want %v", row, got, at)
			}
		}
	})
}

// Nothing is sent after Drain is closed or the user has canceled the run.
func TestNothingIsSentBehindTheEnd(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	drain := make(chan struct{})
	close(drain)
	for n := range 100 { // a select takes any of what is there
		m := &memory{}
		runner, ctx := &Runner{Client: &fakeServer{took: always(0)}, Recorder: m, Drain: drain}, t.Context()
		if n%2 == 0 {
			runner.Drain, ctx = nil, canceled
		}
		tally, err := runner.Run(ctx, trace.FromSlice(atMS(0, 0, 0)))
		if err != nil || !tally.Stopped || tally.Sent != 0 || len(m.records) != 0 {
			t.Fatalf("%+v, %v, %d records", tally, err, len(m.records))
		}
	}
}

// A request that cannot be prepared fails, and the run goes on without it.
func TestUnpreparedRequestsFail(t *testing.T) {
	prepare := func(r trace.Request) error {
		if r.InputLength == 7 {
			return errors.New("no text")
		}
		return nil
	}
	rows := []trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 7},
		{Timestamp: trace.Some(1.0)},
		{SessionID: "s", Timestamp: trace.Some(2.0)}, {SessionID: "s", InputLength: 7, Delay: trace.Some(1.0)},
		{Timestamp: trace.Some(20.0)},
	}
	m, tally, _ := replayed(t, &Runner{Client: &fakeServer{took: always(msec), prepare: prepare}}, rows)
	if tally.Sent != 5 || tally.Failed != 2 {
		t.Fatalf("%+v", tally)
	}
	for row, rec := range m.records {
		want := Record{}
		if rows[row].InputLength == 7 {
			want.Class, want.Error = ClientFault, "preparing the request: no text"
		}
		if rec.Class != want.Class || rec.Error != want.Error || rec.Sent.Set != (want.Class == OK) {
			t.Errorf("row %d: %v %q, sent %v", row, rec.Class, rec.Error, rec.Sent)
		}
	}
}

// Turns that are due and have to wait for a slot are rows for the most part. They
// are sent in the order of their times even so.
func TestTurnsThatAreHeldAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, ahead = 500, 8
		server, m := &fakeServer{}, &memory{}
		var rows []trace.Request
		for i := range sessions {
			rows = append(rows, arrival(fmt.Sprint(i), 0))
			// A think time in another order than that of the turns before.
			rows = append(rows, turn(fmt.Sprint(i), float64(1+(i*7)%13)))
		}
		sent, most := 0, 0
		server.took = func(trace.Request) time.Duration {
			server.mu.Lock()
			defer server.mu.Unlock()
			sent++
			most = max(most, server.prepared-sent)
			return 10 * msec
		}
		plan := scan(t, rows)
		runner := &Runner{Client: server, Recorder: m, MaxConcurrency: 4, Ahead: ahead, Graph: plan.Graph}
		mustRun(t, runner, rows)
		// Rows in the channel and in the schedule, as many turns, and those that
		// went before others.
		if most > 4*ahead || len(m.records) != len(rows) {
			t.Errorf("%d requests were prepared and waited, %d records", most, len(m.records))
		}
		records := slices.SortedFunc(maps.Values(m.records), func(a, b Record) int {
			return cmp.Or(cmp.Compare(a.Sent.Value, b.Sent.Value), cmp.Compare(a.Due, b.Due))
		})
		for i, rec := range records[1:] {
			if before := records[i]; before.Due > rec.Due && rec.Due < before.Ready && before.Sent.Value < rec.Sent.Value {
				t.Fatalf("row %d, due at %v, was sent at %v, after row %d, due at %v and sent at %v", rec.Row, rec.Due, rec.Sent.Value, before.Row, before.Due, before.Sent.Value)
			}
		}
	})
}

// As many turns as are prepared at once are due in a while, and keep none waiting
// that is due before them.
func TestSoonerTurnsOvertake(t *testing.T) {
	const ahead, late = 8, 20
	var rows []trace.Request
	for i := range late {
		rows = append(rows, arrival(fmt.Sprint(i), 0), turn(fmt.Sprint(i), 900))
	}
	rows = append(rows, arrival("soon", 100), turn("soon", 5))
	m, _, _ := replayed(t, &Runner{Client: &fakeServer{took: always(10 * msec)}, Ahead: ahead}, rows)
	for row, rec := range m.records {
		want := time.Duration(row%2) * 910 * msec
		switch row - 2*late {
		case 0:
			want = 100 * msec
		case 1:
			want = 115 * msec
		}
		if rec.Sent.Value != want {
			t.Errorf("row %d was sent at %v, want %v", row, rec.Sent.Value, want)
		}
	}
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, m := &fakeServer{took: always(100 * msec)}, &memory{}
		runner := &Runner{Client: server, Recorder: m}
		during := make(chan Status, 1)
		time.AfterFunc(105*msec, func() { during <- runner.Status() })
		tally := mustRun(t, runner, atMS(0, 50))
		if got, want := <-during, (Status{Sent: 2, Done: 1, InFlight: 1, OutputTokens: 1, Start: tally.Start}); got != want {
			t.Errorf("%+v, not %+v", got, want)
		}
	})
}
