package check_test

import (
	"testing"

	"moontide/trace"
	"moontide/trace/check"
)

var never trace.Opt[float64]

// TestKinds breaks the clean trace in one way at a time: exactly that is found.
func TestKinds(t *testing.T) {
	at := trace.Some[float64]
	for _, test := range []struct {
		name  string
		opts  check.Options
		spoil func([]trace.Request) []trace.Request
		wants []want
	}{
		{name: "no rows", spoil: func(all []trace.Request) []trace.Request { return nil },
			wants: []want{{check.Empty, check.Error, 0, "", nil}}},

		{name: "time going backwards", spoil: func(all []trace.Request) []trace.Request {
			all[6].Timestamp, all[7].Timestamp = all[7].Timestamp, all[6].Timestamp
			all[12].Timestamp = at(5.25)
			return all
		}, wants: []want{{check.TimeBackwards, check.Error, 2, "", []place{
			{8, "timestamp 3954 after 4293 on line 7"}, {13, "timestamp 5.25 after 6731 on line 12"}}}}},
		{name: "neither timestamp nor delay", spoil: func(all []trace.Request) []trace.Request {
			all[4].Timestamp = never
			return all
		}, wants: []want{{check.NoTime, check.Error, 1, "", []place{{5, "no timestamp, no delay"}}}}},
		{name: "no timestamps at all", spoil: func(all []trace.Request) []trace.Request {
			for i := range all {
				all[i].Timestamp = never
			}
			all[29].Delay = never
			return all
		}, wants: []want{{check.NoTimestamps, check.Warning, 30, "none of 30 rows", nil}}},
		{name: "session that never began", spoil: func(all []trace.Request) []trace.Request {
			all[9].SessionID = "other"
			return all
		}, wants: []want{{check.SessionNotBegun, check.Error, 1, "", []place{{30, `session_id "talk", no timestamp`}}}}},
		{name: "turn without delay", spoil: func(all []trace.Request) []trace.Request {
			all[29].Delay = never
			return all
		}, wants: []want{{check.TurnWithoutDelay, check.Warning, 1, "", []place{{30, `session_id "talk", no timestamp, no delay`}}}}},
		{name: "delay without session", spoil: func(all []trace.Request) []trace.Request {
			all[29].SessionID = ""
			return all
		}, wants: []want{{check.DelayWithoutSession, check.Error, 1, "", []place{{30, "delay 1500, no timestamp, no session_id"}}}}},
		{name: "delays that nothing precedes", spoil: func(all []trace.Request) []trace.Request {
			all[1].Delay, all[9].Delay, all[10].Delay = at(2.5), at(7), at(0)
			return all
		}, wants: []want{{check.DelayUnused, check.Warning, 2, "", []place{
			{2, "timestamp 300, delay 2.5, no session_id"},
			{10, `timestamp 5373, delay 7, first of session_id "talk"`}}}}},
		{name: "timestamp and delay", spoil: func(all []trace.Request) []trace.Request {
			all[29].Timestamp = at(90_000)
			return all
		}, wants: []want{{check.TimestampUnused, check.Note, 1, "", []place{{30, `timestamp 90000, delay 1500, session_id "talk"`}}}}},
		{name: "first timestamp is not 0", spoil: func(all []trace.Request) []trace.Request { return later(all, 12.5) },
			wants: []want{{check.LateStart, check.Note, 29, "the first timestamp is 12.5 ms", nil}}},
		{name: "Unix time in ms", spoil: func(all []trace.Request) []trace.Request { return later(all, 1_700_000_000_123) },
			wants: []want{{check.EpochTime, check.Warning, 29, "the first timestamp, 1700000000123, is 2023-11-14 22:13:20 UTC in milliseconds", nil}}},
		{name: "Unix time in s", spoil: func(all []trace.Request) []trace.Request { return later(all, 1_700_000_000) },
			wants: []want{{check.EpochTime, check.Warning, 29, "the first timestamp, 1700000000, is 2023-11-14 22:13:20 UTC in seconds", nil}}},
		{name: "no Unix time", spoil: func(all []trace.Request) []trace.Request { return later(all, 900_000_000) },
			wants: []want{{check.LateStart, check.Note, 29, "the first timestamp is 900000000 ms", nil}}},

		{name: "zero input", spoil: func(all []trace.Request) []trace.Request {
			all[2].InputLength, all[2].HashIDs = 0, []uint64{}
			return all
		}, wants: []want{{check.ZeroInput, check.Error, 1, "", []place{{3, "input_length 0"}}}}},
		{name: "zero output", spoil: func(all []trace.Request) []trace.Request {
			all[2].OutputLength, all[8].OutputLength = 0, 0
			return all
		}, wants: []want{{check.ZeroOutput, check.Warning, 2, "", []place{{3, "output_length 0"}, {9, "output_length 0"}}}}},
		{name: "huge lengths", spoil: func(all []trace.Request) []trace.Request {
			all[2].OutputLength = 1_000_001
			all[3].OutputLength = 1_000_000
			all[4].InputLength, all[4].HashIDs = 2_000_000, chain(2_000_000, 1, 100)
			for i := 5; i < 29; i++ { // not to look like the load of seconds
				all[i].Timestamp.Value += 10_000
			}
			return all
		}, wants: []want{{check.HugeLength, check.Warning, 2, "", []place{
			{3, "input_length 174, output_length 1000001"}, {5, "input_length 2000000, output_length 72"}}}}},
		{name: "constant input", spoil: func(all []trace.Request) []trace.Request {
			for i := range all[:29] {
				all[i].InputLength, all[i].HashIDs = 2*blockSize+1, chain(2*blockSize+1, 1, i+1)
			}
			return all[:29]
		}, opts: check.Options{BlockSize: blockSize},
			wants: []want{{check.ConstantInput, check.Note, 29, "input_length is 129 in every row", nil}}},
		{name: "constant output", spoil: func(all []trace.Request) []trace.Request { return answering(all, 128) },
			wants: []want{{check.ConstantOutput, check.Note, 30, "output_length is 128 in every row", nil}}},
		{name: "outputs of one", spoil: func(all []trace.Request) []trace.Request { return answering(all, 1) },
			wants: []want{{check.OutputsOne, check.Note, 30, "output_length is 1 in every row", nil}}},
		{name: "few equal outputs", spoil: func(all []trace.Request) []trace.Request { return answering(all, 1)[:9] }},

		{name: "no ids", spoil: func(all []trace.Request) []trace.Request {
			for i := range all {
				all[i].HashIDs = nil
			}
			return all
		}, wants: []want{{check.NoIDs, check.Note, 30, "none of 30 rows", nil}}},
		{name: "missing ids", spoil: func(all []trace.Request) []trace.Request {
			all[12].HashIDs = nil
			return all
		}, wants: []want{{check.MissingIDs, check.Warning, 1, "", []place{{13, "no hash_ids, input_length 144"}}}}},
		{name: "two ids in one row", spoil: func(all []trace.Request) []trace.Request {
			ids := all[12].HashIDs // three
			ids[2] = ids[1]
			return all
		}, wants: []want{{check.RepeatedID, check.Error, 1, "", []place{{13, "id 13001 again as block 3 of 3"}}}}},
		{name: "two parents", spoil: func(all []trace.Request) []trace.Request {
			all[20].HashIDs[2] = all[9].HashIDs[2]  // after another block
			all[21].HashIDs[0] = all[9].HashIDs[2]  // first, but reported before
			all[21].HashIDs[1] = all[22].HashIDs[1] // after a block and after another
			return all
		}, wants: []want{{check.TwoParents, check.Error, 2, "", []place{
			{21, "id 10002 is block 3, after id 21001, but not on line 10"},
			{23, "id 23001 is block 2, after id 0, but not on line 22"}}}}},
		{name: "two parents, long after the first use", spoil: func(all []trace.Request) []trace.Request {
			own := all[9].HashIDs[1]
			all[12].HashIDs[1] = own
			all[20].HashIDs[2] = own
			return all
		}, wants: []want{{check.TwoParents, check.Error, 1, "", []place{{21, "id 10001 is block 3, after id 21001, but not on line 13"}}}}},
		{name: "one prompt inside another", spoil: func(all []trace.Request) []trace.Request {
			all[2].InputLength = 150
			inside := append([]uint64{77_777}, all[2].HashIDs...)
			all[20].InputLength, all[20].HashIDs = 230, inside
			return all
		}, wants: []want{{check.TwoParents, check.Error, 1, "", []place{{21, "id 0 is block 2, after id 77777, but not on line 20"}}}}},
		{name: "parent or none", spoil: func(all []trace.Request) []trace.Request {
			all[20].HashIDs[0] = all[9].HashIDs[2]
			return all
		}, wants: []want{{check.TwoParents, check.Error, 1, "", []place{{21, "id 10002 is the first block, but not on line 10"}}}}},
		{name: "tail that is full where it goes on", spoil: func(all []trace.Request) []trace.Request {
			goOn(all, 14, 10, 3) // 174 tokens are two blocks and a partial third
			return all
		}, wants: []want{{check.TailIsFull, check.Warning, 1, "", []place{{3, "id 3002 ends 174 tokens in 3 blocks, and is full elsewhere"}}}}},
		{name: "tail that is full where it ends", spoil: func(all []trace.Request) []trace.Request {
			all[14].InputLength, all[14].HashIDs = 3*blockSize, all[2].HashIDs
			return all
		}, wants: []want{{check.TailIsFull, check.Warning, 1, "", []place{{3, "id 3002 ends 174 tokens in 3 blocks, and is full elsewhere"}}}}},
		{name: "full tail that goes on", spoil: func(all []trace.Request) []trace.Request {
			all[2].InputLength = 3 * blockSize
			goOn(all, 14, 10, 3)
			return all
		}},
		{name: "tails that are full elsewhere come by their lines", opts: check.Options{Examples: 20}, spoil: func(all []trace.Request) []trace.Request {
			for i := range 6 {
				all[23-i] = all[i+5]
				all[23-i].SessionID = ""
				all[23-i].InputLength = len(all[i+5].HashIDs) * blockSize
			}
			for i := range all {
				all[i].Timestamp = at(float64(i*1000 + i*i*7919%613))
			}
			return all[:29]
		}, wants: []want{{check.TailIsFull, check.Warning, 6, "", []place{
			{6, "id 6004 ends 285 tokens in 5 blocks, and is full elsewhere"},
			{7, "id 7005 ends 322 tokens in 6 blocks, and is full elsewhere"},
			{8, "id 8005 ends 359 tokens in 6 blocks, and is full elsewhere"},
			{9, "id 9006 ends 396 tokens in 7 blocks, and is full elsewhere"},
			{10, "id 10006 ends 433 tokens in 7 blocks, and is full elsewhere"},
			{11, "id 11007 ends 470 tokens in 8 blocks, and is full elsewhere"},
		}}}},
		{name: "tail of too many ids", opts: check.Options{BlockSize: blockSize}, spoil: func(all []trace.Request) []trace.Request {
			all[14].InputLength, all[14].HashIDs = 120, all[2].HashIDs
			return all
		}, wants: []want{{check.TooManyIDs, check.Warning, 1, "", []place{{15, "3 ids for input_length 120, 64 tokens a block"}}}}},
		{name: "tail of two lengths", spoil: func(all []trace.Request) []trace.Request {
			all[14].InputLength, all[14].HashIDs = 140, all[2].HashIDs
			all[15].InputLength, all[15].HashIDs = 174, all[2].HashIDs
			return all
		}, wants: []want{{check.TailTwoLengths, check.Warning, 1, "", []place{{15, "id 3002 ends 140 tokens in 3 blocks, and 174 elsewhere"}}}}},

		{name: "turns out of order", spoil: func(all []trace.Request) []trace.Request {
			all[29].Timestamp, all[29].Delay = at(4000), never
			return all
		}, wants: []want{
			{check.TimeBackwards, check.Error, 1, "", []place{{30, "timestamp 4000 after 15601 on line 29"}}},
			{check.SessionDisorder, check.Error, 1, "", []place{{30, `timestamp 4000 after 5373 on line 10, session_id "talk"`}}}}},
		{name: "turns that overlap", spoil: func(all []trace.Request) []trace.Request {
			all[29].Timestamp, all[29].Delay = at(17_000), never
			all[9].OutputLength = 17_000 - 5373 + 1
			return all
		}, wants: []want{{check.SessionOverlap, check.Warning, 1, "", []place{
			{30, `timestamp 17000 is 11627 ms after line 10 with output_length 11628, session_id "talk"`}}}}},
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
		}, wants: []want{{check.TailIsFull, check.Warning, 1, "", []place{{15, "id 10002 ends 191 tokens in 3 blocks, and is full elsewhere"}}}}},
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
		}, wants: []want{{check.NoTimestamps, check.Warning, 30, "none of 30 rows", nil}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := run(t, test.spoil(clean()), test.opts)
			compare(t, report, test.wants...)
			replayable := true
			for _, w := range test.wants {
				replayable = replayable && w.severity != check.Error
			}
			if report.Replayable() != replayable {
				t.Errorf("replayable: %v", report.Replayable())
			}
		})
	}
}

func later(all []trace.Request, ms float64) []trace.Request {
	for i := range all[:29] {
		all[i].Timestamp.Value += ms
	}
	return all
}

func answering(all []trace.Request, tokens int) []trace.Request {
	for i := range all {
		all[i].OutputLength = tokens
	}
	return all
}

// goOn gives a row a prompt of so many tokens more than the blocks of an
// earlier row, which it begins with.
func goOn(all []trace.Request, row, tokens, blocks int) {
	ids := append([]uint64{}, all[2].HashIDs[:blocks]...)
	all[row].InputLength = blocks*blockSize + tokens
	all[row].HashIDs = append(ids, uint64(1000*(row+1)+blocks))
}

func TestBlockSize(t *testing.T) {
	sized := func(size int, sizes ...int) (all []trace.Request) {
		for i, isl := range sizes {
			ids := []uint64{}
			for j := range (isl + size - 1) / size {
				ids = append(ids, uint64(1000*i+j))
			}
			all = append(all, trace.Request{Timestamp: trace.Some(float64(1000*i + i*i*7919%613)), InputLength: isl, OutputLength: 5 + i, HashIDs: ids})
		}
		return all
	}
	settled := []int{129, 128, 64, 200, 300, 1000, 50, 640, 100, 333}
	broken := sized(64, settled...)
	broken[3].HashIDs = broken[3].HashIDs[:2] // 200 tokens have 3 or 4
	broken[5].HashIDs = append(broken[5].HashIDs, 77_777, 88_888)
	floors := sized(64, 192, 128, 640)
	floors = append(floors, sized(64, 192, 200, 500)[1:]...)
	for i := range floors {
		floors[i].Timestamp.Value = float64(i * 1000)
		floors[i].HashIDs = floors[i].HashIDs[:floors[i].InputLength/64]
		for j := range floors[i].HashIDs {
			floors[i].HashIDs[j] = uint64(1000*i + j)
		}
	}
	floors[0].InputLength = 255 // three ids: more than 63 tokens a block
	nonsense := sized(5, 100, 200, 300, 400)
	for i := range nonsense {
		nonsense[i].HashIDs = nonsense[i].HashIDs[:20-5*i]
	}
	unsettled := []trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 200, OutputLength: 1, HashIDs: []uint64{0, 1, 2, 3}},
		{Timestamp: trace.Some(1.0), InputLength: 126, OutputLength: 1, HashIDs: []uint64{0, 1}},
	}
	few := []place{{4, "2 ids for input_length 200, 64 tokens a block"}}
	many := []place{{6, "18 ids for input_length 1000, 64 tokens a block"}}

	for _, test := range []struct {
		name  string
		given int
		all   []trace.Request
		used  int
		wants []want
	}{
		{"detected", 0, sized(64, settled...), 64, nil},
		{"given and right", 64, sized(64, settled...), 64, nil},
		{"given and wrong", 512, sized(64, settled...), 512, []want{
			{check.WrongBlockSize, check.Error, 10, "512 tokens fit 2 of 10 rows with ids; 64 fit all", nil}}},
		{"of no common kind", 0, sized(48, 97, 96, 480, 500), 48, nil},
		{"given, of no common kind", 48, sized(48, 97, 96, 480, 500), 48, nil},
		{"given wrong, of no common kind", 64, sized(48, 97, 96, 480, 500), 64, []want{
			{check.WrongBlockSize, check.Error, 4, "64 tokens fit 1 of 4 rows with ids; 48 fit all", nil}}},
		{"several fit", 0, sized(64, 100, 150, 1000, 600), 64, []want{
			{check.BlockSizeAssumed, check.Warning, 4, "64 tokens (assumed: every size from 63 to 66 fits)", nil}}},
		{"some rows break it, given", 64, broken, 64, []want{
			{check.TooFewIDs, check.Warning, 1, "", few}, {check.TooManyIDs, check.Warning, 1, "", many}}},
		{"some rows break it, assumed", 0, broken, 512, []want{
			{check.WrongBlockSize, check.Error, 10, "512 tokens fit 2 of 10 rows with ids; 64 fit 8", nil},
			{check.TooFewIDs, check.Warning, 1, "", few}, {check.TooManyIDs, check.Warning, 1, "", many}}},
		{"no size", 0, nonsense, 512, []want{
			{check.WrongBlockSize, check.Error, 4, "512 tokens fit 0 of 4 rows with ids; no size fits most of them", nil}}},
		{"floor, detected", 0, floors, 64, []want{{check.NoTailID, check.Note, 3, "", []place{
			{1, "3 ids for input_length 255, 64 tokens a block"},
			{4, "3 ids for input_length 200, 64 tokens a block"},
			{5, "7 ids for input_length 500, 64 tokens a block"}}}}},
		{"several fit, and with one of them no shared tail is partial", 0, unsettled, 64, []want{
			{check.BlockSizeAssumed, check.Warning, 2, "64 tokens (assumed: every size from 63 to 66 fits)", nil}}},
		{"floor", 64, floors, 64, []want{{check.NoTailID, check.Note, 3, "", []place{
			{1, "3 ids for input_length 255, 64 tokens a block"},
			{4, "3 ids for input_length 200, 64 tokens a block"},
			{5, "7 ids for input_length 500, 64 tokens a block"}}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := run(t, test.all, check.Options{BlockSize: test.given})
			compare(t, report, test.wants...)
			if report.BlockSize.Tokens != test.used {
				t.Errorf("block size %v, want %d", report.BlockSize, test.used)
			}
		})
	}
}
