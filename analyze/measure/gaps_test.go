package measure_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace/stats"
)

// The ITL covers all gaps, of any requests.
func TestITLIsThatOfAllGaps(t *testing.T) {
	var values []float64
	var records []replay.Record
	for i := range 30 {
		rec := answered(0, 1)
		for k := range 100 {
			rec.Gaps = append(rec.Gaps, time.Duration(i*k%77)*977)
			values = append(values, float64(rec.Gaps[k])/1e6)
		}
		rec.Chunks = len(rec.Gaps) + 1
		records = append(records, rec)
	}
	if diff := cmp.Diff(spreadOf(stats.Of(values)), spreadOf(compute(t, measure.Options{}, records...).ITL), close); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A run without chunk times measures the same, but for the resolution of ITL and
// for which second had the most tokens where they did not come evenly.
func TestRunWithoutChunkTimes(t *testing.T) {
	var kept, counted []replay.Record
	var list []runfile.GapCount
	for i := range 50 {
		first, gap := float64(1000*i+100), float64(i+1)
		rec := answered(float64(1000*i), first, first+gap, first+2*gap, first+3*gap, first+4*gap)
		rec.Row = i
		kept = append(kept, rec)
		rec.Gaps = nil
		counted = append(counted, rec)
		list = append(list, runfile.GapCount{NS: int64(at(gap)), Count: 4})
	}
	compute := func(records []replay.Record, gaps []runfile.GapCount) *measure.Result {
		return compute(t, measure.Options{Gaps: gaps}, records...)
	}
	want, got := compute(kept, nil), compute(counted, list)
	if got.GapsNotKept != 200 || got.GapsCounted != 200 || want.GapsNotKept != 0 {
		t.Errorf("%d gaps not kept, %d counted", got.GapsNotKept, got.GapsCounted)
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.99, 1} {
		if want.ITL.Quantile(q) != got.ITL.Quantile(q) || want.TPOT.Quantile(q) != got.TPOT.Quantile(q) {
			t.Errorf("quantile %v: ITL %v, want %v", q, got.ITL.Quantile(q), want.ITL.Quantile(q))
		}
	}
	if got.ITL.Count != want.ITL.Count || got.PeakOutputRate != want.PeakOutputRate || got.Output != want.Output {
		t.Errorf("%d gaps, peak %v, output %d", got.ITL.Count, got.PeakOutputRate, got.Output)
	}
	// With one run that kept its gaps and one that did not, each gap counts once.
	if both := compute(slices.Concat(kept[:25], counted[25:]), list[:10]); both.ITL.Count != 100+40 || both.GapsNotKept != 100 || both.GapsCounted != 40 {
		t.Errorf("of both: %d gaps, %d not kept, %d counted", both.ITL.Count, both.GapsNotKept, both.GapsCounted)
	}
	// However many chunks a damaged line claims, they are counted soon.
	counted[0].Chunks = 1 << 40
	if r := compute(counted[:1], nil); r.Completed != 1 {
		t.Error("a request with many chunks is lost")
	}
}
