package analyze_test

import (
	"testing"

	"moontide/analyze"
	"moontide/trace"
)

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
