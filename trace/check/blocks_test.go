package check_test

import (
	"slices"
	"testing"

	"moontide/trace"
	"moontide/trace/check"
)

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
