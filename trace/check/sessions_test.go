package check_test

import (
	"testing"

	"moontide/trace"
	"moontide/trace/check"
)

func TestSessions(t *testing.T) {
	at := trace.Some[float64]
	testSpoiled(t, []spoiled{
		{name: "turns out of order", spoil: func(all []trace.Request) []trace.Request {
			all[29].Timestamp, all[29].Delay = at(4000), never
			return all
		}, wants: []want{
			{check.TimeBackwards, check.Error, 1, "", []place{{30, "timestamp 4000 after 15601 on line 29"}}},
			{check.SessionDisorder, check.Error, 1, "", []place{{30, `timestamp 4000 after 5373 on line 10, session_id "talk"`}}}}},
		{name: "turns that overlap", spoil: func(all []trace.Request) []trace.Request {
			all[29].Timestamp, all[29].Delay = at(17_000.1), never
			all[9].OutputLength = 17_000 - 5373 + 1
			return all
		}, wants: []want{{check.SessionOverlap, check.Warning, 1, "", []place{
			{30, `timestamp 17000.1 is 11627.1 ms after line 10 with output_length 11628, session_id "talk"`}}}}},
		{name: "turns that just do not", spoil: func(all []trace.Request) []trace.Request {
			all[29].Timestamp, all[29].Delay = at(17_000), never
			all[9].OutputLength = 17_000 - 5373
			return all
		}},
		{name: "turn that shrinks", spoil: func(all []trace.Request) []trace.Request {
			all[29].InputLength, all[29].HashIDs = 65, []uint64{0, 77_777}
			return all
		}, wants: []want{{check.TurnShrinks, check.Note, 1, "", []place{{30, `input_length 65 after 433 on line 10, session_id "talk"`}}}}},
		{name: "turn that diverges", spoil: func(all []trace.Request) []trace.Request {
			all[29].HashIDs = chain(all[29].InputLength, 1, 30)
			return all
		}, wants: []want{{check.TurnDiverges, check.Note, 1, "", []place{{30, `block 6 is not 10005 as on line 10, session_id "talk"`}}}}},
	})
}
