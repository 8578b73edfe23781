package analyze_test

import (
	"math"
	"testing"

	"moontide/analyze"
	"moontide/trace"
)

// lengths are rows of ISL and OSL.
func lengths(pairs ...[2]int) (rows []trace.Request) {
	for _, p := range pairs {
		rows = append(rows, trace.Request{InputLength: p[0], OutputLength: p[1]})
	}
	return rows
}

func TestLengthsTogether(t *testing.T) {
	none, some := trace.Opt[float64]{}, trace.Some[float64]
	tests := []struct {
		name                     string
		rows                     []trace.Request
		ratio, pearson, spearman trace.Opt[float64]
		ratios                   []float64
	}{
		{"one row", lengths([2]int{30, 10}), some(3), none, none, []float64{3}},
		{"monotonic, not linear", lengths([2]int{1, 1}, [2]int{2, 2}, [2]int{3, 9}), some(0.5),
			some(8 / math.Sqrt(2*38)), some(1), []float64{1.0 / 3, 1, 1}},
		// Ranks 1.5 1.5 3 4 and 4 3 1.5 1.5: deviations -1 -1 .5 1.5, 1.5 .5 -1 -1.
		{"ties", lengths([2]int{5, 90}, [2]int{5, 80}, [2]int{6, 7}, [2]int{5000, 7}), some(5016.0 / 184),
			some((-1249*44 - 1249*34 + 1248*39 - 3746*39) / math.Sqrt((2*1249*1249+1248*1248+3746*3746)*(44*44+34*34+2*39*39.0))),
			some(-4 / 4.5), []float64{5.0 / 90, 5.0 / 80, 6.0 / 7, 5000.0 / 7}},
		{"empty answers have no ratio", lengths([2]int{8, 0}, [2]int{4, 3}), some(4), some(-1), some(-1), []float64{4.0 / 3}},
		{"only empty answers", lengths([2]int{8, 0}, [2]int{4, 0}), none, none, none, nil},
		{"prompts all alike", lengths([2]int{8, 1}, [2]int{8, 2}), some(16.0 / 3), none, none, []float64{4, 8}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := analyzed(t, analyze.Options{}, test.rows...).Lengths
			if !sameOpt(l.Ratio, test.ratio) || !sameOpt(l.Pearson, test.pearson) || !sameOpt(l.Spearman, test.spearman) {
				t.Errorf("ratio %v, Pearson %v, Spearman %v, want %v, %v, %v",
					l.Ratio, l.Pearson, l.Spearman, test.ratio, test.pearson, test.spearman)
			}
			if !sameValues(l.Ratios, test.ratios...) {
				t.Errorf("ratios %v, want %v", values(l.Ratios), test.ratios)
			}
		})
	}
}

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
