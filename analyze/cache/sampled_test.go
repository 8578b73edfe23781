package cache_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze/cache"
)

// sampledCurve estimates a curve from a share of the blocks, exact for caches of up to
// exact blocks.
func sampledCurve(tb testing.TB, rows []request, share float64, exact, blockSize int) *cache.SampledCurve {
	b, err := cache.NewSampledBuilder(share)
	if err != nil {
		tb.Fatal(err)
	}
	if share < 1 {
		b.SetExact(exact)
	}
	for _, r := range rows {
		ids := make([]uint64, len(r.blocks))
		for i, number := range r.blocks {
			ids[i] = uint64(number)
		}
		b.Add(ids, r.isl)
	}
	return b.Curve(blockSize)
}

// A sample of all blocks gives the exact curve, also if ids are not chained or the
// block size is wrong.
func TestSampleOfAllBlocksIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := drawRequests(rt, 8)
		size := rapid.IntRange(1, 40).Draw(rt, "block size")
		want, got := sequenceOf(rows).Curve(size), sampledCurve(t, rows, 1, 0, size)
		for capacity := range distinct(rows) + 2 {
			if !same(got.At(capacity), want.At(capacity)) {
				rt.Fatalf("capacity %d: %+v, want %+v", capacity, got.At(capacity), want.At(capacity))
			}
		}
		if got.Unique != distinct(rows) || got.Largest() != want.Largest() || got.Error(3) != 0 {
			rt.Fatalf("%d distinct blocks, flat from %d, error %v", got.Unique, got.Largest(), got.Error(3))
		}
	})
}

// chainedTrace continues conversations that begin with one of a few system prompts.
func chainedTrace(requests int, seed uint64) (rows []request) {
	random := rand.New(rand.NewPCG(seed, 1))
	open := make([][]uint32, 2000)
	next := uint32(100)
	for range requests {
		at := &open[int(2000*math.Pow(random.Float64(), 3))]
		if len(*at) == 0 || random.IntN(10) == 0 {
			*at = []uint32{uint32(100 * math.Pow(random.Float64(), 3))}
		}
		for range random.IntN(12) {
			*at = append((*at)[:len(*at):len(*at)], next)
			next++
		}
		rows = append(rows, request{blocks: *at, isl: 16*len(*at) - random.IntN(16)})
	}
	return rows
}

// Over many traces, the error of the curve is as large as it is estimated to be.
func TestErrorOfSample(t *testing.T) {
	const share = 0.05
	var within, of int
	for seed := range uint64(12) {
		rows := chainedTrace(20_000, seed)
		exact, sampled := sequenceOf(rows).Curve(16), sampledCurve(t, rows, share, 1, 16)
		if apart := math.Abs(float64(sampled.Unique)/float64(distinct(rows)) - 1); apart > .05 {
			t.Errorf("%d distinct blocks, want %d", sampled.Unique, distinct(rows))
		}
		for _, capacity := range []int{1000, 3000, 10_000, 30_000, 100_000} {
			got, want := sampled.At(capacity).Rates(), exact.At(capacity).Rates()
			off := got.Block - want.Block
			if math.Abs(off) > .04 || math.Abs(got.Token.Value-want.Token.Value) > .04 || math.Abs(got.MeanRequest-want.MeanRequest) > .04 {
				t.Errorf("seed %d, capacity %d: %+v, want %+v", seed, capacity, got, want)
			}
			of++
			if math.Abs(off) < 2*sampled.Error(capacity) {
				within++
			}
		}
	}
	if share := float64(within) / float64(of); share < .8 {
		t.Errorf("%.0f %% of the errors are below twice the estimate, want about 95 %%", 100*share)
	}
}

// Small caches are exact, however many blocks there are, and so is the whole curve if it
// is flat from there on.
func TestSmallCachesAreExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := drawRequests(rt, 8)
		exact := rapid.IntRange(1, 20).Draw(rt, "exact")
		want, got := sequenceOf(rows).Curve(16), sampledCurve(t, rows, 0.5, exact, 16)
		for capacity := range got.Exact {
			if capacity > distinct(rows)+2 {
				break
			}
			w, g := want.At(capacity), got.At(capacity)
			if g.HitBlocks != w.HitBlocks || math.Abs(g.RequestShares-w.RequestShares) > 1e-9 || got.Error(capacity) != 0 {
				rt.Fatalf("exact up to %d, capacity %d: %+v, want %+v", got.Exact, capacity, g, w)
			}
		}
	})
	for _, exact := range []int{100, 3000, 1 << 20} {
		rows := chainedTrace(5000, 1)
		want, got := sequenceOf(rows).Curve(16), sampledCurve(t, rows, 0.05, exact, 16)
		for _, capacity := range []int{1, 10, 100, 1000, 3000, 10_000, 1 << 20} {
			if capacity <= got.Exact && !same(got.At(capacity), want.At(capacity)) {
				t.Errorf("capacity %d: %+v, want %+v", capacity, got.At(capacity), want.At(capacity))
			}
		}
	}
}

// The estimate is better beside exact small caches.
func TestExactCachesImproveTheEstimate(t *testing.T) {
	var without, with float64
	for seed := range uint64(5) {
		rows := chainedTrace(20_000, seed)
		exact, plain, better := sequenceOf(rows).Curve(16), sampledCurve(t, rows, 0.05, 1, 16), sampledCurve(t, rows, 0.05, 2000, 16)
		for _, capacity := range []int{2500, 4000, 10_000, 30_000} {
			want := exact.At(capacity).Rates().Block
			without += math.Abs(plain.At(capacity).Rates().Block - want)
			with += math.Abs(better.At(capacity).Rates().Block - want)
		}
	}
	t.Logf("errors are %.2f of those without", with/without)
	if with > 0.8*without {
		t.Errorf("errors are %v of those without", with/without)
	}
}

func TestShareOfSample(t *testing.T) {
	for _, share := range []float64{-1, 0, 1.1, math.NaN()} {
		if _, err := cache.NewSampledBuilder(share); err == nil {
			t.Errorf("a share of %v is accepted", share)
		}
	}
}
