package block_test

import (
	"fmt"
	"runtime"
	"testing"

	"moontide/trace/block"
	"moontide/trace/tracetest"
)

func BenchmarkTable(b *testing.B) {
	for _, naming := range tracetest.Namings() {
		for _, requests := range []int{4_000, 100_000} {
			b.Run(fmt.Sprintf("ids=%s/requests=%d", naming.Name, requests), func(b *testing.B) {
				all, total := tracetest.Prompts(requests, naming)
				var numbers []uint32
				var unique int
				var held uint64
				for b.Loop() {
					b.StopTimer()
					before := tracetest.Heap()
					b.StartTimer()
					var t block.Table
					for _, ids := range all {
						numbers = t.AppendNumbers(numbers[:0], ids)
					}
					b.StopTimer()
					unique, held = t.Len(), tracetest.Heap()-before
					runtime.KeepAlive(&t)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(total), "ns/reference")
				b.ReportMetric(float64(held)/float64(unique), "B/unique")
			})
		}
	}
}
