package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/trace"
)

// What is ready when the time is up, or later, is not sent and not waited for; what is in
// flight ends. A trace that ends before is unaffected.
func TestDurationEndsTheSending(t *testing.T) {
	for name, test := range map[string]struct {
		arrivals           []float64
		limit              int
		answer, most, took time.Duration
		sent               []time.Duration
	}{
		"open loop":   {[]float64{0, 10, 29, 30, 31, 3_600_000}, 0, 15 * msec, 30 * msec, 44 * msec, []time.Duration{0, 10 * msec, 29 * msec}},
		"a limit":     {[]float64{0, 10, 29, 30, 31, 3_600_000}, 1, 15 * msec, 30 * msec, 30 * msec, []time.Duration{0, 15 * msec}}, // the next slot is free as the time is up
		"a gap":       {[]float64{0, 3_600_000}, 0, 10 * msec, 30 * msec, 30 * msec, []time.Duration{0}},
		"a short run": {[]float64{0, 20}, 0, 10 * msec, time.Hour, 30 * msec, []time.Duration{0, 20 * msec}},
	} {
		m, tally, took := replayed(t, &Runner{Client: &fakeServer{took: always(test.answer)}, MaxConcurrency: test.limit, Duration: test.most}, atMS(test.arrivals...))
		equal(t, name, rowsOf(m, len(m.records), sentAt), test.sent...)
		if tally.TimeUp != (len(test.sent) < len(test.arrivals)) || tally.Stopped || tally.Sent != len(test.sent) || tally.Failed != 0 || took != test.took {
			t.Errorf("%s: %+v after %v", name, tally, took)
		}
	}
}

func TestTooManyErrorsEndTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{took: always(10 * msec), class: func(r trace.Request) Class {
			if r.InputLength%2 == 0 {
				return HTTPError
			}
			return OK
		}}
		rows := atMS(0, 20, 40, 55, 60, 80, 100)
		for i := range rows {
			rows[i].InputLength = i
		}
		m := &memory{}
		tally, err := (&Runner{Client: server, Recorder: m, MaxErrors: 2}).Run(t.Context(), trace.FromSlice(rows))
		// Rows 0 and 2 failed, the latter at 50 ms.
		if !errors.Is(err, ErrTooManyErrors) || err.Error() != "too many requests failed: 2" || tally.Sent != 3 || tally.Failed != 2 || !tally.Stopped || len(m.records) != 3 {
			t.Errorf("%+v, %v", tally, err)
		}
		mustRun(t, &Runner{Client: server, MaxErrors: 5}, rows)
		// The slot that the last failure leaves is not used.
		closed := &Runner{Client: server, MaxErrors: 2, MaxConcurrency: 1, Closed: true}
		tally, _ = closed.Run(t.Context(), trace.Pacing{Closed: true}.Apply(trace.FromSlice(rows)))
		if tally.Sent != 3 || tally.Failed != 2 || !tally.Stopped {
			t.Errorf("in a closed loop: %+v", tally)
		}
	})
}

// busyServer refuses each row as often as refusals specifies.
type busyServer struct {
	fakeServer
	status   int
	after    time.Duration
	mu       sync.Mutex
	refusals map[int]int
	again    []time.Duration // when a request was prepared again
	start    time.Time
}

func (s *busyServer) Prepare(r trace.Request, row int) (Call, error) { return busyCall{s, r, row}, nil }

func (s *busyServer) PrepareAgain(r trace.Request, row int) (Call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = append(s.again, time.Since(s.start))
	return busyCall{s, r, row}, nil
}

type busyCall struct {
	server *busyServer
	r      trace.Request
	row    int
}

func (c busyCall) Send(ctx context.Context) Outcome {
	s := c.server
	s.mu.Lock()
	refuse := s.refusals[c.row] > 0
	s.refusals[c.row]--
	s.mu.Unlock()
	o := fakeCall{&s.fakeServer, c.r}.Send(ctx)
	if refuse {
		o.First, o.Last, o.Counts = time.Time{}, time.Time{}, Counts{}
		o.Class, o.Status, o.RetryAfter = HTTPError, s.status, trace.Opt[time.Duration]{Value: s.after, Set: s.after >= 0}
	}
	return o
}

// A refused request is sent again when the server says, or after pauses that
// double. All instants are of the last time, and the wait was no lateness of the
// client.
func TestRetry(t *testing.T) {
	const absent = -1
	for name, tc := range map[string]struct {
		status, refusals, retries int
		after, wantReady          time.Duration
		wantRetries               int
		wantClass                 Class
	}{
		"never asked to":       {429, 1, 0, time.Second, 0, 0, HTTPError},
		"as the server says":   {429, 2, 3, 5 * time.Second, 10*time.Second + 20*msec, 2, OK},
		"unavailable":          {503, 1, 3, 5 * time.Second, 5*time.Second + 10*msec, 1, OK},
		"pauses that double":   {503, 3, 3, absent, 7*time.Second + 30*msec, 3, OK},
		"at once":              {429, 2, 3, 0, 20 * msec, 2, OK},
		"at once, and again":   {429, 9, 3, 0, 30 * msec, 3, HTTPError},
		"not often enough":     {429, 3, 2, time.Second, 2*time.Second + 20*msec, 2, HTTPError},
		"another error":        {500, 1, 3, time.Second, 0, 0, HTTPError},
		"longer than patience": {429, 1, 3, time.Hour, 0, 0, HTTPError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, m := &busyServer{status: tc.status, after: tc.after, refusals: map[int]int{0: tc.refusals}, start: time.Now()}, &memory{}
				server.took = always(10 * msec)
				rows := atMS(0, 1)
				rows[0].SessionID, rows[1].SessionID = "s", "s" // a later turn waits for the last answer
				runner := &Runner{Client: server, Recorder: m, Retries: tc.retries}
				tally := mustRun(t, runner, rows)
				rec := m.records[0]
				if rec.Due != 0 || rec.Ready != tc.wantReady || rec.Sent.Value != tc.wantReady || rec.Done != tc.wantReady+10*msec || rec.ClientLag() != trace.Some(time.Duration(0)) {
					t.Errorf("due %v, ready %v, sent %v, done %v", rec.Due, rec.Ready, rec.Sent.Value, rec.Done)
				}
				if rec.Retries != tc.wantRetries || rec.Class != tc.wantClass || tally.Failed != len(rec.Class)/6 {
					t.Errorf("%d retries, class %q, %+v", rec.Retries, rec.Class, tally)
				}
				if rec.Class == OK && m.records[1].Sent.Value != rec.Done {
					t.Errorf("the turn behind it was sent at %v", m.records[1].Sent.Value)
				}
				for _, at := range server.again {
					if at > max(tc.wantReady-prepareRetryLead, 0) && tc.after != 0 {
						t.Errorf("prepared again at %v, to be sent at %v", at, tc.wantReady)
					}
				}
			})
		})
	}
}

// No retry is sent after sending has ended.
func TestRetryEndsWithTheSending(t *testing.T) {
	for _, how := range []string{"drained", "cancelled", "time is up"} {
		synctest.Test(t, func(t *testing.T) {
			server, m := &busyServer{status: 429, after: time.Minute, refusals: map[int]int{0: 1}}, &memory{}
			server.took = always(10 * msec)
			drain := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			runner := &Runner{Client: server, Recorder: m, Retries: 1, Drain: drain}
			want := time.Second
			switch how {
			case "drained":
				time.AfterFunc(time.Second, func() { close(drain) })
			case "cancelled":
				time.AfterFunc(time.Second, cancel)
			default:
				runner.Duration, want = 30*time.Second, 10*msec // it would come too late: nothing is left to wait for
			}
			began := time.Now()
			tally, err := runner.Run(ctx, trace.FromSlice(atMS(0)))
			if rec := m.records[0]; err != nil || rec.Class != HTTPError || rec.Retries != 0 || rec.Done != 10*msec || tally.Sent != 1 || time.Since(began) != want {
				t.Errorf("%s: %+v, %v, %+v after %v", how, tally, err, rec, time.Since(began))
			}
		})
	}
}

// In virtual time a trace is replayed by the same rules as in real time: every instant of
// every record is the same.
func TestVirtualRunnerDoesWhatRunnerDoes(t *testing.T) {
	for seed := range uint64(80) {
		random := rand.New(rand.NewPCG(seed, 2))
		rows := anyRows(random, 150)
		closed := seed%2 == 0
		if closed {
			rows, _ = trace.Collect(trace.Pacing{Closed: true}.Apply(trace.FromSlice(rows)))
		}
		took, class := anyAnswers(random, len(rows))
		plan := scan(t, rows)
		duration := []time.Duration{0, 20 * time.Second, 60 * time.Second}[seed%3]
		limit := []int{1, 3, 20, 0}[seed/3%4]
		if closed {
			limit = max(limit, 1)
		}
		sessions := []SessionLimits{{}, {Open: 1}, {Open: 3, Turns: 4}, {Turns: 2}}[seed/9%4]
		var inReal, inVirtual memory
		var real Tally
		synctest.Test(t, func(t *testing.T) {
			runner := &Runner{
				Client: &fakeServer{took: took, class: class}, Recorder: &inReal,
				MaxConcurrency: limit, Closed: closed, Duration: duration, Graph: plan.Graph, Sessions: sessions,
			}
			real = mustRun(t, runner, rows)
		})
		v := VirtualRunner{
			Model: &fakeModel{took: took, class: class}, Recorder: &inVirtual,
			MaxConcurrency: limit, Closed: closed, Duration: duration, Graph: plan.Graph, Sessions: sessions,
		}
		tally := mustRun(t, &v, rows)
		if real.TimeUp { // how many rows were read by then is left open
			real.Skipped, tally.Skipped, real.Cut, tally.Cut = 0, 0, 0, 0
		}
		real.Start = time.Time{}
		if tally != real || tally.Sent == 0 || duration == 0 && tally.Sent+tally.Skipped+tally.Cut != len(rows) {
			t.Errorf("seed %d: %+v, in real time %+v", seed, tally, real)
		}
		if diff := cmp.Diff(inReal.records, inVirtual.records); diff != "" {
			t.Fatalf("seed %d, -real +virtual:\n%s", seed, diff)
		}
		for _, rec := range slices.Collect(maps.Values(inVirtual.records)) {
			if closed && rec.Due != rec.Ready || duration > 0 && rec.Ready >= duration || rec.Sent.Value != rec.Ready {
				t.Fatalf("seed %d: %+v", seed, rec)
			}
		}
	}
}

// Sessions that are over are forgotten, whether their turns failed or not.
func TestFinishedSessionsAreForgotten(t *testing.T) {
	for _, failing := range []bool{false, true} {
		random := rand.New(rand.NewPCG(7, 7))
		var rows []trace.Request
		for i := range 2000 {
			rows = append(rows, trace.Request{
				InputLength: i, SessionID: fmt.Sprint(i/20*10 + random.IntN(10)), Timestamp: trace.Some(float64(100 * i)),
			})
		}
		plan := scan(t, rows)
		s := newSchedule(scheduleConfig{graph: plan.Graph})
		most := 0
		for i, r := range rows {
			now := Milliseconds(r.Timestamp.Value)
			before := plan.Graph.Before(i)
			s.add(job{req: r, row: i, before: before, late: len(before) > 0})
			for turn, ok := s.toPrepare(now); ok; turn, ok = s.toPrepare(now) {
				s.takeTurn()
				s.push(turn)
			}
			for j, _, ok := s.next(now); ok; j, _, ok = s.next(now) {
				f := completed
				if failing && j.row%3 == 0 {
					f = failed
				}
				s.ended(j, now, f)
			}
			most = max(most, len(s.deps.ends)+len(s.deps.waiting))
		}
		if len(s.deps.ends)+len(s.deps.waiting) != 0 || most > 20 || failing != (s.skipped > 0) {
			t.Errorf("%d sessions at the end, %d at most, %d turns skipped", len(s.deps.ends)+len(s.deps.waiting), most, s.skipped)
		}
	}
}
