package synth

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
)

// stream returns the random numbers of one aspect. Streams of different seeds
// or aspects are unrelated, neighbouring seeds included.
func stream(seed uint64, aspect string) *rand.Rand {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), aspect...))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])))
}

// empirical is the distribution of observed values: each is drawn as often as
// it was seen.
type empirical[T any] struct {
	values []T
	upTo   []uint64 // observations of values[0..i]
}

// observed makes a distribution of counted values, in their order, so that it
// does not depend on the order of observation.
func observed[T cmp.Ordered](counts map[T]int) empirical[T] {
	var e empirical[T]
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		e.add(v, counts[v])
	}
	return e
}

func (e *empirical[T]) add(value T, count int) {
	if count == 0 {
		return
	}
	e.values = append(e.values, value)
	e.upTo = append(e.upTo, e.total()+uint64(count))
}

// total is the number of observations.
func (e *empirical[T]) total() uint64 {
	if len(e.upTo) == 0 {
		return 0
	}
	return e.upTo[len(e.upTo)-1]
}

// draw returns one of the observations, all equally likely, in O(log n). Where
// nothing was observed it returns the zero value and takes no random number.
func (e *empirical[T]) draw(random *rand.Rand) T {
	if len(e.values) == 0 {
		var zero T
		return zero
	}
	i, exact := slices.BinarySearch(e.upTo, random.Uint64N(e.total()))
	if exact { // upTo[i] observations come before the next value
		i++
	}
	return e.values[i]
}
