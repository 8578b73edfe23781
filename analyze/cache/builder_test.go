package cache

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Blocks in arbitrary order, not chained, must not take a run each.
func TestFewRunsForUnchainedBlocks(t *testing.T) {
	const requests, blocks = 500, 200
	random := rand.New(rand.NewPCG(1, 1))
	var b CurveBuilder
	for range requests {
		numbers := make([]uint32, blocks)
		for i := range numbers {
			numbers[i] = random.Uint32N(1000)
		}
		b.Add(numbers, blocks)
	}
	// The largest of n distances is overtaken about ln n times, each time for a
	// run that rises and one that does not.
	if perRequest := float64(b.runs.Len()) / requests; perRequest > 12 {
		t.Errorf("%.1f runs a request", perRequest)
	}
}

// A chained request whose blocks were used by one request before is one run.
func TestChainedRequestIsOneRun(t *testing.T) {
	var b CurveBuilder
	numbers := make([]uint32, 3*wordBits)
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	for range 1000 { // beyond a chunk, a slab and the first places
		b.Add(numbers, len(numbers))
	}
	if n := b.runs.Len(); n != 999 {
		t.Errorf("%d runs, want one for each request but the first", n)
	}
}

// Buckets are without gaps, and their edges have five significant digits.
func TestEdges(t *testing.T) {
	for _, capacity := range []int{0, 1, 99_999, 100_000, 100_009, 100_010, 999_999, 1_000_000, 1_000_099, 1_000_100, 60_000_000, math.MaxInt32} {
		bucket := bucketOf(capacity)
		if edge(bucket) > capacity || edge(bucket+1) <= capacity || bucketOf(edge(bucket)) != bucket {
			t.Errorf("capacity %d is in bucket %d from %d to %d", capacity, bucket, edge(bucket), edge(bucket+1))
		}
	}
	for _, round := range []int{123_450, 3_000_000, 10_000_000, 98_765_000} {
		if edge(bucketOf(round)) != round {
			t.Errorf("%d is no edge", round)
		}
	}
}

// A curve of few exact edges is exact at them: lines may begin and end anywhere.
func TestLinesBetweenEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type line struct{ at, n int }
		capacity := rapid.OneOf(rapid.IntRange(99_900, 100_100), rapid.IntRange(999_000, 1_002_000))
		largest := 0
		lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) line {
			return line{capacity.Draw(t, "at"), rapid.OneOf(rapid.IntRange(1, 30), rapid.IntRange(1, 900_000)).Draw(t, "n")}
		}), 1, 5).Draw(t, "lines")
		for _, l := range lines {
			largest = max(largest, l.at+l.n)
		}
		s := newSlopes(largest)
		for _, l := range lines {
			s.add(l.at, l.n, slope{hits: 1, tokens: 3, blocks: 4})
		}
		curve := s.curve(Hits{})
		for range 20 {
			at := edge(bucketOf(capacity.Draw(t, "capacity")))
			if rapid.Bool().Draw(t, "largest") {
				at = largest
			}
			want := 0
			for _, l := range lines {
				want += min(max(at-l.at, 0), l.n)
			}
			if got := curve.At(at); got.HitBlocks != want || got.HitTokens != 3*want || math.Abs(got.RequestShares-float64(want)/4) > 1e-6 {
				t.Fatalf("at %d: %+v, want %d", at, got, want)
			}
		}
		if got := curve.Largest(); got != largest {
			t.Fatalf("flat from %d, want %d", got, largest)
		}
	})
}

// The number of places is bounded by the number of blocks, however long the trace.
func TestTimelineIsCompacted(t *testing.T) {
	var line timeline
	random := rand.New(rand.NewPCG(2, 2))
	for range 100_000 {
		line.use([]uint32{random.Uint32N(100), random.Uint32N(20_000), random.Uint32N(100)})
		if places := len(line.words) * wordBits; places > max(firstPlaces, 2*placesPerBlock*(line.live+3)) {
			t.Fatalf("%d places for %d blocks", places, line.live)
		}
	}
	if line.live < 19_000 {
		t.Errorf("%d blocks, want nearly all of 20,000", line.live)
	}
}
