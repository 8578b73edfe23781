package check_test

import (
	"testing"

	"moontide/trace"
	"moontide/trace/check"
)

// agents is the clean trace with an agent on lines 5, 6 and 9, two sub-agents that run
// in parallel on lines 7 and 8, and a second request of the agent beside its first.
func agents() []trace.Request {
	all := clean()
	for i, r := range []trace.Request{
		{SessionID: "agent", ID: "a1"},
		{SessionID: "agent", ID: "a2", After: []string{}}, // parallel
		{SessionID: "x", ID: "x1", After: []string{"a1"}, DelayKind: trace.Tool},
		{SessionID: "y", ID: "y1", After: []string{"a1"}, DelayKind: trace.Tool},
		{SessionID: "agent", After: []string{"a1", "x1", "y1"}, DelayKind: trace.Think},
	} {
		row := &all[4+i]
		row.SessionID, row.ID, row.After, row.DelayKind = r.SessionID, r.ID, r.After, r.DelayKind
		if len(r.After) > 0 {
			row.Timestamp, row.Delay = never, trace.Some(20.0)
		}
	}
	// The last continues the first.
	first, last := all[4], &all[8]
	last.InputLength = first.InputLength + 100
	full := first.InputLength / blockSize
	last.HashIDs = append(append([]uint64{}, first.HashIDs[:full]...), chain(last.InputLength, 0, 9)[full:]...)
	return all
}

func TestGraphs(t *testing.T) {
	at := trace.Some[float64]
	testSpoiled(t, agents, []spoiled{
		{name: "an agent with sub-agents", spoil: func([]trace.Request) {}},
		{name: "a cycle", spoil: func(all []trace.Request) { all[4].After = []string{"x1"} }, wants: []want{{check.Cycle, check.Error, 1, "", []place{{7, `requests wait for each other: "x1" after "a1" after "x1"`}}}}},
		{name: "a missing request", spoil: func(all []trace.Request) {
			all[8].After = []string{"a1", "x2", "y2"}
		}, wants: []want{{check.MissingRequest, check.Error, 2, "", []place{
			{9, `after names request_id "x2"`}, {9, `after names request_id "y2"`}}}}},
		{name: "an id twice that others name", spoil: func(all []trace.Request) { all[10].ID = "a1" }, wants: []want{{check.DuplicateRequestID, check.Error, 1, "", []place{{7, `after names request_id "a1", which several rows have: lines 5 and 11`}}}}},
		{name: "neither timestamp nor delay", spoil: func(all []trace.Request) {
			all[7].Delay, all[7].DelayKind = never, ""
		}, wants: []want{{check.AfterWithoutDelay, check.Warning, 1, "", []place{{8, `after ["a1"], no timestamp, no delay`}}}}},
		{name: "too early", spoil: func(all []trace.Request) {
			all[6].Timestamp, all[6].Delay, all[6].DelayKind = at(all[5].Timestamp.Value+1), never, ""
			all[4].OutputLength = 2000
		}, wants: []want{{check.SessionOverlap, check.Warning, 1, "", []place{
			{7, `timestamp 3066 is 727 ms after line 5 with output_length 2000, request_id "a1"`}}}}},
		{name: "a shorter prompt", spoil: func(all []trace.Request) {
			all[8].InputLength, all[8].HashIDs = 65, []uint64{0, 77_777}
		}, wants: []want{{check.TurnShrinks, check.Note, 1, "", []place{
			{9, `input_length 65 after 256 on line 5, session_id "agent"`}}}}},
	})
}
