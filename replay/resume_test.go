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

// The clock continues where the record ends. Requests that were in flight are sent at once;
// the others keep their distances, and the first of them is also due at once. A turn is due
// after the turn before, which may be recorded, and not earlier than at once.
func TestResumedRun(t *testing.T) {
	gap, long := atMS(0, 100, 200, 300, 900, 950, 950, 2000), atMS(0, 5000, 5001, 5002, 5100)
	sessions := []trace.Request{
		arrival("thinks", 0), arrival("failed", 0), arrival("flying", 10), arrival("over", 20),
		turn("thinks", 500), turn("failed", 1), turn("flying", 30), turn("thinks", 5),
		arrival("new", 1000), arrival("thinks", 1200), turn("new", 7), arrival("failed", 1300),
	}
	sessions[4].Timestamp = trace.Some(25.0) // its delay goes before it
	for name, test := range map[string]struct {
		rows    []trace.Request
		records []Record
		sent    map[int]int // ms, by row
		late    map[int]int // ms from due to sent, by row
		skipped int
	}{
		"in flight": {gap, []Record{ended(0, gap[0], 400*msec, OK), ended(3, gap[3], 350*msec, Timeout)}, map[int]int{1: 400, 2: 400, 4: 400, 5: 450, 6: 450, 7: 1500}, nil, 0},
		// The clock of a run that had skipped a gap when it was resumed is behind the trace's.
		"twice": {long, []Record{ended(0, long[0], 10*msec, OK), ended(3, long[3], 30*msec, OK)}, map[int]int{1: 30, 2: 30, 4: 30}, nil, 0},
		"sessions": {
			sessions, []Record{ended(0, sessions[0], 100*msec, OK), ended(1, sessions[1], 200*msec, Truncated), ended(3, sessions[3], 300*msec, OK)},
			map[int]int{2: 300, 6: 340, 4: 600, 7: 615, 9: 625, 8: 300, 10: 317}, map[int]int{9: 125}, 2,
		},
	} {
		m, tally := resume(t, test.rows, test.records...)
		for row, ms := range test.sent {
			at, rec := time.Duration(ms)*msec, m.records[row]
			if late := time.Duration(test.late[row]) * msec; rec.Due != at-late || rec.Ready != at || rec.Sent != trace.Some(at) || rec.Done != at+10*msec {
				t.Errorf("%s: row %d: due %v, ready %v, sent %v, done %v; want %v", name, row, rec.Due, rec.Ready, rec.Sent, rec.Done, at)
			}
		}
		if len(m.records) != len(test.sent) || tally.Skipped != test.skipped {
			t.Errorf("%s: %d records, %+v", name, len(m.records), tally)
		}
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
