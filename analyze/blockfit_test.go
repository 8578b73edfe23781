package analyze_test

import (
	"testing"

	"moontide/analyze"
	"moontide/trace"
)

func TestBlockFit(t *testing.T) {
	chat := []trace.Request{prompt(1024, 1, 2), prompt(1025, 1, 2, 3), prompt(7, 9), {InputLength: 5000}}
	// 16 fits 33, 48 and the 40 that leaves its tail out, no size fits 100 in 2 and 3.
	mixed := []trace.Request{prompt(33, 1, 2, 3), prompt(48, 1, 2, 4), prompt(40, 1, 2), prompt(100, 5, 6), prompt(100, 5, 6, 7)}
	for name, test := range map[string]struct {
		rows []trace.Request
		size int
		want analyze.BlockFit
	}{
		"detected":            {chat, 0, analyze.BlockFit{Rows: 3, Fits: 3}},
		"given, too small":    {chat, 16, analyze.BlockFit{Rows: 3, Fits: 1, Better: 512, BetterFits: 3}},
		"given, too large":    {chat, 1000, analyze.BlockFit{Rows: 3, Fits: 2, Better: 512, BetterFits: 3}},
		"given, right":        {chat, 512, analyze.BlockFit{Rows: 3, Fits: 3}},
		"none fits all":       {mixed, 0, analyze.BlockFit{Rows: 5, Fits: 0, Better: 16, BetterFits: 3}},
		"given, best of them": {mixed, 16, analyze.BlockFit{Rows: 5, Fits: 3}},
		"no ids":              {chat[3:], 16, analyze.BlockFit{}},
	} {
		if got := analyzed(t, analyze.Options{BlockSize: test.size}, test.rows...).BlockFit; got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// Rows that go back in time are counted, each against the timed row above it.
func TestBackwards(t *testing.T) {
	for want, rows := range map[int][]trace.Request{
		0: {at(1), at(1), {}, at(5)},
		1: {at(0), at(9), at(1), at(2)},
		2: {at(9), {}, at(5), at(6), at(5)},
	} {
		a := analyzed(t, analyze.Options{}, rows...).Arrivals
		if a.Backwards != want || a.First > 1 && want == 0 {
			t.Errorf("%d rows are backwards, want %d", a.Backwards, want)
		}
	}
}
