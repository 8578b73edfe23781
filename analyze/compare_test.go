package analyze_test

import (
	"testing"

	"moontide/analyze"
	"moontide/trace"
)

func TestCompare(t *testing.T) {
	row := func(ms float64, isl, osl int, ids ...uint64) trace.Request {
		return trace.Request{Timestamp: trace.Some(ms), InputLength: isl, OutputLength: osl, HashIDs: ids}
	}
	a := analyzed(t, byTens, row(0, 20, 5, 1, 2), row(10, 20, 5, 1, 3))
	b := analyzed(t, byTens, row(0, 20, 5, 1, 2), row(30, 40, 8, 4, 5, 6, 7), row(60, 20, 5, 1, 2))
	talk := analyzed(t, byTens, row(0, 20, 5, 1, 2), row(10, 30, 5, 1, 2, 3))
	slow := analyzed(t, byTens, row(0, 20, 5, 1, 2), row(25, 30, 5, 1, 2, 3))
	bare := analyzed(t, byTens, lengths([2]int{20, 5})...)
	far := func(ks, w float64) trace.Opt[analyze.Distance] {
		return trace.Some(analyze.Distance{KS: ks, Wasserstein: w})
	}
	same, absent := far(0, 0), trace.Opt[analyze.Distance]{}
	tests := []struct {
		name string
		a, b *analyze.Analysis
		want analyze.Comparison
	}{
		{"with itself", b, b, analyze.Comparison{ISL: same, OSL: same, Context: same, Gap: same, Turns: same}},
		// Contexts 10 10 and 20 0 20; gaps 10 and 30 30.
		{"two traces", a, b, analyze.Comparison{
			ISL: far(1.0/3, 20.0/3), OSL: far(1.0/3, 1), Context: far(2.0/3, 10), Gap: far(1, 20), Turns: same}},
		{"sessions", talk, slow, analyze.Comparison{ISL: same, OSL: same, Context: same, Gap: far(1, 15), Turns: same, TurnGap: far(1, 15)}},
		{"sessions and none", talk, a, analyze.Comparison{
			ISL: far(.5, 5), OSL: same, Context: far(1, 10), Gap: same, Turns: far(1, 1)}},
		{"only what both have", a, bare, analyze.Comparison{ISL: same, OSL: same, Context: absent, Gap: absent}},
	}
	for _, test := range tests {
		for _, got := range []analyze.Comparison{analyze.Compare(test.a, test.b), analyze.Compare(test.b, test.a)} {
			for i, pair := range [][2]trace.Opt[analyze.Distance]{
				{got.ISL, test.want.ISL}, {got.OSL, test.want.OSL}, {got.Context, test.want.Context}, {got.Gap, test.want.Gap},
				{got.Turns, test.want.Turns}, {got.TurnGap, test.want.TurnGap},
			} {
				x, y := pair[0], pair[1]
				if x.Set != y.Set || !near(x.Value.KS, y.Value.KS) || !near(x.Value.Wasserstein, y.Value.Wasserstein) {
					t.Errorf("%s: distance %d of ISL, OSL, context, gap, turns, turn gap is %+v, want %+v", test.name, i, x, y)
				}
			}
		}
	}
}
