package replay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"moontide/trace"
)

// A request is due its delay after the last end of what it waits for, and is not sent
// if one of these was not answered; nothing else holds it up. A session is unfinished if
// some of its rows were answered, none failed, and rows are left when the run ends.
func TestRowsWaitForTheirGraph(t *testing.T) {
	unfinished := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 3))
		rows := anyRows(random, 120)
		took, class := anyAnswers(random, len(rows))
		plan := scan(t, rows)
		for _, until := range []time.Duration{0, 300 * msec} {
			var m memory
			model := &forgetful{fakeModel: fakeModel{took: took, class: class}}
			v := VirtualRunner{Model: model, Recorder: &m, Graph: plan.Graph, Duration: until}
			tally := mustRun(t, &v, rows)
			begun, left, broken := map[int]bool{}, map[int]bool{}, map[int]bool{} // by first row
			for i, r := range rows {
				rec, sent := m.records[i]
				at, answered := time.Duration(0), true
				for _, before := range plan.Graph.Before(i) {
					b, known := m.records[int(before)]
					answered = answered && known && b.Class == OK
					at = max(at, b.Done)
				}
				first, waits := plan.Graph.First(i), len(plan.Graph.Before(i)) > 0
				begun[first], left[first] = begun[first] || sent, left[first] || !sent
				broken[first] = broken[first] || sent && rec.Class != OK || model.forgotten.Has(i)
				switch {
				case sent && model.forgotten.Has(i) || until == 0 && sent == model.forgotten.Has(i):
					t.Fatalf("seed %d: row %d was sent: %t, and so was it forgotten", seed, i, sent)
				case sent && !answered || until == 0 && sent != answered:
					t.Fatalf("seed %d: row %d was sent: %t, all that it waits for was answered: %t", seed, i, sent, answered)
				case !sent:
				case waits && r.Delay.Set && rec.Due != at+Milliseconds(r.Delay.Value):
					t.Fatalf("seed %d: row %d is due at %v, %v ms after %v", seed, i, rec.Due, r.Delay.Value, at)
				case !waits && r.Timestamp.Set && rec.Due != Milliseconds(r.Timestamp.Value):
					t.Fatalf("seed %d: row %d is due at %v, not at %v ms", seed, i, rec.Due, r.Timestamp.Value)
				case rec.Ready != max(rec.Due, at):
					t.Fatalf("seed %d: row %d is ready at %v, due at %v, waited until %v", seed, i, rec.Ready, rec.Due, at)
				}
			}
			want := 0
			for first := range begun {
				if begun[first] && left[first] && !broken[first] {
					want++
				}
			}
			unfinished += want
			if tally.Unfinished != want || until == 0 && (tally.Sent+tally.Skipped != len(rows) || tally.Skipped == 0 && seed == 0) {
				t.Errorf("seed %d, until %v: %+v of %d, want %d unfinished", seed, until, tally, len(rows), want)
			}
		}
	}
	if unfinished == 0 {
		t.Error("no session was unfinished")
	}
}

// forgetful is a model that records which rows it can forget.
type forgetful struct {
	fakeModel
	forgotten RowSet
}

func (f *forgetful) Forget(row int) { f.forgotten.Add(row) }

// With a limit of open sessions the next one starts when one ends, and every row of a
// session counts: also those of sub-agents.
func TestSessionLimits(t *testing.T) {
	turn := func(session, id string, after ...string) trace.Request {
		return trace.Request{SessionID: session, ID: id, After: after, Delay: trace.Some(10.0), InputLength: 1}
	}
	first := func(session, id string) trace.Request {
		return trace.Request{SessionID: session, ID: id, Timestamp: trace.Some(0.0), InputLength: 1}
	}
	rows := []trace.Request{
		first("a", "a1"), first("b", "b1"), first("c", "c1"), first("", ""),
		turn("a/sub", "a2", "a1"), turn("a", "a3", "a1"), turn("a", "a4", "a2", "a3"), // 100, 210-, 320-
		turn("b", "b2"), turn("b", "b3"),
	}
	for i := range rows {
		if rows[i].SessionID == "b" {
			rows[i].After = nil
		}
	}
	for name, c := range map[string]struct {
		limits SessionLimits
		sent   map[int]int // row to ms
		cut    int
	}{
		"none":  {SessionLimits{}, map[int]int{0: 0, 1: 0, 2: 0, 3: 0, 4: 110, 5: 110, 6: 220, 7: 110, 8: 220}, 0},
		"one":   {SessionLimits{Open: 1}, map[int]int{0: 0, 4: 110, 5: 110, 6: 220, 1: 320, 7: 430, 8: 540, 2: 640, 3: 740}, 0},
		"two":   {SessionLimits{Open: 2}, map[int]int{0: 0, 1: 0, 4: 110, 5: 110, 7: 110, 6: 220, 8: 220, 2: 320, 3: 320}, 0},
		"turns": {SessionLimits{Turns: 2, Open: 1}, map[int]int{0: 0, 4: 110, 5: 110, 1: 210, 7: 320, 2: 420, 3: 520}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			plan := scan(t, rows)
			for _, closed := range []bool{false, true} {
				m, tally, _ := replayed(t, &Runner{Client: &fakeServer{took: always(100 * msec)}, Graph: plan.Graph, Sessions: c.limits, Closed: closed}, rows)
				got := map[int]int{}
				for row, rec := range m.records {
					got[row] = int(rec.Sent.Value / msec)
				}
				if fmt.Sprint(got) != fmt.Sprint(c.sent) || tally.Cut != c.cut || tally.Sent != len(c.sent) {
					t.Errorf("closed %t: sent %v, want %v; %+v", closed, got, c.sent, tally)
				}
			}
		})
	}
}

// A turn that does not fit the model's context ends its session: neither it nor what
// waits for it is sent.
func TestSessionsOutgrowTheContext(t *testing.T) {
	rows := []trace.Request{
		{SessionID: "a", Timestamp: trace.Some(0.0), InputLength: 1},
		{SessionID: "b", Timestamp: trace.Some(0.0), InputLength: 9},
		{SessionID: "a", Delay: trace.Some(1.0), InputLength: 9},
		{SessionID: "a", Delay: trace.Some(1.0), InputLength: 2},
		{SessionID: "b", Delay: trace.Some(1.0), InputLength: 2},
		{Timestamp: trace.Some(900.0), InputLength: 3},
	}
	for _, limits := range []SessionLimits{{}, {Open: 1}} {
		synctest.Test(t, func(t *testing.T) {
			plan := scan(t, rows)
			var m memory
			server := &fakeServer{took: always(20 * msec), prepare: func(r trace.Request) error {
				if r.InputLength == 9 {
					return fmt.Errorf("9 tokens: %w", ErrOutgrown)
				}
				return nil
			}}
			runner := &Runner{Client: server, Recorder: &m, Graph: plan.Graph, Sessions: limits}
			tally, err := runner.Run(t.Context(), trace.FromSlice(rows))
			if err != nil || len(m.records) != 2 || tally.Sent != 2 || tally.Cut != 4 || tally.Outgrown != 2 || tally.Failed != 0 {
				t.Errorf("%+v, %v, %d records", tally, err, len(m.records))
			}
			v := VirtualRunner{Model: &narrow{fakeModel{took: always(20 * msec)}}, Recorder: &memory{}, Graph: plan.Graph, Sessions: limits}
			virtual, err := v.Run(t.Context(), trace.FromSlice(rows))
			if err != nil || virtual.Sent != 4 || virtual.Cut != 2 || virtual.Outgrown != 1 {
				t.Errorf("in virtual time: %+v, %v", virtual, err)
			}
		})
	}
}

// narrow is a model with a context of less than 9 tokens for later turns.
type narrow struct{ fakeModel }

func (*narrow) Fits(r trace.Request) bool { return r.InputLength < 9 }

// Nothing is kept of the turns that are not sent because a limit cuts them or the first one
// failed, however many they are, and whether that ends before the others are read.
func TestTurnsThatAreNotSentAreForgotten(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(4 << 20)) // else the program ends
	const n = 100_000
	var b trace.GraphBuilder
	for range n {
		b.Add(trace.Request{SessionID: "s"}, 0)
	}
	graph, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	for _, limits := range []SessionLimits{{Open: 1}, {Turns: 1}} {
		for _, late := range []bool{false, true} {
			s := newSchedule(scheduleConfig{graph: graph, sessions: limits})
			f := completed
			if limits.Turns == 0 {
				f = failed
			}
			end := func() {
				first, _, _ := s.next(0)
				s.ended(first, 1, f)
			}
			for i := range n {
				s.add(job{req: trace.Request{SessionID: "s"}, row: i, before: graph.Before(i)})
				if i == 0 && !late {
					end()
				}
			}
			if late {
				end()
			}
			if kept := len(s.deps.waiting) + len(s.deps.ends) + len(s.sessions.inProgress); kept != 0 || s.skipped+s.cut != n-1 || !s.idle() {
				t.Errorf("%+v, late %t: %d kept, %d skipped, %d cut, idle %t", limits, late, kept, s.skipped, s.cut, s.idle())
			}
		}
	}
}

func TestAbandonedIsNotFailed(t *testing.T) {
	rows := atMS(0, 0, 1)
	rows[0].SessionID, rows[1].SessionID = "s", "s"
	server := &fakeServer{took: always(20 * msec), class: func(r trace.Request) Class {
		if r.SessionID == "s" {
			return Abandoned
		}
		return OK
	}}
	if _, tally, _ := replayed(t, &Runner{Client: server, MaxErrors: 1}, rows); tally.Sent != 2 || tally.Abandoned != 1 || tally.Failed != 0 || tally.Skipped != 0 || tally.Cut != 1 {
		t.Errorf("%+v", tally)
	}
}

// A session in progress when the run was stopped counts towards the limit of the resumed run.
func TestResumedSessionLimits(t *testing.T) {
	rows := []trace.Request{}
	for i := range 9 {
		r := trace.Request{SessionID: fmt.Sprint(i % 3), Delay: trace.Some(5.0)}
		if i < 3 {
			r.Delay, r.Timestamp = trace.Opt[float64]{}, trace.Some(0.0)
		}
		rows = append(rows, r)
	}
	past, plan, err := resumeStateOf(t, rows, ended(0, rows[0], 10*msec, OK), ended(3, rows[3], 25*msec, OK))
	if err != nil {
		t.Fatal(err)
	}
	m, tally, _ := replayed(t, &Runner{Client: &fakeServer{took: always(10 * msec)}, Graph: plan.Graph, Resume: past, Sessions: SessionLimits{Open: 1}}, rows)
	order := slices.SortedFunc(maps.Keys(m.records), func(a, b int) int { return int(m.records[a].Sent.Value - m.records[b].Sent.Value) })
	if want := []int{6, 1, 4, 7, 2, 5, 8}; !slices.Equal(order, want) || tally.Unfinished != 0 {
		t.Errorf("sent in the order %v, want %v; %+v", order, want, tally)
	}
}
