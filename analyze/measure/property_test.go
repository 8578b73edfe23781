package measure_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/trace"
)

const blockSize = 16

// anyRun draws requests of all kinds: answered and failed, with and without
// counts, instants and block ids.
func anyRun(t *rapid.T) []replay.Record {
	records := rapid.SliceOfN(rapid.Custom(anyRecord), 1, 20).Draw(t, "records")
	for i := range records {
		records[i].Row = i
	}
	return records
}

func anyRecord(t *rapid.T) replay.Record {
	after := func(at time.Duration, name string) time.Duration {
		return at + time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, name))
	}
	count := func(name string) trace.Opt[int] {
		return trace.Opt[int]{Value: rapid.IntRange(0, 50).Draw(t, name), Set: rapid.Bool().Draw(t, "has "+name)}
	}
	rec := replay.Record{
		Request: trace.Request{InputLength: rapid.IntRange(0, 60).Draw(t, "ISL"), OutputLength: rapid.IntRange(0, 9).Draw(t, "OSL")},
		Due:     after(0, "due"),
		Counts:  replay.Counts{Input: count("input"), Output: count("output"), Cached: count("cached"), Reasoning: count("reasoning")},
		Class:   rapid.SampledFrom([]replay.Class{replay.OK, replay.OK, replay.OK, replay.Timeout, replay.Server}).Draw(t, "class"),
	}
	rec.Ready = after(rec.Due, "ready")
	sent := after(rec.Ready, "sent")
	rec.Done = sent
	rec.Sent = trace.Opt[time.Duration]{Value: sent, Set: rapid.IntRange(0, 9).Draw(t, "sent?") > 0}
	if chunks := rapid.IntRange(0, 7).Draw(t, "chunks"); chunks > 0 {
		at := after(sent, "first")
		rec.Chunks, rec.First = chunks, trace.Some(at)
		for range chunks - 1 {
			next := after(at, "next")
			rec.Gaps = append(rec.Gaps, next-at)
			at = next
		}
		rec.Last, rec.Done = trace.Some(at), after(at, "done")
		switch reasoning := rapid.IntRange(-chunks, chunks).Draw(t, "reasoning"); {
		case reasoning == chunks:
			rec.ReasoningOnly = true
		case reasoning > 0:
			rec.FirstVisible = rec.First
			for _, gap := range rec.Gaps[:reasoning] {
				rec.FirstVisible.Value += gap
			}
		}
	}
	if rec.Class != replay.OK {
		rec.Error = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "error")
	}
	if rapid.IntRange(0, 19).Draw(t, "ids?") > 0 {
		rec.HashIDs = append([]uint64{}, rapid.SliceOfN(rapid.Uint64Range(0, 5), 0, 4).Draw(t, "ids")...)
	}
	return rec
}

// wantSame fails if two results differ, and shows where.
func wantSame(t *rapid.T, got, want *measure.Result) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("-want +got:\n%.3000s", cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })))
	}
}

// The order in which requests end does not affect the metrics.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := anyRun(rt)
		want := compute(t, measure.Options{BlockSize: blockSize}, records...)
		got := compute(t, measure.Options{BlockSize: blockSize}, rapid.Permutation(records).Draw(rt, "permutation")...)
		wantSame(rt, got, want)
	})
}

// No cache that begins empty knows more than is explained, in any order.
func TestExplainedBoundsAnInfiniteCache(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := anyRun(rt)
		explained := compute(t, measure.Options{BlockSize: blockSize}, records...).Cache.MaxHits
		cache, known := map[uint64]bool{}, 0
		for _, rec := range records {
			if !rec.Sent.Set {
				continue
			}
			hits := 0
			for hits < len(rec.HashIDs) && cache[rec.HashIDs[hits]] {
				hits++
			}
			if rec.Class == replay.OK {
				known += min(hits*blockSize, rec.InputLength)
			}
			for _, id := range rec.HashIDs {
				cache[id] = true
			}
		}
		if explained.Set && explained.Value < known {
			rt.Errorf("%d tokens are explained, but %d can be cached", explained.Value, known)
		}
	})
}

// The windows begin at every multiple of 10 ms.
func TestPeakOutputRateIsThatOfTheBestWindow(t *testing.T) {
	const step = 10 * time.Millisecond
	rapid.Check(t, func(rt *rapid.T) {
		records := anyRun(rt)
		want := 0.0
		for start := time.Duration(0); start < 40*time.Second; start += step {
			want = max(want, tokensIn(records, start, start+time.Second))
		}
		if got := compute(t, measure.Options{}, records...).PeakOutputRate; math.Abs(got-want) > 0.001 {
			rt.Errorf("%v, want %v", got, want)
		}
	})
}

func tokensIn(records []replay.Record, from, to time.Duration) (tokens float64) {
	for _, rec := range records {
		if rec.Class != replay.OK || !rec.Sent.Set || !rec.First.Set {
			continue
		}
		output, _ := rec.OutputTokens()
		at := rec.First.Value
		for i := range rec.Chunks {
			if i > 0 {
				at += rec.Gaps[i-1]
			}
			if at >= from && at < to {
				tokens += float64(output*(i+1)/rec.Chunks - output*i/rec.Chunks)
			}
		}
	}
	return tokens
}

func TestConcurrencyIsTheMostInFlightAtAnySend(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := anyRun(rt)
		for range rapid.IntRange(0, 10).Draw(rt, "touching") { // at the same instants
			sent := float64(rapid.IntRange(0, 20).Draw(rt, "sent"))
			records = append(records, answered(sent, sent+float64(rapid.IntRange(0, 9).Draw(rt, "took"))))
		}
		want := 0
		for _, a := range records {
			inFlight := 0
			for _, b := range records {
				if a.Sent.Set && b.Sent.Set && b.Sent.Value <= a.Sent.Value && a.Sent.Value < b.Done {
					inFlight++
				}
			}
			want = max(want, inFlight)
		}
		if got := compute(t, measure.Options{}, records...).PeakConcurrency; got != want {
			rt.Errorf("%d, want %d", got, want)
		}
	})
}
