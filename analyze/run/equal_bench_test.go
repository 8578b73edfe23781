package run

import (
	"fmt"
	"testing"
	"time"

	"moontide/replay"
	"moontide/trace"
)

// Prompts that are all the same end within the same block, which must not be
// looked up in all of them for each.
func BenchmarkEqualPrompts(b *testing.B) {
	for _, n := range []int{1_000, 30_000} {
		b.Run(fmt.Sprintf("requests=%d", n), func(b *testing.B) {
			ids := []uint64{1, 2, 3}
			for b.Loop() {
				_, err := Compute(func(yield func(replay.Record, error) bool) {
					for i := range n {
						at := time.Duration(i) * time.Millisecond
						rec := replay.Record{
							Request: trace.Request{InputLength: 1200, OutputLength: 1, HashIDs: ids}, Row: i,
							Due: at, Ready: at, Sent: trace.Some(at), First: trace.Some(at + time.Second), Last: trace.Some(at + time.Second), Done: at + time.Second,
							Chunks: 1, Counts: replay.Counts{Input: trace.Some(1200), Output: trace.Some(1), Cached: trace.Some(1199)}, Status: 200,
						}
						if !yield(rec, nil) {
							return
						}
					}
				}, Options{BlockSize: 512})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
		})
	}
}
