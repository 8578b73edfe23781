package log

import (
	"fmt"
	"testing"
)

// BenchmarkIDs measures hashing token ids, of 4 bytes each.
func BenchmarkIDs(b *testing.B) {
	for _, tokens := range []int{512, 16} {
		b.Run(fmt.Sprintf("block=%d", tokens), func(b *testing.B) {
			prompt := make([]byte, 1<<20)
			r := NewReader(Config{Key: Key{1}, BlockSize: tokens})
			b.SetBytes(int64(len(prompt)))
			b.ReportAllocs()
			for b.Loop() {
				r.Hash(&Call{Model: "m", content: prompt, tokens: true})
			}
		})
	}
}
