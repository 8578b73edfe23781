package block_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"moontide/trace/block"
)

func BenchmarkTable(b *testing.B) {
	for _, naming := range namings() {
		for _, requests := range []int{4_000, 100_000} {
			b.Run(fmt.Sprintf("ids=%s/requests=%d", naming.name, requests), func(b *testing.B) {
				all, total := prompts(requests, naming)
				var numbers []uint32
				var unique int
				var held uint64
				for b.Loop() {
					b.StopTimer()
					before := heapInUse()
					b.StartTimer()
					var t block.Table
					for _, ids := range all {
						numbers = t.AppendNumbers(numbers[:0], ids)
					}
					b.StopTimer()
					unique, held = t.Len(), heapInUse()-before
					runtime.KeepAlive(&t)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(total), "ns/reference")
				b.ReportMetric(float64(held)/float64(unique), "B/unique")
			})
		}
	}
}

// naming assigns block ids: id returns the id of the n-th distinct block, from 0.
type naming struct {
	name string
	id   func(n uint64) uint64
}

// namings returns the kinds of block ids in traces: consecutive, hashes, and a mix
// of both.
func namings() []naming {
	random := func(n uint64) uint64 { return rand.New(rand.NewPCG(3, n)).Uint64() }
	return []naming{
		{"consecutive", func(n uint64) uint64 { return n }},
		{"random", random},
		{"mixed", func(n uint64) uint64 {
			if n>>12%2 == 0 {
				return n
			}
			return random(n)
		}},
	}
}

// prompts makes n prompts of 8 to 146 blocks, 77 on average, with prefix-chained
// ids. The first half of each is the beginning of an earlier prompt. It also
// returns their total number of blocks. The result is deterministic.
func prompts(n int, naming naming) (all [][]uint64, references int) {
	random := rand.New(rand.NewPCG(1, 2))
	next := uint64(0)
	for range n {
		var ids []uint64
		blocks := 8 + random.IntN(139)
		if len(all) > 0 {
			earlier := all[random.IntN(len(all))]
			ids = append(ids, earlier[:min(len(earlier), blocks/2)]...)
		}
		for len(ids) < blocks {
			ids = append(ids, naming.id(next))
			next++
		}
		all = append(all, ids)
		references += blocks
	}
	return all, references
}

// heapInUse returns the heap in use after a garbage collection, in bytes.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
