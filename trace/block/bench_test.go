package block_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"moontide/trace/block"
)

// prompts makes chained prompts of 8 to 135 blocks, half of which are the
// beginning of an earlier prompt; name turns a block's number into its id.
func prompts(references int, name func(uint64) uint64) (all [][]uint64, total int) {
	random := rand.New(rand.NewPCG(1, 2))
	next := uint64(0)
	for total < references {
		var ids []uint64
		blocks := 8 + random.IntN(128)
		if len(all) > 0 {
			earlier := all[random.IntN(len(all))]
			ids = append(ids, earlier[:min(len(earlier), blocks/2)]...)
		}
		for len(ids) < blocks {
			ids = append(ids, name(next))
			next++
		}
		all = append(all, ids)
		total += blocks
	}
	return all, total
}

// naming is how traces name their blocks.
var naming = []struct {
	name string
	id   func(uint64) uint64
}{
	{"consecutive", func(n uint64) uint64 { return n }},
	{"random", func(n uint64) uint64 { return rand.New(rand.NewPCG(3, n)).Uint64() }},
	{"mixed", func(n uint64) uint64 {
		if n>>12%2 == 0 {
			return n
		}
		return rand.New(rand.NewPCG(3, n)).Uint64()
	}},
}

func BenchmarkTable(b *testing.B) {
	for _, naming := range naming {
		for _, references := range []int{300_000, 7_700_000} {
			b.Run(fmt.Sprintf("ids=%s/references=%d", naming.name, references), func(b *testing.B) {
				all, total := prompts(references, naming.id)
				var numbers []uint32
				var unique int
				var held uint64
				for b.Loop() {
					b.StopTimer()
					before := heap()
					b.StartTimer()
					var t block.Table
					for _, ids := range all {
						numbers = t.AppendNumbers(numbers[:0], ids)
					}
					b.StopTimer()
					unique, held = t.Len(), heap()-before
					runtime.KeepAlive(&t)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(total), "ns/reference")
				b.ReportMetric(float64(held)/float64(unique), "B/unique")
			})
		}
	}
}

// heap is the memory in use after a collection, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
