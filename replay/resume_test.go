package replay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moontide/trace"
)

func resumeStateOf(t testing.TB, rows []trace.Request, records ...Record) (*ResumeState, Plan, error) {
	t.Helper()
	plan := scan(t, rows)
	past, err := ReadResumeState(func(yield func(Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}, plan)
	return past, plan, err
}

// resume runs what is left of rows behind the records.
func resume(t *testing.T, rows []trace.Request, records ...Record) (*memory, Tally) {
	t.Helper()
	past, plan, err := resumeStateOf(t, rows, records...)
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour) // a pause that nothing may count
		began := time.Now()
		runner := &Runner{Client: &fakeServer{took: always(10 * msec)}, Recorder: m, Graph: plan.Graph, Resume: past}
		tally := mustRun(t, runner, rows)
		if tally.Sent != len(m.records) || tally.Sent+tally.Skipped+past.Rows != len(rows) {
			t.Errorf("%+v, %d records, %d rows of %d were done", tally, len(m.records), past.Rows, len(rows))
		}
		if since := began.Sub(tally.Start); since != past.Clock {
			t.Errorf("the clock goes on at %v, want %v", since, past.Clock)
		}
		m.tally = tally
	})
	return m, m.tally
}

func ended(row int, r trace.Request, done time.Duration, class Class) Record {
	return Record{Request: r, Row: row, Done: done, Class: class, Status: 200}
}

// The clock continues where the record ends. Requests that were in flight are sent
// at once; the others keep their distances, and the first of them is also due at
// once.
func TestResumedRunGoesOn(t *testing.T) {
	rows := atMS(0, 100, 200, 300, 900, 950, 950, 2000)
	m, _ := resume(t, rows, ended(0, rows[0], 400*msec, OK), ended(3, rows[3], 350*msec, Timeout))
	want := map[int]time.Duration{1: 400 * msec, 2: 400 * msec, 4: 400 * msec, 5: 450 * msec, 6: 450 * msec, 7: 1500 * msec}
	if len(m.records) != len(want) {
		t.Fatalf("%d records", len(m.records))
	}
	for row, at := range want {
		rec := m.records[row]
		if rec.Due != at || rec.Ready != at || rec.Sent != trace.Some(at) || rec.Done != at+10*msec {
			t.Errorf("row %d: due %v, ready %v, sent %v, done %v; want %v", row, rec.Due, rec.Ready, rec.Sent, rec.Done, at)
		}
	}
}

// A run that had skipped a gap when it was resumed is resumed again: its clock is
// behind the trace's.
func TestResumedTwice(t *testing.T) {
	rows := atMS(0, 5000, 5001, 5002, 5100)
	m, _ := resume(t, rows, ended(0, rows[0], 10*msec, OK), ended(3, rows[3], 30*msec, OK))
	for row, at := range map[int]time.Duration{1: 30 * msec, 2: 30 * msec, 4: 30 * msec} {
		if rec := m.records[row]; rec.Due != at || rec.Sent != trace.Some(at) {
			t.Errorf("row %d: due %v, sent %v; want %v", row, rec.Due, rec.Sent, at)
		}
	}
}

func TestResumedSessions(t *testing.T) {
	turn := func(session string, ms, delay float64) trace.Request {
		r := trace.Request{SessionID: session, Timestamp: trace.Some(ms)}
		if delay > 0 {
			r.Timestamp, r.Delay = trace.Opt[float64]{}, trace.Some(delay)
		}
		return r
	}
	rows := []trace.Request{
		turn("thinks", 0, 0), turn("failed", 0, 0), turn("flying", 10, 0), turn("over", 20, 0),
		turn("thinks", 0, 500), turn("failed", 0, 1), turn("flying", 0, 30), turn("thinks", 0, 5),
		turn("new", 1000, 0), turn("thinks", 1200, 0), turn("new", 0, 7), turn("failed", 1300, 0),
	}
	rows[4].Timestamp = trace.Some(25.0) // its delay goes before it
	m, tally := resume(t, rows, ended(0, rows[0], 100*msec, OK), ended(1, rows[1], 200*msec, Truncated), ended(3, rows[3], 300*msec, OK))
	// The clock goes on at 300 ms; the first row behind row 3 that comes at its
	// arrival is due then.
	want := map[int]time.Duration{
		2: 300 * msec, 6: 340 * msec, // 30 ms after its first turn was sent again
		4: 600 * msec, 7: 615 * msec, 9: 625 * msec, // its arrival, 500 ms, is over
		8: 300 * msec, 10: 317 * msec,
	}
	for row, at := range want {
		if rec := m.records[row]; rec.Sent != trace.Some(at) || rec.Ready != at {
			t.Errorf("row %d was sent at %v, ready at %v, want %v", row, rec.Sent, rec.Ready, at)
		}
	}
	if len(m.records) != len(want) || tally.Skipped != 2 {
		t.Errorf("%d records, %+v", len(m.records), tally)
	}
}

// Wherever a run is cut, its two parts send every row once and skip the same
// turns, and the second continues after the first.
func TestPartsOfARunAreTheRun(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 5))
		rows := anyRows(random, 60)
		took, class := anyAnswers(random, len(rows))
		plan := scan(t, rows)
		run := func(past *ResumeState, stop time.Duration, r Recorder) (tally Tally) {
			synctest.Test(t, func(t *testing.T) {
				drain := make(chan struct{})
				if stop > 0 {
					time.AfterFunc(stop, func() { close(drain) })
				}
				runner := &Runner{Client: &fakeServer{took: took, class: class}, Recorder: r, Drain: drain, Graph: plan.Graph, Resume: past}
				tally = mustRun(t, runner, rows)
			})
			return tally
		}
		var whole, first, second memory
		all := run(nil, 0, &whole)
		run(nil, time.Duration(1+seed*501)*msec, &first)
		before := slices.Collect(maps.Values(first.records))
		past, _, err := resumeStateOf(t, rows, before...)
		if err != nil {
			t.Fatal(err)
		}
		tally := run(past, 0, &second)
		if len(before)+tally.Sent != all.Sent || tally.Skipped != all.Skipped {
			t.Errorf("seed %d: %d and then %+v, at one go %+v", seed, len(before), tally, all)
		}
		for _, rec := range before {
			if _, again := second.records[rec.Row]; again {
				t.Errorf("seed %d: row %d was sent again", seed, rec.Row)
			}
		}
		for row, rec := range second.records {
			if rec.Due < past.Clock || rec.Class != whole.records[row].Class {
				t.Errorf("seed %d: row %d is due at %v and ends as %q; the clock stood at %v", seed, row, rec.Due, rec.Class, past.Clock)
			}
		}
	}
}

func TestResumeStateOfAnotherTrace(t *testing.T) {
	rows := atMS(0, 1)
	for name, records := range map[string][]Record{
		"a row that the trace lacks": {ended(2, rows[0], 1, OK)},
		"a row twice":                {ended(1, rows[0], 1, OK), ended(1, rows[0], 1, OK)},
		"a row before the first":     {ended(-1, rows[0], 1, OK)},
	} {
		if _, _, err := resumeStateOf(t, rows, records...); err == nil || !strings.Contains(err.Error(), "not of this trace") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// notes is a Journal that fails at row 2.
type notes struct {
	memory
	mu      sync.Mutex
	times   map[int]int // by row
	refused func()
}

func (n *notes) has(row int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.times[row] > 0
}

func (n *notes) Sending(row int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.times == nil {
		n.times = map[int]int{}
	}
	n.times[row]++
	if row != 2 {
		return nil
	}
	if n.refused != nil {
		n.refused()
	}
	return fmt.Errorf("disk full")
}
