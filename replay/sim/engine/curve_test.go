package engine_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/analyze/cache"
	"moontide/replay/sim/engine"
)

// With one request at a time, one token per answer and blocks of one size, an
// engine hits for each request what an LRU cache of its capacity hits.
//
// There are two differences. The last token of a prompt is always computed: if
// the curve has every block of a prompt that ends with a block, the engine
// recomputes that block (in place, so nothing is evicted) and reports it as not
// cached. And an incomplete last block takes space while its request runs but
// is not a block of the curve: with such prompts an engine has one more block
// than the curve.
func TestEngineEqualsLRUCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blockSize := rapid.IntRange(1, 4).Draw(t, "block size")
		capacity := rapid.IntRange(1, 12).Draw(t, "capacity")
		kvBlocks, tail := capacity, 0
		if blockSize > 1 && rapid.Bool().Draw(t, "tails") {
			kvBlocks, tail = capacity+1, rapid.IntRange(1, blockSize-1).Draw(t, "tail")
		}
		e, err := engine.Deployment{Engine: engine.Config{
			BlockSize: blockSize, KVBlocks: kvBlocks,
			// Chunks of any size are the same to the cache.
			MaxSeqs: 1, MaxBatchedTokens: rapid.IntRange(1, 20).Draw(t, "batched tokens"),
		}}.New()
		if err != nil {
			t.Fatal(err)
		}
		var curve cache.CurveBuilder
		numbers := map[string]uint32{}
		before := 0
		for i := range rapid.IntRange(1, 40).Draw(t, "requests") {
			least := 0
			if tail == 0 {
				least = 1
			}
			blocks := rapid.SliceOfN(rapid.Uint64Range(0, 1), least, capacity).Draw(t, "blocks")
			prompt := engine.NewPrompt(blockSize)
			var path []uint32
			for k, b := range blocks {
				for range blockSize {
					prompt.AddToken(b)
				}
				prefix := fmt.Sprint(blocks[:k+1])
				if _, known := numbers[prefix]; !known {
					numbers[prefix] = uint32(len(numbers))
				}
				path = append(path, numbers[prefix])
			}
			for range tail {
				prompt.AddToken(1000)
			}
			r := &engine.Request{Prompt: prompt, Output: 1}
			now := time.Duration(i)
			if err := e.Submit(now, r); err != nil {
				t.Fatal(err)
			}
			for at, ok := e.Next(); ok; at, ok = e.Next() {
				e.Advance(at, nil)
			}
			curve.Add(path, prompt.Len())
			all := curve.Curve(blockSize).At(capacity).HitBlocks
			hit := all - before
			before = all
			want := min(hit*blockSize, (prompt.Len()-1)/blockSize*blockSize)
			if r.Cached() != want || !r.Ended() {
				t.Fatalf("request %d: %d of %d tokens were cached, the curve hits %d blocks", i, r.Cached(), prompt.Len(), hit)
			}
		}
	})
}
