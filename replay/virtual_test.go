package replay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"moontide/trace"
)

// fakeModel is a Model whose answers take what took says, as a fakeServer's.
type fakeModel struct {
	took  func(r trace.Request) time.Duration
	class func(r trace.Request) Class
	ends  []Record // under way, by time
}

func (m *fakeModel) Submit(now time.Duration, row int, r trace.Request) {
	end := now + m.took(r)
	a := Record{Row: row, First: trace.Some(end), Last: trace.Some(end), Done: end, Counts: Counts{Output: trace.Some(1)}}
	if m.class != nil {
		a.Class = m.class(r)
	}
	i, _ := slices.BinarySearchFunc(m.ends, a, func(x, y Record) int { return int(x.Done - y.Done) })
	m.ends = slices.Insert(m.ends, i, a)
}

func (m *fakeModel) Next() (time.Duration, bool) {
	if len(m.ends) == 0 {
		return 0, false
	}
	return m.ends[0].Done, true
}

func (m *fakeModel) Advance(now time.Duration) (ended []Record) {
	for len(m.ends) > 0 && m.ends[0].Done <= now {
		ended = append(ended, m.ends[0])
		m.ends = m.ends[1:]
	}
	return ended
}

// anyRows are rows with sessions, graphs, delays and bursts. No two instants that
// follow from them are the same.
func anyRows(random *rand.Rand, n int) []trace.Request {
	var rows []trace.Request
	at := 0.0
	for i := range n {
		r := trace.Request{InputLength: 1 + i, OutputLength: 1}
		if random.IntN(2) == 0 {
			at += float64(random.Int64N(3e9)) / 1e6
		}
		r.Timestamp = trace.Some(at)
		if random.IntN(2) == 0 {
			r.SessionID = fmt.Sprint("s", random.IntN(4))
			if random.IntN(2) == 0 {
				r.Timestamp = trace.Opt[float64]{}
				r.Delay = trace.Some(float64(random.Int64N(5e9)) / 1e6)
			}
		}
		r.ID = fmt.Sprint(i)
		if random.IntN(4) == 0 && i > 0 {
			r.After = []string{}
			for range random.IntN(3) {
				r.After = append(r.After, fmt.Sprint(i-1-random.IntN(min(i, 8)))) // rows are in order of arrival
			}
			if len(r.After) == 0 {
				r.Timestamp, r.Delay = trace.Some(at), trace.Opt[float64]{}
			}
		}
		rows = append(rows, r)
	}
	rows[0].Timestamp, rows[0].Delay = trace.Some(0.0), trace.Opt[float64]{}
	return rows
}

// anyAnswers is how long a server takes for each of anyRows, up to four
// seconds, and how they end.
func anyAnswers(random *rand.Rand, rows int) (took func(trace.Request) time.Duration, class func(trace.Request) Class) {
	times := make([]time.Duration, rows)
	for i := range times {
		times[i] = time.Duration(1 + random.Int64N(4e9))
	}
	took = func(r trace.Request) time.Duration { return times[r.InputLength-1] }
	class = func(r trace.Request) Class {
		if r.InputLength%29 == 0 {
			return Timeout
		}
		return OK
	}
	return took, class
}

func TestVirtualRunnerStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	rows := func(yield func(trace.Request, error) bool) {
		for {
			if n++; n == 5000 {
				cancel()
			}
			if !yield(trace.Request{Timestamp: trace.Some(float64(n)), InputLength: 1, OutputLength: 1}, nil) {
				return
			}
		}
	}
	var m memory
	tally, err := (&VirtualRunner{Model: &fakeModel{took: always(10 * msec)}, Recorder: &m}).Run(ctx, rows)
	if !errors.Is(err, context.Canceled) || !tally.Stopped || n > 10_000 || tally.Sent != len(m.records)+tally.Unrecorded {
		t.Errorf("%+v, %v after %d rows, %d records", tally, err, n, len(m.records))
	}
}

// However many requests become ready at once, all are sent at that time.
func TestVirtualRunnerSendsAllThatIsReady(t *testing.T) {
	rows := func(yield func(trace.Request, error) bool) {
		for range 10 * virtualAhead {
			if !yield(trace.Request{Timestamp: trace.Some(0.0), InputLength: 1, OutputLength: 1}, nil) {
				return
			}
		}
	}
	var m memory
	runner := VirtualRunner{Model: &fakeModel{took: always(time.Second)}, Recorder: &m, MaxConcurrency: 5 * virtualAhead}
	if _, err := runner.Run(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	for i, rec := range m.records {
		if want := time.Duration(i/runner.MaxConcurrency) * time.Second; rec.Sent.Value != want || rec.Ready != want {
			t.Fatalf("request %d is ready at %v and sent at %v, want %v", rec.Row, rec.Ready, rec.Sent.Value, want)
		}
	}
}

func TestVirtualRunnerFails(t *testing.T) {
	broken := errors.New("broken")
	bad := func(yield func(trace.Request, error) bool) {
		if yield(atMS(0)[0], nil) {
			yield(trace.Request{}, broken)
		}
	}
	run := func(m Model, r Recorder, rows trace.Requests) error {
		_, err := (&VirtualRunner{Model: m, Recorder: r}).Run(t.Context(), rows)
		return err
	}
	if err := run(&fakeModel{took: always(1)}, &memory{}, bad); !errors.Is(err, broken) {
		t.Errorf("a row that cannot be read: %v", err)
	}
	if err := run(&fakeModel{took: always(1)}, &memory{fail: broken}, trace.FromSlice(atMS(0, 1, 2))); !errors.Is(err, broken) {
		t.Errorf("a recorder that takes no more: %v", err)
	}
	if err := run(deadModel{}, &memory{}, trace.FromSlice(atMS(0))); err == nil {
		t.Error("a model that never answers: no error")
	}
}

type deadModel struct{}

func (deadModel) Submit(time.Duration, int, trace.Request) {}
func (deadModel) Next() (time.Duration, bool)              { return 0, false }
func (deadModel) Advance(time.Duration) []Record           { return nil }
