package cache_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze/cache"
)

// The block size need not fit the rows.
func TestCurveAgainstSimulationAtEveryCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blockSize := rapid.IntRange(1, 40).Draw(t, "block size")
		rows := drawRequests(t, min(blockSize, rapid.SampledFrom([]int{8, 40}).Draw(t, "block size of the rows")))
		curve := sequenceOf(rows).Curve(blockSize)
		for capacity := range distinct(rows) + 3 {
			want := naiveHits(rows, newNaive(capacity, victims[cache.LRU]), blockSize)
			if got := curve.At(capacity); !same(got, want) {
				t.Fatalf("capacity %d: %+v, want %+v", capacity, got, want)
			}
		}
	})
}

// longTrace has many more block uses than the first timeline has places. Requests are
// prefixes of documents; few documents make the timeline compact, many make it grow.
func longTrace(documents, requests int) []request {
	random := rand.New(rand.NewPCG(7, uint64(documents)))
	var rows []request
	for range requests {
		document := uint32(random.IntN(documents))
		var blocks []uint32
		for i := range uint32(1 + random.IntN(40)) {
			blocks = append(blocks, document*40+i)
		}
		if random.IntN(10) == 0 {
			random.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		}
		rows = append(rows, request{blocks: blocks, isl: 16 * len(blocks)})
	}
	return rows
}

func TestCurveOfLongTraces(t *testing.T) {
	for _, documents := range []int{3, 50, 2000} {
		rows := longTrace(documents, 12_000)
		curve := sequenceOf(rows).Curve(16)
		for _, capacity := range []int{1, 5, 39, 100, 1_000, 10_000, 30_000} {
			want := simulate(t, rows, cache.LRU, 16, capacity)[0]
			if got := curve.At(capacity); !same(got, want) {
				t.Errorf("%d documents, capacity %d: %+v, want %+v", documents, capacity, got, want)
			}
		}
	}
}

func TestAddAfterCurve(t *testing.T) {
	rows := longTrace(20, 200)
	var b cache.CurveBuilder
	var early *cache.Curve
	for i, r := range rows {
		if i == 100 {
			early = b.Curve(16)
		}
		b.Add(r.blocks, r.isl)
	}
	if got, want := early.At(100), sequenceOf(rows[:100]).Curve(16).At(100); got != want {
		t.Errorf("the curve of the first half is %+v, want %+v", got, want)
	}
	if got, want := b.Curve(16).At(100), sequenceOf(rows).Curve(16).At(100); got != want {
		t.Errorf("the curve of all is %+v, want %+v", got, want)
	}
}

// Two prompts of three blocks, the second shares two and its last is partial;
// then the first again, whose blocks 0 and 1 were just used.
var example = []request{
	{blocks: []uint32{0, 1, 2}, isl: 30},
	{blocks: []uint32{0, 1, 3}, isl: 25},
	{blocks: []uint32{0, 1, 2}, isl: 30},
	{blocks: []uint32{}, isl: 5},
	{blocks: []uint32{0, 1, 3}, isl: 25},
}

func TestSmallest(t *testing.T) {
	curve := sequenceOf(example).Curve(10)
	for _, c := range []struct {
		share            float64
		byBlock, byToken int
	}{{0, 0, 0}, {0.3, 1, 1}, {0.4, 2, 1}, {0.75, 2, 2}, {0.76, 4, 2}, {0.8, 4, 2}, {0.81, 4, 4}, {1, 4, 4}} {
		if got := curve.SmallestByBlock(c.share); got != c.byBlock {
			t.Errorf("%v of the block hit rate from %d blocks, want %d", c.share, got, c.byBlock)
		}
		if got := curve.SmallestByToken(c.share); got != c.byToken {
			t.Errorf("%v of the token hit rate from %d blocks, want %d", c.share, got, c.byToken)
		}
	}
}

func TestSpaced(t *testing.T) {
	curve := sequenceOf(longTrace(50, 1_000)).Curve(16)
	got := curve.Spaced(20)
	if len(got) < 15 || len(got) > 20 || got[0] != 1 || got[len(got)-1] != curve.Largest() {
		t.Errorf("capacities %v up to %d", got, curve.Largest())
	}
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("capacities %v repeat or descend", got)
	}
	if got := curve.Spaced(1); !slices.Equal(got, []int{curve.Largest()}) {
		t.Errorf("one capacity: %v", got)
	}
	var none cache.CurveBuilder
	if got := none.Curve(1).Spaced(10); got != nil {
		t.Errorf("capacities of an empty trace: %v", got)
	}
}
