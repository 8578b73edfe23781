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

func sentAt(r Record) time.Duration  { return r.Sent.Value }
func dueAt(r Record) time.Duration   { return r.Due }
func readyAt(r Record) time.Duration { return r.Ready }

const msec = time.Millisecond

func equal[T comparable](t *testing.T, what string, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A slow server moves nothing: due times are offsets from the start.
func TestRequestsLeaveWhenTheTraceSays(t *testing.T) {
	m, tally, _ := replayed(t, &Runner{Client: &fakeServer{took: always(10 * time.Second)}, Ahead: 1}, atMS(0, 0, 1.5, 3_600_000))
	for name, f := range map[string]func(Record) time.Duration{"due": dueAt, "ready": readyAt, "sent": sentAt} {
		equal(t, name, rowsOf(m, 4, f), 0, 0, 1500*time.Microsecond, time.Hour)
	}
	equal(t, "done", rowsOf(m, 4, func(r Record) time.Duration { return r.Done }),
		10*time.Second, 10*time.Second, 10*time.Second+1500*time.Microsecond, time.Hour+10*time.Second)
	if tally.Sent != 4 || tally.Failed != 0 || tally.Stopped {
		t.Errorf("tally: %+v", tally)
	}
}

func TestConcurrencyLimitHoldsAndSaysSo(t *testing.T) {
	server := &fakeServer{took: always(10 * msec)}
	m, _, _ := replayed(t, &Runner{Client: server, MaxConcurrency: 2}, atMS(0, 0, 0, 1, 50))
	equal(t, "due", rowsOf(m, 5, dueAt), 0, 0, 0, msec, 50*msec)
	equal(t, "ready", rowsOf(m, 5, readyAt), 0, 0, 10*msec, 10*msec, 50*msec)
	equal(t, "sent", rowsOf(m, 5, sentAt), 0, 0, 10*msec, 10*msec, 50*msec)
	if server.most != 2 {
		t.Errorf("%d in flight at once, want 2", server.most)
	}
}

func TestTurnsFollowTheTurnBefore(t *testing.T) {
	turn := func(r trace.Request) trace.Request { r.SessionID = "s"; return r }
	delay := func(ms float64) trace.Request { return turn(trace.Request{Delay: trace.Some(ms)}) }
	early := turn(atMS(150)[0]) // its turn comes long after its arrival
	late := turn(atMS(5000)[0]) // and this one's long before
	bare := turn(trace.Request{})
	rows := []trace.Request{turn(atMS(10)[0]), delay(20), atMS(15)[0], early, bare, late, delay(0.5)}
	m, tally, _ := replayed(t, &Runner{Client: &fakeServer{took: always(100 * msec)}}, rows)
	equal(t, "due", rowsOf(m, 7, dueAt), 10*msec, 130*msec, 15*msec, 150*msec, 330*msec, 5000*msec, 5100*msec+500*time.Microsecond)
	for name, f := range map[string]func(Record) time.Duration{"ready": readyAt, "sent": sentAt} {
		equal(t, name, rowsOf(m, 7, f), 10*msec, 130*msec, 15*msec, 230*msec, 330*msec, 5000*msec, 5100*msec+500*time.Microsecond)
	}
	if tally.Sent != 7 || tally.Skipped != 0 {
		t.Errorf("tally: %+v", tally)
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
			rows = append(rows, trace.Request{SessionID: fmt.Sprint(i), Timestamp: trace.Some(0.0)})
		}
		for i := range sessions {
			rows = append(rows, trace.Request{SessionID: fmt.Sprint(i), Delay: trace.Some(15_000.0)})
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

func TestDrainFinishesWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, m := &fakeServer{took: always(100 * msec)}, &memory{}
		drain := make(chan struct{})
		time.AfterFunc(15*msec, func() { close(drain) })
		runner := &Runner{Client: server, Recorder: m, Drain: drain}
		tally := mustRun(t, runner, atMS(0, 10, 20, 30))
		if tally.Sent != 2 || tally.Failed != 0 || !tally.Stopped || len(m.records) != 2 {
			t.Errorf("tally: %+v, %d records", tally, len(m.records))
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

func TestCancelEndsAtOnceAndRecordsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, m := &fakeServer{took: always(time.Hour)}, &memory{}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(15*msec, cancel)
		tally, err := (&Runner{Client: server, Recorder: m}).Run(ctx, trace.FromSlice(atMS(0, 10, 20)))
		if err != nil {
			t.Fatal(err)
		}
		if tally.Sent != 2 || tally.Failed != 2 || tally.Canceled != 2 || !tally.Stopped {
			t.Errorf("tally: %+v", tally)
		}
		for row, rec := range m.records {
			if rec.Class != Canceled || rec.Done != 15*msec {
				t.Errorf("row %d ended %v at %v", row, rec.Class, rec.Done)
			}
		}
	})
}

func TestFullDiskStopsSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left")
		server, m := &fakeServer{took: always(msec)}, &memory{fail: full}
		tally, err := (&Runner{Client: server, Recorder: m}).Run(t.Context(), trace.FromSlice(atMS(0, 10, 20, 30)))
		if !errors.Is(err, full) {
			t.Fatalf("error %v", err)
		}
		if tally.Sent != 2 || tally.Unrecorded != 1 || !tally.Stopped {
			t.Errorf("tally: %+v", tally)
		}
	})
}

func TestFailuresOfTheRunEndIt(t *testing.T) {
	broken := errors.New("broken")
	badStream := func(yield func(trace.Request, error) bool) {
		if yield(atMS(0)[0], nil) {
			yield(trace.Request{}, broken)
		}
	}
	for want, reqs := range map[error]trace.Requests{broken: badStream, nil: trace.FromSlice(nil)} {
		synctest.Test(t, func(t *testing.T) {
			server, m := &fakeServer{took: always(msec)}, &memory{}
			if _, err := (&Runner{Client: server, Recorder: m}).Run(t.Context(), reqs); !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
		})
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
			rows = append(rows, trace.Request{SessionID: fmt.Sprint(i), Timestamp: trace.Some(0.0)})
			// A think time in another order than that of the turns before.
			rows = append(rows, trace.Request{SessionID: fmt.Sprint(i), Delay: trace.Some(float64(1 + (i*7)%13))})
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
		rows = append(rows, trace.Request{SessionID: fmt.Sprint(i), Timestamp: trace.Some(0.0)}, trace.Request{SessionID: fmt.Sprint(i), Delay: trace.Some(900.0)})
	}
	rows = append(rows, trace.Request{SessionID: "soon", Timestamp: trace.Some(100.0)}, trace.Request{SessionID: "soon", Delay: trace.Some(5.0)})
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
