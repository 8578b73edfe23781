package analyze_test

import (
	"fmt"
	"runtime"
	"testing"

	"moontide/analyze"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// rows makes requests of prompts that share their beginnings.
func rows(n int, naming tracetest.Naming) (all []trace.Request, references int) {
	prompts, references := tracetest.Prompts(n, naming)
	for i, ids := range prompts {
		all = append(all, trace.Request{
			Timestamp:   trace.Some(float64(i / 3 * 1000)),
			InputLength: 512*len(ids) - i*7919%512, OutputLength: 1 + i*104729%1000,
			HashIDs: ids,
		})
	}
	return all, references
}

// The statistics of rows in memory; B/unique is the memory of the result.
func BenchmarkTrace(b *testing.B) {
	for _, naming := range tracetest.Namings() {
		for _, requests := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("ids=%s/requests=%d", naming.Name, requests), func(b *testing.B) {
				all, references := rows(requests, naming)
				var unique int
				var held uint64
				for b.Loop() {
					b.StopTimer()
					before := tracetest.Heap()
					b.StartTimer()
					a, err := analyze.Trace(trace.FromSlice(all), analyze.Options{})
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					unique, held = a.Prefix.UniqueBlocks, tracetest.Heap()-before
					runtime.KeepAlive(a)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(references), "ns/reference")
				b.ReportMetric(float64(held)/float64(unique), "B/unique")
			})
		}
	}
}
