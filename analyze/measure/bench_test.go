package measure_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/replay"
	"moontide/trace"
)

// streamed makes a run at 20 requests a second whose answers come at about 50
// chunks a second.
func streamed(requests, gaps int) []replay.Record {
	random := rand.New(rand.NewPCG(1, 2))
	records := make([]replay.Record, requests)
	for i := range records {
		due := time.Duration(i) * 50 * time.Millisecond
		first := due + 100*time.Millisecond + time.Duration(random.Int64N(1e8))
		rec := replay.Record{
			Request: trace.Request{InputLength: 2048, OutputLength: gaps + 1, HashIDs: []uint64{0, 1, 2, uint64(i + 3)}},
			Row:     i, Due: due, Ready: due, Sent: trace.Some(due + 1e5), First: trace.Some(first),
			Chunks: gaps + 1,
			Counts: replay.Counts{Input: trace.Some(2048), Output: trace.Some(gaps + 1), Cached: trace.Some(1536)},
			Status: 200,
		}
		last := first
		for range gaps {
			gap := 10*time.Millisecond + time.Duration(random.Int64N(2e7))
			rec.Gaps = append(rec.Gaps, gap)
			last += gap
		}
		rec.Last, rec.Done = trace.Some(last), last+1e5
		records[i] = rec
	}
	return records
}

func BenchmarkCompute(b *testing.B) {
	const requests, gaps = 10_000, 300
	b.Run(fmt.Sprintf("requests=%d/gaps=%d", requests, gaps), func(b *testing.B) {
		records := streamed(requests, gaps)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for b.Loop() {
			if _, err := measure.Compute(each(records), measure.Options{BlockSize: 512}); err != nil {
				b.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		total := float64(b.N * requests * gaps)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/total, "ns/gap")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/total, "B/gap")
	})
}
