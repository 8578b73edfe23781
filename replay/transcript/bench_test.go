package transcript_test

import (
	"fmt"
	"testing"

	"moontide/replay/transcript"
	"moontide/trace"
)

func BenchmarkBlocks(b *testing.B) {
	for _, isl := range []int{512, 8192, 131_072} {
		b.Run(fmt.Sprintf("isl=%d", isl), func(b *testing.B) {
			r := trace.Request{InputLength: isl}
			for i := range isl / 512 {
				r.HashIDs = append(r.HashIDs, uint64(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				transcript.New(r, 0, 512).Blocks(16, 0)
			}
		})
	}
}
