package run

import (
	"slices"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

// A run without chunk times measures the same, but for the resolution of ITL and
// for which second had the most tokens where they did not come evenly.
func TestRunWithoutChunkTimes(t *testing.T) {
	t.Parallel()
	var kept, counted []replay.Record
	counts := map[int64]int64{}
	for i := range 50 {
		at := time.Duration(i) * time.Second
		rec := replay.Record{
			Request: trace.Request{InputLength: 10, OutputLength: 5}, Row: i, Due: at, Ready: at, Sent: trace.Some(at),
			First: trace.Some(at + 100*time.Millisecond), Chunks: 5, Status: 200,
		}
		gap := time.Duration(i+1) * time.Millisecond
		rec.Gaps = slices.Repeat([]time.Duration{gap}, 4)
		rec.Last = trace.Some(rec.First.Value + 4*gap)
		rec.Done = rec.Last.Value
		kept = append(kept, rec)
		rec.Gaps = nil
		counted = append(counted, rec)
		counts[int64(gap)] += 4
	}
	var list []runfile.GapCount
	for ns, n := range counts {
		list = append(list, runfile.GapCount{NS: ns, Count: n})
	}
	compute := func(records []replay.Record, gaps []runfile.GapCount) *Result {
		r, err := Compute(func(yield func(replay.Record, error) bool) {
			for _, rec := range records {
				if !yield(rec, nil) {
					return
				}
			}
		}, Options{Gaps: gaps})
		if err != nil {
			t.Fatal(err)
		}
		return r
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
