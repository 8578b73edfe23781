package measure_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

func TestPeakOutputRate(t *testing.T) {
	weighing := func(tokens int, rec replay.Record) replay.Record {
		rec.OutputLength, rec.Counts.Output = tokens, trace.Some(tokens)
		return rec
	}
	year := float64(365 * 24 * time.Hour / time.Millisecond)
	for _, test := range []struct {
		name    string
		records []replay.Record
		want    float64
	}{
		{"a chunk is a token where nothing else is known", []replay.Record{answered(0, 10, 20, 30)}, 3},
		{"a chunk has its share, in whole tokens", []replay.Record{weighing(7, answered(0, 10, 20, 2000))}, 4},
		{"whole tokens stay whole, in however many parts", []replay.Record{weighing(10, answered(0, 10, 20, 30, 40, 50, 60, 70))}, 10},
		{"the densest second, not the first", []replay.Record{answered(0, 10, 5010, 5020, 5030, 9000)}, 3},
		// A counter for each step up to then would take 5 GB.
		{"an instant that is far away", []replay.Record{answered(0, 10, 20), weighing(50, answered(0, 200*year))}, 50},
		{"an instant before the start", []replay.Record{answered(-50, -20, 10)}, 2},
	} {
		if got := compute(t, measure.Options{}, test.records...).PeakOutputRate; got < test.want-0.001 || got > test.want+0.001 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestOfferedAndAchievedRate(t *testing.T) {
	rate := func(r float64) trace.Opt[float64] { return trace.Some(r) }
	late := func(due, sent float64) replay.Record {
		rec := answered(sent, sent+100)
		rec.Due = at(due)
		return rec
	}
	for _, test := range []struct {
		name              string
		records           []replay.Record
		offered, achieved trace.Opt[float64]
	}{
		{"one request", []replay.Record{late(0, 0)}, trace.Opt[float64]{}, trace.Opt[float64]{}},
		{"a burst, sent over 0.1 s", []replay.Record{late(0, 0), late(0, 50), late(0, 100)}, trace.Opt[float64]{}, rate(30)},
		{"15/s, sent at 7.5/s", []replay.Record{late(1000, 1000), late(1100, 1200), late(1200, 1400)}, rate(15), rate(7.5)},
		{"a trace that begins before 0", []replay.Record{late(-2000, 0), late(-1000, 500)}, rate(2), rate(4)},
		{"not all were sent", []replay.Record{late(0, 0), late(100, 100), {Due: at(200), Class: replay.Connect}}, rate(15), rate(20)},
	} {
		r := compute(t, measure.Options{}, test.records...)
		if r.OfferedRate != test.offered || r.AchievedRate != test.achieved {
			t.Errorf("%s: offered %v, achieved %v", test.name, r.OfferedRate, r.AchievedRate)
		}
	}
}

func TestMaxHits(t *testing.T) {
	prompt := func(isl int, ids ...uint64) replay.Record { return asked(0, 0, 100, isl, 0, ids...) }
	failed, unsent := prompt(30, 1, 2), replay.Record{Class: replay.Connect}
	failed.Class = replay.Truncated
	for _, test := range []struct {
		name    string
		records []replay.Record
		want    trace.Opt[int]
	}{
		{"alone", []replay.Record{prompt(30, 1, 2)}, trace.Some(0)},
		{"the first block", []replay.Record{prompt(30, 1, 2), prompt(32, 1, 3)}, trace.Some(16)},
		// A tail of 8 tokens is a full block elsewhere. If the tail comes first,
		// the longer prompt finds up to 32; if last, 24 are found.
		{"a tail that is a full block elsewhere", []replay.Record{prompt(24, 1, 2), prompt(48, 1, 2, 3)}, trace.Some(32)},
		{"no blocks at all", []replay.Record{prompt(0), prompt(30, 1, 2)}, trace.Opt[int]{}},
		{"an empty list of blocks", []replay.Record{{Request: trace.Request{HashIDs: []uint64{}}, Sent: instant(0)}, prompt(30, 1, 2)}, trace.Some(0)},
		{"a failed one may have filled the cache", []replay.Record{failed, prompt(30, 1, 2)}, trace.Some(30)},
		{"but nobody counts what it hit", []replay.Record{failed, failed}, trace.Some(0)},
		{"one that was not sent is not looked at", []replay.Record{unsent, prompt(30, 1, 2)}, trace.Some(0)},
		{"more ids than tokens", []replay.Record{prompt(10, 1, 2, 3), prompt(10, 1, 2, 3)}, trace.Some(10)},
	} {
		if got := compute(t, measure.Options{BlockSize: 16}, test.records...).Cache.MaxHits; got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if got := compute(t, measure.Options{}, prompt(30, 1, 2)).Cache.MaxHits; got.Set {
		t.Errorf("without a block size: %v", got)
	}
}

// How many records are expected changes nothing but memory, right or wrong.
func TestExpectedChangesNothing(t *testing.T) {
	want := compute(t, measure.Options{BlockSize: 16, Detail: true}, sound(50)...)
	for _, expected := range []int{-1, 1, 50, 5000} {
		if got := compute(t, measure.Options{BlockSize: 16, Detail: true, Expected: expected}, sound(50)...); !reflect.DeepEqual(want, got) {
			t.Errorf("%d expected: it is another result", expected)
		}
	}
}

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
