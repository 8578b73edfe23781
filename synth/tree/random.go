package tree

import (
	"cmp"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"

	"moontide/synth/law"
)

// stream returns the random numbers of one aspect.
func stream(seed uint64, aspect string) *rand.Rand { return law.Stream(seed, aspect) }

// empirical is the distribution of observed values: each is drawn as often as
// it was seen.
type empirical[T any] struct {
	values []T
	upTo   []uint64 // observations of values[0..i]

	// hints, where it is, says for each 1<<step observations, counted from 0,
	// at which value to begin to look for one of them.
	hints []int32
	step  int
}

// observed makes a distribution of counted values, in ascending order, so that
// it does not depend on the order of observation.
func observed[T cmp.Ordered](counts map[T]int) empirical[T] {
	var e empirical[T]
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		e.add(v, counts[v])
	}
	e.index()
	return e
}

func (e *empirical[T]) add(value T, count int) {
	if count == 0 {
		return
	}
	e.values = append(e.values, value)
	e.upTo = append(e.upTo, e.total()+uint64(count))
	e.hints = nil
}

// index makes draws take constant time, once all values have been added. Few
// values are as quick without.
func (e *empirical[T]) index() {
	if len(e.values) <= 8 {
		return
	}
	e.step = max(0, bits.Len64(e.total())-bits.Len(uint(len(e.values))))
	e.hints = make([]int32, (e.total()-1)>>e.step+1)
	value := int32(0)
	for i := range e.hints {
		for e.upTo[value] <= uint64(i)<<e.step {
			value++
		}
		e.hints[i] = value
	}
}

// total is the number of observations.
func (e *empirical[T]) total() uint64 {
	if len(e.upTo) == 0 {
		return 0
	}
	return e.upTo[len(e.upTo)-1]
}

// draw returns one of the observations, all equally likely. Where nothing was
// observed it returns the zero value and takes no random number.
func (e *empirical[T]) draw(random *rand.Rand) T {
	if len(e.values) == 0 {
		var zero T
		return zero
	}
	one, i := random.Uint64N(e.total()), 0
	if e.hints != nil {
		i = int(e.hints[one>>e.step])
	}
	for e.upTo[i] <= one {
		i++
	}
	return e.values[i]
}

// changed is the distribution of f of the values. An f that does not fall
// keeps their order.
func (e *empirical[T]) changed(f func(T) T) empirical[T] {
	other := *e
	other.values = make([]T, len(e.values))
	for i, v := range e.values {
		other.values[i] = f(v)
	}
	return other
}

// bounds returns the first and the last value, which are the extremes of an
// ascending distribution; zeros where nothing was observed.
func (e *empirical[T]) bounds() (low, high T) {
	if len(e.values) > 0 {
		low, high = e.values[0], e.values[len(e.values)-1]
	}
	return low, high
}

// share is the part of the observations, in ascending order, that is at most x.
func share(e *empirical[int], x int) float64 {
	above, _ := slices.BinarySearch(e.values, x+1)
	if above == 0 {
		return 0
	}
	return float64(e.upTo[above-1]) / float64(e.total())
}

// mean is the mean of the observations, and 0 where there are none.
func mean[T int | int64](e *empirical[T]) float64 {
	sum, before := 0., uint64(0)
	for i, v := range e.values {
		sum += float64(v) * float64(e.upTo[i]-before)
		before = e.upTo[i]
	}
	return sum / float64(max(1, before))
}
