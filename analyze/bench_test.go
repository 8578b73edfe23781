package analyze_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"moontide/analyze"
	"moontide/trace"
)

// chained makes requests of 8 to 71 blocks, half of which are a prefix of an
// earlier request's; name turns a block's number into its id.
func chained(requests int, name func(uint64) uint64) (rows []trace.Request, references int) {
	random := rand.New(rand.NewPCG(1, 2))
	next := uint64(0)
	for i := range requests {
		blocks := 8 + random.IntN(64)
		var ids []uint64
		if i > 0 {
			earlier := rows[random.IntN(i)].HashIDs
			ids = append(ids, earlier[:min(len(earlier), blocks/2)]...)
		}
		for len(ids) < blocks {
			ids = append(ids, name(next))
			next++
		}
		references += blocks
		r := prompt(512*blocks-random.IntN(512), ids...)
		r.OutputLength = 1 + random.IntN(1000)
		r.Timestamp = trace.Some(float64(i / 3 * 1000))
		rows = append(rows, r)
	}
	return rows, references
}

func BenchmarkTrace(b *testing.B) {
	naming := map[string]func(uint64) uint64{
		"numbered": func(n uint64) uint64 { return n },
		"hashed":   func(n uint64) uint64 { return n * 0x9e3779b97f4a7c15 },
	}
	for _, ids := range []string{"numbered", "hashed"} {
		for _, requests := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("ids=%s/requests=%d", ids, requests), func(b *testing.B) {
				rows, references := chained(requests, naming[ids])
				b.ReportAllocs()
				for b.Loop() {
					if _, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(references), "ns/reference")
			})
		}
	}
}
