package measure_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/trace"
)

// turn is a request of a session that waits for others; nil is the turn before.
func turn(row int, session string, sent, first, done float64, after []string) replay.Record {
	rec := answered(sent, first, done)
	rec.Row, rec.SessionID, rec.ID, rec.After, rec.InputLength = row, session, fmt.Sprint("r", row), after, 100
	return rec
}

func of(class replay.Class, rec replay.Record) replay.Record {
	rec.Class = class
	return rec
}

// team is an agent with two sub-agents that it waits for, and three chats: one failed, one
// was abandoned and one was canceled. All values are computed by hand.
func team() []replay.Record {
	return []replay.Record{
		turn(0, "agent", 0, 100, 1000, nil),
		turn(1, "sub1", 1000, 1100, 5000, []string{"r0"}),
		turn(2, "sub2", 1000, 1300, 3000, []string{"r0"}),
		turn(3, "sub2", 3100, 3200, 9000, nil),
		turn(4, "agent", 9500, 9600, 12000, []string{"r1", "r3"}),
		turn(5, "agent", 13000, 13500, 14000, nil),
		turn(6, "a", 500, 700, 900, nil),
		of(replay.Timeout, turn(7, "a", 1000, 1200, 2000, nil)),
		turn(8, "b", 500, 800, 900, nil),
		of(replay.Abandoned, turn(9, "b", 1000, 1200, 2000, nil)),
		of(replay.Canceled, turn(10, "c", 14000, 14200, 14400, nil)),
		turn(11, "d", 100, 200, 4100, nil),
		answered(300, 400, 18000), // without a session
	}
}

func TestSessions(t *testing.T) {
	s := compute(t, measure.Options{Outgrown: 1, CutTurns: 3}, team()...).Sessions
	if s.Requests != 12 || s.Ended != 5 || s.Failed != 1 || s.Abandoned != 1 || s.Completed != 1 || s.Outgrown != 1 || s.Unfinished != 1 || s.CutTurns != 3 {
		t.Errorf("%+v", s)
	}
	// Sessions that have turns left when the run ends are not completed.
	if u := compute(t, measure.Options{Outgrown: 1, Unfinished: 1}, team()...).Sessions; u.Completed != 0 || u.Unfinished != 2 || u.Ended != 5 {
		t.Errorf("%+v", u)
	}
	// The run took 18 s.
	if s.PerHour != trace.Some(1*3600/18.0) {
		t.Errorf("per hour %v", s.PerHour)
	}
	if d := s.Duration; d.Count != 2 || d.Min != 4 || d.Max != 14 {
		t.Errorf("durations %v", d)
	}
	if d := s.Turns; d.Count != 2 || d.Min != 1 || d.Max != 6 {
		t.Errorf("turns %v", d)
	}
	type group struct {
		Name              string
		From              int
		Completed, Failed int
		TTFT              float64
	}
	var got []group
	for _, g := range s.ByTurn {
		got = append(got, group{g.Name, g.From, g.Completed, g.Failed, g.TTFT.Sum})
	}
	// Each sub-agent begins with its own first turn; r4 is the agent's second.
	want := []group{{"1", 1, 6, 1, 100 + 100 + 300 + 200 + 300 + 100}, {"2", 2, 2, 1, 100 + 100}, {"3", 3, 1, 0, 500}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if compute(t, measure.Options{}, answered(300, 400, 18000)).Sessions != nil {
		t.Error("a run without sessions has some")
	}
	if s := compute(t, measure.Options{}, of(replay.Timeout, turn(0, "a", 0, 1, 2, nil))).Sessions; s.PerHour != trace.Some(0.0) || s.Duration.Count != 0 || s.Failed != 1 {
		t.Errorf("where all failed: %+v", s)
	}
}

// With a window, sessions count that ended inside it; durations are those of sessions
// entirely inside.
func TestSessionsInAWindow(t *testing.T) {
	opts := measure.Options{Window: measure.Span{From: at(400), To: at(14200)}, Outgrown: 2}
	s := compute(t, opts, team()...).Sessions
	if s.Ended != 4 || s.Completed != 2 || s.Duration.Count != 0 || s.Failed != 1 || s.Abandoned != 1 {
		t.Errorf("%+v", s)
	}
	if turns := s.ByTurn; turns[0].Completed != 4 || turns[1].Completed != 2 || turns[1].Failed != 1 {
		t.Errorf("%+v", turns)
	}
}

func TestSessionMetrics(t *testing.T) {
	r := compute(t, measure.Options{}, team()...)
	for key, want := range map[string]float64{
		"completed_sessions": 2, "failed_sessions": 1, "abandoned_sessions": 1, "sessions_per_hour": 400,
		"mean_session_duration_s": 9, "max_session_duration_s": 14, "p50_session_turns": 3.5, "mean_session_duration": 9, "abandoned": 1,
	} {
		if got := measure.MustMetric(key).Value(r); got != trace.Some(want) {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
		if got := measure.MustMetric(key).Value(compute(t, measure.Options{}, answered(0, 1))); got.Set && key != "abandoned" {
			t.Errorf("%s of a run without sessions is %v", key, got)
		}
	}
	if _, err := measure.ParseMetric("p999_session_turns"); err == nil {
		t.Error("a percentile of 999")
	}
	if j := judged(t, "mean_session_duration_s<10", r); !j.Passed {
		t.Error(j)
	}
	if j := judged(t, "p90_session_duration_s<100", r); j.Passed || j.Remark != "too few sessions for p90: 2, needs 50 (5 beyond it)" {
		t.Error(j)
	}
}

// Turns over the last one with a group of its own are one group.
func TestManyTurns(t *testing.T) {
	var records []replay.Record
	for i := range measure.MaxEachTurn + 30 {
		records = append(records, turn(i, "s", float64(10*i), float64(10*i+1), float64(10*i+5), nil))
	}
	s := compute(t, measure.Options{}, records...).Sessions
	last := s.EachTurn[len(s.EachTurn)-1]
	if len(s.EachTurn) != measure.MaxEachTurn+1 || last.Completed != 30 || last.From != measure.MaxEachTurn+1 || s.EachTurn[6].Name != "7" || s.EachTurn[6].From != 7 {
		t.Errorf("%d groups, last %+v", len(s.EachTurn), last)
	}
	if last := s.ByTurn[len(s.ByTurn)-1]; last.Name != "over 100" || last.Completed != 30 {
		t.Errorf("%+v", last)
	}
}

// If records contradict each other, sessions are those of the session ids.
func TestSessionsOfContradictingRecords(t *testing.T) {
	a, b := turn(0, "s", 0, 1, 2, []string{"r1"}), turn(1, "s", 3, 4, 5, []string{"r0"})
	if s := compute(t, measure.Options{}, a, b).Sessions; s.Ended != 1 || len(s.ByTurn) != 2 {
		t.Errorf("%+v", s)
	}
	if s := compute(t, measure.Options{}, a, b, a).Sessions; s.Ended != 1 {
		t.Errorf("repeated: %+v", s)
	}
}

// Abandoned requests are not failures and in no latency; all that counts ended
// requests counts them.
func TestAbandonedRequests(t *testing.T) {
	waiting := answered(0, 10)
	waiting.First, waiting.Last, waiting.Chunks, waiting.Done = replay.Instant{}, replay.Instant{}, 0, at(900)
	r := compute(t, measure.Options{Detail: true, Objectives: []measure.Objective{{Latency: measure.TTFT, LimitMS: 1000}}},
		answered(0, 100, 200), answered(0, 100, 200), of(replay.Timeout, answered(0, 300)),
		of(replay.Abandoned, answered(0, 400, 500, 600)), of(replay.Abandoned, waiting))
	if r.Completed != 2 || r.Failed != 1 || r.FailedOutside != 0 || r.Abandoned != (measure.Abandoned{Requests: 2, Answered: 1, Tokens: 3}) || len(r.Errors) != 1 {
		t.Errorf("%+v", r)
	}
	if r.TTFT.Count != 2 || r.TTFT.Max != 100 || r.E2EL.Max != 200 || r.Output != 4 || r.Goodput.Good != 2 || r.Goodput.Requests != 5 {
		t.Errorf("TTFT %v, output %d, goodput %+v", r.TTFT, r.Output, r.Goodput)
	}
	if failed, left := measure.MustMetric("failed_share").Value(r), measure.MustMetric("abandoned_share").Value(r); failed != trace.Some(0.2) || left != trace.Some(0.4) {
		t.Errorf("failed %v, abandoned %v", failed, left)
	}
	failed := 0
	for _, at := range r.Detail.Series.Intervals {
		failed += at.Failed
	}
	if failed != 1 {
		t.Errorf("%d failed over time", failed)
	}
	// A fifth of them failed, so look at a run in which none did.
	r = compute(t, measure.Options{}, answered(0, 100, 200), of(replay.Abandoned, answered(0, 400, 500, 600)))
	for _, e := range r.Verdict.Evidence {
		if e.Check == "abandoned" && e.Level == measure.Valid && e.Text == "1 of 2 requests were abandoned by the client (50 %): latencies cover only the others" {
			return
		}
	}
	t.Errorf("%+v", r.Verdict)
}
