package simserver

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plainCache is the prefix cache written to be obviously right: it knows a
// block by the tokens of the whole prefix, keeps them in one list, most
// recently used first, and leaves nothing out.
type plainCache struct {
	capacity, blockSize int
	prefixes            []string
}

func (c *plainCache) submit(tokens []uint64) (cached int) {
	var blocks []string
	for end := c.blockSize; end <= len(tokens); end += c.blockSize {
		blocks = append(blocks, fmt.Sprint(tokens[:end]))
	}
	hit := 0
	for hit < len(blocks) && slices.Contains(c.prefixes, blocks[hit]) {
		hit++
	}
	for _, b := range slices.Backward(blocks) {
		if i := slices.Index(c.prefixes, b); i >= 0 {
			c.prefixes = slices.Delete(c.prefixes, i, i+1)
		}
		c.prefixes = slices.Insert(c.prefixes, 0, b)
		if len(c.prefixes) > c.capacity {
			c.prefixes = c.prefixes[:c.capacity]
		}
	}
	// The largest multiple of the block size that is hit and leaves a token.
	for cached = hit * c.blockSize; cached > 0 && cached >= len(tokens); {
		cached -= c.blockSize
	}
	return cached
}

func promptOf(e *Engine, tokens ...uint64) *Prompt {
	p := e.NewPrompt()
	for _, t := range tokens {
		p.AddToken(t)
	}
	return p
}

func sequence(n int, first uint64) []uint64 {
	tokens := make([]uint64, n)
	for i := range tokens {
		tokens[i] = first + uint64(i)
	}
	return tokens
}

func TestCacheEqualsPlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := plainCache{
			capacity:  rapid.IntRange(1, 12).Draw(t, "capacity"),
			blockSize: rapid.IntRange(1, 4).Draw(t, "block size"),
		}
		e := NewEngine(Config{KVBlocks: plain.capacity, BlockSize: plain.blockSize})
		prompts := rapid.SliceOfN(rapid.SliceOfN(rapid.Uint64Range(0, 1), 1, 20), 1, 40).Draw(t, "prompts")
		for i, tokens := range prompts {
			got := e.Submit(0, promptOf(e, tokens...), Sampling{}).Cached
			if want := plain.submit(tokens); got != want {
				t.Fatalf("prompt %d, %v: %d tokens cached, want %d", i, tokens, got, want)
			}
			if e.cache.len() != len(plain.prefixes) || len(e.cache.index) != len(plain.prefixes) {
				t.Fatalf("prompt %d: %d entries and %d in the index, want %d",
					i, e.cache.len(), len(e.cache.index), len(plain.prefixes))
			}
		}
	})
}

func TestCachedTokens(t *testing.T) {
	for _, tt := range []struct{ isl, cached int }{
		{1, 0}, {15, 0}, {16, 0}, {17, 16}, {31, 16}, {32, 16}, {33, 32}, {48, 32}, {1000, 992},
	} {
		t.Run(fmt.Sprintf("isl=%d", tt.isl), func(t *testing.T) {
			e := NewEngine(Config{})
			tokens := sequence(tt.isl, 1)
			if got := e.Submit(0, promptOf(e, tokens...), Sampling{}).Cached; got != 0 {
				t.Errorf("an empty cache had %d tokens", got)
			}
			if got := e.Submit(0, promptOf(e, tokens...), Sampling{}).Cached; got != tt.cached {
				t.Errorf("cached %d of %d tokens sent before, want %d", got, tt.isl, tt.cached)
			}
		})
	}
}

func TestLaterBlocksNeedTheirPrefix(t *testing.T) {
	e := NewEngine(Config{BlockSize: 1})
	e.Submit(0, promptOf(e, 1, 2, 3, 4), Sampling{})
	for _, tt := range []struct {
		tokens []uint64
		cached int
	}{
		{[]uint64{9, 2, 3, 4}, 0},
		{[]uint64{1, 9, 3, 4}, 1},
		{[]uint64{1, 2, 3, 9}, 3},
		{[]uint64{2, 3, 4, 5}, 0},
	} {
		if got := e.Submit(0, promptOf(e, tt.tokens...), Sampling{}).Cached; got != tt.cached {
			t.Errorf("%v after [1 2 3 4]: cached %d, want %d", tt.tokens, got, tt.cached)
		}
	}
}

func TestHeadOutlivesTail(t *testing.T) {
	e := NewEngine(Config{BlockSize: 1, KVBlocks: 4})
	e.Submit(0, promptOf(e, 1, 2, 3, 4), Sampling{})
	e.Submit(0, promptOf(e, 5), Sampling{}) // takes the place of one block
	if got := e.Submit(0, promptOf(e, 1, 2, 3, 4, 6), Sampling{}).Cached; got != 3 {
		t.Errorf("one block of four was evicted and %d are still of use, want 3", got)
	}
}

func TestPromptLargerThanCache(t *testing.T) {
	e := NewEngine(Config{BlockSize: 2, KVBlocks: 3})
	tokens := sequence(100, 1)
	e.Submit(0, promptOf(e, tokens...), Sampling{})
	if got := e.Submit(0, promptOf(e, tokens...), Sampling{}).Cached; got != 6 {
		t.Errorf("a cache of 3 blocks gave %d tokens of a prompt of 50 blocks, want 6", got)
	}
	if got := e.Stats(0).CacheUsage; got != 1 {
		t.Errorf("the cache is full and its usage %v", got)
	}
}

func TestTextTokens(t *testing.T) {
	e := NewEngine(Config{BlockSize: 2})
	whole, parts := e.NewPrompt(), e.NewPrompt()
	whole.AddText(" one  two\tthree\nfour ")
	parts.AddText("one two")
	parts.AddText("three four")
	if whole.Len() != 4 || !slices.Equal(whole.blocks, parts.blocks) || whole.hash() != parts.hash() {
		t.Errorf("the same four words differ: %d tokens %x, %d tokens %x", whole.Len(), whole.blocks, parts.Len(), parts.blocks)
	}
	other := e.NewPrompt()
	other.AddText("one two three five")
	if other.hash() == whole.hash() || other.blocks[0] != whole.blocks[0] || other.blocks[1] == whole.blocks[1] {
		t.Error("a prompt with another last word has to differ in its last block, and there only")
	}
}
