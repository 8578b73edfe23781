package analyze_test

import (
	"fmt"
	"testing"

	"moontide/analyze"
	"moontide/trace"
	"moontide/trace/block"
)

// An agent calls two sub-agents, one of which makes two requests, and goes on when both
// have ended; its next prompt is shorter.
func TestGraph(t *testing.T) {
	row := func(session, id string, isl int, ids []uint64, after ...string) trace.Request {
		return trace.Request{SessionID: session, ID: id, After: after, InputLength: isl, HashIDs: ids, OutputLength: 1}
	}
	rows := []trace.Request{
		row("a", "a1", 25, []uint64{1, 2, 3}),
		row("x", "x1", 10, []uint64{7}, "a1"),
		row("y", "y1", 10, []uint64{8}, "a1"),
		row("x", "x2", 30, []uint64{7, 9, 10}),                     // extends x1
		row("a", "a2", 35, []uint64{1, 2, 5, 6}, "a1", "x2", "y1"), // extends a1, whose third block is partial
		row("a", "a3", 35, []uint64{1, 2, 5, 6}, []string{}...),
		row("a", "a4", 20, []uint64{1, 2}),          // shorter than a3
		row("a", "a5", 50, []uint64{1, 3, 4, 5, 6}), // rewritten
		row("a", "a6", 60, nil),                     // unknown
		row("", "", 5, nil),
	}
	rows[5].After = []string{} // beside a2
	rows[1].Delay, rows[1].DelayKind = trace.Some(10.0), trace.Tool
	rows[4].Delay, rows[4].DelayKind = trace.Some(20.0), trace.Think
	rows[6].Delay = trace.Some(30.0)
	a := analyzed(t, analyze.Options{BlockSize: 10}, rows...)
	g := a.Graph
	got := fmt.Sprint(g.Sessions, g.Requests.Max, g.Requests.Min, g.Joins, g.Lost)
	if want := "2 9 1 1 0"; got != want {
		t.Errorf("sessions, requests, joins, lost: %s, want %s", got, want)
	}
	s := a.Sessions
	if want := (block.Relations{Extend: 2, Shortened: 2, Rewritten: 1, Unknown: 1}); *s.Relations != want {
		t.Errorf("relations %+v, want %+v", *s.Relations, want)
	}
	if s.Delay.Count != 3 || s.Think.Max != 20 || s.Tool.Max != 10 {
		t.Errorf("delays %v, think %v, tool %v", s.Delay, s.Think, s.Tool)
	}
	if want := []float64{-15, 0, 10, 10, 20, 30}; s.Growth.Count != len(want) || s.Growth.Min != -15 || s.Growth.Sum != 55 {
		t.Errorf("growth %v, want that of %v", s.Growth, want)
	}
}

// Request ids alone make no sessions; ids and delays may begin late.
func TestRequestIDsWithoutSessions(t *testing.T) {
	rows := []trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 9, OutputLength: 1},
		{Timestamp: trace.Some(1.0), InputLength: 9, OutputLength: 1, ID: "a"},
		{InputLength: 9, OutputLength: 1, ID: "b", After: []string{"a"}, Delay: trace.Some(10.0)},
	}
	a := analyzed(t, analyze.Options{}, rows...)
	if a.Sessions != nil || a.Graph == nil || a.Graph.Sessions != 2 {
		t.Errorf("sessions %+v, graph %+v", a.Sessions, a.Graph)
	}
	if a := analyzed(t, analyze.Options{}, rows[:2]...); a.Graph != nil {
		t.Errorf("no row names others, but the graph is %+v", a.Graph)
	}
	late := []trace.Request{
		{Timestamp: trace.Some(0.0), SessionID: "s", InputLength: 9, OutputLength: 1},
		{Timestamp: trace.Some(5.0), InputLength: 9, OutputLength: 1},
		{SessionID: "s", InputLength: 9, OutputLength: 1, Delay: trace.Some(10.0)},
		{Timestamp: trace.Some(600.0), SessionID: "s", InputLength: 9, OutputLength: 1, ID: "c", After: []string{}},
	}
	a = analyzed(t, analyze.Options{}, late...)
	if a.Graph == nil || a.Graph.Sessions != 2 || a.Graph.Requests.Max != 3 || a.Untimed.Turns != 1 || a.Arrivals.Estimated != 1 {
		t.Errorf("graph %+v, untimed %+v", a.Graph, a.Untimed)
	}
}

// TestUntimed: turns are misplaced only where even answers of no time could not
// have ended.
func TestUntimed(t *testing.T) {
	at := func(session string, ms float64) trace.Request {
		return trace.Request{Timestamp: trace.Some(ms), SessionID: session, InputLength: 1, OutputLength: 1000}
	}
	turn := func(session string, delay float64) trace.Request {
		return trace.Request{Delay: trace.Some(delay), SessionID: session, InputLength: 1, OutputLength: 1000}
	}
	for name, tc := range map[string]struct {
		rows []trace.Request
		want analyze.Untimed
	}{
		"none":          {[]trace.Request{at("a", 0), at("", 1), at("a", 2)}, analyze.Untimed{}},
		"in order":      {[]trace.Request{at("a", 0), turn("a", 50), at("b", 50), turn("b", 1), turn("a", 1e6)}, analyze.Untimed{Turns: 3}},
		"one by one":    {[]trace.Request{at("a", 0), turn("a", 50), turn("a", 50), at("b", 80), turn("b", 9)}, analyze.Untimed{Turns: 3, Misplaced: 1}},
		"after a pause": {[]trace.Request{at("a", 0), at("b", 1), turn("a", 50), at("c", 20), at("d", 30)}, analyze.Untimed{Turns: 1, Misplaced: 1}},
		"starts so":     {[]trace.Request{turn("a", 50), at("", 1)}, analyze.Untimed{}},
		"with both":     {[]trace.Request{at("a", 0), {Timestamp: trace.Some(5.0), Delay: trace.Some(50.0), SessionID: "a"}, at("b", 6)}, analyze.Untimed{}},
		"sub-agents": {[]trace.Request{
			{Timestamp: trace.Some(0.0), ID: "a"}, {ID: "x", After: []string{"a"}, Delay: trace.Some(50.0)}, {ID: "y", After: []string{"a"}, Delay: trace.Some(5.0)},
			{After: []string{"x", "y"}, Delay: trace.Some(10.0)}, at("", 55)}, analyze.Untimed{Turns: 3, Misplaced: 1}},
		"neither of two": {[]trace.Request{at("a", 7), {SessionID: "a"}, at("b", 7)}, analyze.Untimed{Turns: 1}},
	} {
		a, err := analyze.Trace(trace.FromSlice(tc.rows), analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Untimed != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, a.Untimed, tc.want)
		}
	}
}
