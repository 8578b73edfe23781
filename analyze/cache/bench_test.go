package cache_test

import (
	"fmt"
	"runtime"
	"testing"

	"moontide/analyze/cache"
	"moontide/trace/block"
	"moontide/trace/routing"
	"moontide/trace/tracetest"
)

// From ids to the curve.
func BenchmarkCurve(b *testing.B) {
	simulated(b, "curve", func(s *cache.Sequence, _ int) error {
		s.Curve(512)
		return nil
	})
}

func sequence(all [][]uint64) (*cache.Sequence, int) {
	var table block.Table
	var s cache.Sequence
	var numbers []uint32
	for _, ids := range all {
		numbers = table.AppendNumbers(numbers[:0], ids)
		s.Add(numbers, 512*len(ids)-100, "")
	}
	return &s, table.Len()
}

// simulated reports the time and the allocated bytes of simulations of a trace
// of 10,000 requests at a capacity that holds a tenth of its blocks.
func simulated(b *testing.B, name string, work func(s *cache.Sequence, capacity int) error) {
	for _, naming := range tracetest.Namings() {
		all, references := tracetest.Prompts(10_000, naming)
		b.Run(fmt.Sprintf("%s/ids=%s", name, naming.Name), func(b *testing.B) {
			var unique int
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				var s *cache.Sequence
				s, unique = sequence(all)
				if err := work(s, unique/10); err != nil {
					b.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			allocated := float64(after.TotalAlloc-before.TotalAlloc) / float64(b.N)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(references), "ns/reference")
			b.ReportMetric(allocated/float64(unique), "alloc-B/unique")
		})
	}
}

func BenchmarkSimulate(b *testing.B) {
	for _, policy := range cache.Policies() {
		simulated(b, "policy="+string(policy), func(s *cache.Sequence, capacity int) error {
			_, err := cache.Simulate(s, policy, 512, capacity)
			return err
		})
	}
}

func BenchmarkCompare(b *testing.B) {
	for _, policy := range routing.Policies() {
		simulated(b, "workers=8/routing="+string(policy), func(s *cache.Sequence, capacity int) error {
			c, err := cache.NewComparer(s, 512)
			if err != nil {
				return err
			}
			_, err = c.Compare(cache.Fleet{Workers: 8, Capacity: capacity / 8}, policy)
			return err
		})
	}
}
