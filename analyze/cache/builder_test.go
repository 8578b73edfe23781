package cache

import (
	"math/rand/v2"
	"testing"
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
	if perRequest := float64(len(b.runs)) / requests; perRequest > 12 {
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
	if len(b.runs) != 999 {
		t.Errorf("%d runs, want one for each request but the first", len(b.runs))
	}
}

func TestExactSumCancels(t *testing.T) {
	var s exactSum
	for range 2 {
		for i := range 1000 {
			s.add(1 / float64(i+1))
		}
		s.add(1e15)
	}
	for range 2 {
		for i := range 1000 {
			s.add(-1 / float64(i+1))
		}
		s.add(-1e15)
	}
	if got := s.value(); got < -1e-9 || got > 1e-9 {
		t.Errorf("%v is left after subtracting everything that was added", got)
	}
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

func TestBitSetAgainstMap(t *testing.T) {
	for _, limit := range []int{1, 64, 65, 300_000} {
		random := rand.New(rand.NewPCG(3, uint64(limit)))
		set, want := newBitSet(limit), map[int]bool{}
		for range 2_000 {
			i := random.IntN(limit)
			if set.has(i) != want[i] {
				t.Fatalf("limit %d: has(%d) is %v", limit, i, set.has(i))
			}
			if want[i] = !want[i]; want[i] {
				set.add(i)
			} else {
				set.remove(i)
				delete(want, i)
			}
			largest := -1
			for i := range want {
				largest = max(largest, i)
			}
			if largest >= 0 && set.largest() != largest {
				t.Fatalf("limit %d: largest %d, want %d", limit, set.largest(), largest)
			}
			if len(want) == 50 { // so that the search for the largest stays quick
				for i := range want {
					set.remove(i)
					delete(want, i)
				}
			}
		}
	}
}
