package run_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace/stats"
)

// The ITL covers all gaps, in any order, however many distinct gaps there are. Quantiles of
// more than a million have five digits.
func TestITLIsThatOfAllGaps(t *testing.T) {
	const perRequest = 1000
	for _, different := range []int{1, 2, 500, 767, 769, 100_000, 1_000_000} {
		t.Run(fmt.Sprintf("different=%d", different), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(different), 7))
			var gaps []time.Duration
			var values []float64
			for i := range max(3000, different+different/4) {
				gap := time.Duration(i%different) * 977
				gaps = append(gaps, gap)
				values = append(values, float64(gap)/1e6)
			}
			want := stats.Of(values)
			for range 2 {
				random.Shuffle(len(gaps), func(i, k int) { gaps[i], gaps[k] = gaps[k], gaps[i] })
				var records []replay.Record
				for some := range slices.Chunk(gaps, perRequest) {
					rec := answered(0, 1)
					rec.Gaps, rec.Chunks = slices.Clone(some), len(some)+1
					records = append(records, rec)
				}
				got := compute(t, run.Options{}, records...).ITL
				near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
				if got.Count != want.Count || got.Min != want.Min || got.Max != want.Max || !near(got.Mean, want.Mean) || !near(got.Std, want.Std) {
					t.Errorf("%d gaps, mean %v, std %v; want %d, %v, %v", got.Count, got.Mean, got.Std, want.Count, want.Mean, want.Std)
				}
				for _, p := range []float64{0.01, 0.5, 0.9, 0.99, 0.999} {
					if got, want := got.Quantile(p), want.Quantile(p); math.Abs(got-want) > 4e-6*want || got != want && len(gaps) < 1<<20 {
						t.Errorf("quantile %v is %v, want %v", p, got, want)
					}
				}
			}
		})
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
	compute := func(records []replay.Record, gaps []runfile.GapCount) *run.Result {
		return compute(t, run.Options{Gaps: gaps}, records...)
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
