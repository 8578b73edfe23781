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

func TestDuplicates(t *testing.T) {
	at := trace.Some[float64]
	testSpoiled(t, []spoiled{
		{name: "duplicates", spoil: func(all []trace.Request) []trace.Request {
			again := all[13]
			all[15] = again
			all[14].Timestamp = again.Timestamp
			all[16] = again
			all[16].OutputLength++
			all[17] = again
			all[17].SessionID = "another"
			all[18].InputLength, all[18].OutputLength, all[18].HashIDs = again.InputLength, again.OutputLength, again.HashIDs
			return all
		}, wants: []want{{check.Duplicate, check.Warning, 1, "", []place{
			{16, "as line 14: timestamp 7567, input_length 181, output_length 49, 3 ids"}}}}},
		{name: "a trace appended to itself", opts: check.Options{Examples: 2, BlockSize: blockSize}, spoil: func(all []trace.Request) []trace.Request {
			return append(all[10:29:29], all[10:29]...)
		}, wants: []want{
			{check.TimeBackwards, check.Error, 1, "", []place{{20, "timestamp 5914 after 15601 on line 19"}}},
			{check.LateStart, check.Note, 38, "the first timestamp is 5914 ms", nil},
			{check.Duplicate, check.Warning, 19, "", []place{
				{20, "as line 1: timestamp 5914, input_length 470, output_length 80, 8 ids"},
				{21, "as line 2: timestamp 6731, input_length 107, output_length 23, 2 ids"}}}}},
		{name: "one row again at other times", spoil: func(all []trace.Request) []trace.Request {
			all[12], all[17] = all[9], all[9]
			all[12].Timestamp, all[17].Timestamp = at(6731), at(9500)
			all[12].SessionID, all[17].SessionID = "", ""
			return all
		}},
		{name: "no duplicates", spoil: func(all []trace.Request) []trace.Request {
			for i := 10; i < 18; i++ {
				all[i] = all[9]
				all[i].SessionID = ""
			}
			all[11].InputLength-- // another length
			all[11].HashIDs = append([]uint64{}, all[9].HashIDs[:6]...)
			all[11].HashIDs = append(all[11].HashIDs, 77_777)
			all[12].HashIDs = append([]uint64{0}, chain(433, 0, 99)[1:]...) // other ids
			all[13].InputLength = 3 * blockSize
			all[13].HashIDs = all[9].HashIDs[:3]
			all[14].InputLength = 3*blockSize - 1 // the same ids
			all[14].HashIDs = all[9].HashIDs[:3]
			return all[:15]
		}, wants: []want{{check.TailIsFull, check.Warning, 1, "", []place{{15, "id 10002 ends 191 tokens in 3 blocks, but is full elsewhere"}}}}},
		{name: "no duplicates without ids", spoil: func(all []trace.Request) []trace.Request {
			for i := range all {
				all[i].HashIDs = nil
			}
			all[10] = all[11]
			return all
		}, wants: []want{{check.NoIDs, check.Note, 30, "none of 30 rows", nil}}},
		{name: "no duplicates without times", spoil: func(all []trace.Request) []trace.Request {
			for i := range all {
				all[i].Timestamp = never
			}
			all[10] = all[11]
			return all
		}, wants: []want{{check.NoTimestamps, check.Error, 30, "none of 30 rows", nil}}},
	})
}
