package check_test

import (
	"slices"
	"testing"

	"moontide/trace"
	"moontide/trace/check"
)

func TestIDs(t *testing.T) {
	testSpoiled(t, clean, []spoiled{
		{name: "no ids", spoil: func(all []trace.Request) {
			for i := range all {
				all[i].HashIDs = nil
			}
		}, wants: []want{{check.NoIDs, check.Note, 30, "none of 30 rows", nil}}},
		{name: "missing ids", spoil: func(all []trace.Request) { all[12].HashIDs = nil }, wants: []want{{check.MissingIDs, check.Warning, 1, "", []place{{13, "no hash_ids, input_length 144"}}}}},
		{name: "no ids, in empty lists", spoil: func(all []trace.Request) {
			for i := range all {
				all[i].HashIDs = []uint64{}
			}
			all[5].InputLength = 0
		}, wants: []want{{check.ZeroInput, check.Error, 1, "", []place{{6, "input_length 0"}}}, {check.NoIDs, check.Note, 30, "none of 30 rows", nil}}},
		{name: "missing ids and empty lists", spoil: func(all []trace.Request) {
			all[12].HashIDs, all[13].HashIDs, all[14].HashIDs = []uint64{}, nil, []uint64{}
		}, wants: []want{{check.MissingIDs, check.Warning, 3, "", []place{
			{13, "hash_ids is empty, input_length 144"}, {14, "no hash_ids, input_length 181"}, {15, "hash_ids is empty, input_length 218"}}}}},
		{name: "two ids in one row", spoil: func(all []trace.Request) {
			ids := all[12].HashIDs // three
			ids[2] = ids[1]
		}, wants: []want{{check.RepeatedID, check.Error, 1, "", []place{{13, "id 13001 again as block 3 of 3"}}}}},
		{name: "three ids in one row count once", keep: 29, spoil: func(all []trace.Request) {
			ids := all[9].HashIDs // seven
			ids[4], ids[5] = ids[3], ids[3]
			all[29] = all[28]
		}, wants: []want{{check.RepeatedID, check.Error, 1, "", []place{{10, "id 10003 again as block 5 of 7"}}}}},
		{name: "two parents", spoil: func(all []trace.Request) {
			all[20].HashIDs[2] = all[9].HashIDs[2]  // after another block
			all[21].HashIDs[0] = all[9].HashIDs[2]  // first, but reported before
			all[21].HashIDs[1] = all[22].HashIDs[1] // after a block and after another
		}, wants: []want{{check.TwoParents, check.Error, 2, "", []place{
			{21, "id 10002 is block 3, after id 21001, but not on line 10"},
			{23, "id 23001 is block 2, after id 0, but not on line 22"}}}}},
		{name: "two parents, long after the first use", spoil: func(all []trace.Request) {
			own := all[9].HashIDs[1]
			all[12].HashIDs[1] = own
			all[20].HashIDs[2] = own
		}, wants: []want{{check.TwoParents, check.Error, 1, "", []place{{21, "id 10001 is block 3, after id 21001, but not on line 13"}}}}},
		{name: "one prompt inside another", spoil: func(all []trace.Request) {
			all[2].InputLength = 150
			inside := append([]uint64{77_777}, all[2].HashIDs...)
			all[20].InputLength, all[20].HashIDs = 230, inside
		}, wants: []want{{check.TwoParents, check.Error, 1, "", []place{{21, "id 0 is block 2, after id 77777, but not on line 20"}}}}},
		{name: "parent or none", spoil: func(all []trace.Request) { all[20].HashIDs[0] = all[9].HashIDs[2] }, wants: []want{{check.TwoParents, check.Error, 1, "", []place{{21, "id 10002 is the first block, but not on line 10"}}}}},
	})
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
	short := append(slices.Clone(floors), trace.Request{Timestamp: trace.Some(6000.0), InputLength: 63, OutputLength: 3, HashIDs: []uint64{}})
	unsettled := []trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 200, OutputLength: 1, HashIDs: []uint64{0, 1, 2, 3}},
		{Timestamp: trace.Some(1.0), InputLength: 126, OutputLength: 1, HashIDs: []uint64{0, 1}},
	}
	noTail := []place{
		{1, "3 ids for input_length 255, 64 tokens a block"},
		{4, "3 ids for input_length 200, 64 tokens a block"},
		{5, "7 ids for input_length 500, 64 tokens a block"}}
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
		{"floor, detected", 0, floors, 64, []want{{check.NoTailID, check.Note, 3, "", noTail}}},
		{"floor, detected, a prompt below one block", 0, short, 64, []want{{check.NoTailID, check.Note, 4, "", append(slices.Clone(noTail), place{6, "0 ids for input_length 63"})}}},
		{"larger than any block", 0, sized(100_000, 99_999, 100_000), 512, []want{
			{check.WrongBlockSize, check.Error, 2, "512 tokens fit 0 of 2 rows with ids; no size fits most of them", nil}}},
		{"one block a prompt", 0, sized(2000, 1501, 1400), 2048, []want{
			{check.BlockSizeAssumed, check.Warning, 2, "2048 tokens (assumed: every size from 1501 fits)", nil}}},
		{"several fit, and with one of them no shared tail is partial", 0, unsettled, 64, []want{
			{check.BlockSizeAssumed, check.Warning, 2, "64 tokens (assumed: every size from 63 to 66 fits)", nil}}},
		{"floor", 64, floors, 64, []want{{check.NoTailID, check.Note, 3, "", noTail}}},
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
