package stats

import (
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Discrete is a distribution of counted integers. The zero Discrete has no values.
// Make one with [NewDiscrete], or with [Discrete.Add] and then [Discrete.Index];
// after that it is safe for concurrent use.
type Discrete[T int | int64] struct {
	values []T
	upTo   []uint64 // counts of values[0..i]

	// hints, if present, holds for each 1<<step counts the value at which the
	// search starts.
	hints []int32
	step  int
}

// NewDiscrete returns the distribution of counted values, in ascending order.
func NewDiscrete[T int | int64](counts map[T]int) Discrete[T] {
	var d Discrete[T]
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		d.Add(v, counts[v])
	}
	d.Index()
	return d
}

// Add appends a value. It ignores a count of 0.
func (d *Discrete[T]) Add(value T, count int) {
	if count == 0 {
		return
	}
	d.values = append(d.values, value)
	d.upTo = append(d.upTo, d.total()+uint64(count))
	d.hints = nil
}

// Index makes draws take constant time. It makes no difference for few values.
func (d *Discrete[T]) Index() {
	if len(d.values) <= 8 {
		return
	}
	d.step = max(0, bits.Len64(d.total())-bits.Len(uint(len(d.values))))
	d.hints = make([]int32, (d.total()-1)>>d.step+1)
	value := int32(0)
	for i := range d.hints {
		for d.upTo[value] <= uint64(i)<<d.step {
			value++
		}
		d.hints[i] = value
	}
}

// Total returns the sum of all counts.
func (d *Discrete[T]) Total() int { return int(d.total()) }

func (d *Discrete[T]) total() uint64 {
	if len(d.upTo) == 0 {
		return 0
	}
	return d.upTo[len(d.upTo)-1]
}

// Draw returns a random value. Without values it returns the zero value and draws
// no random number.
func (d *Discrete[T]) Draw(random *rand.Rand) T {
	if len(d.values) == 0 {
		var zero T
		return zero
	}
	n, i := random.Uint64N(d.total()), 0
	if d.hints != nil {
		i = int(d.hints[n>>d.step])
	}
	for d.upTo[i] <= n {
		i++
	}
	return d.values[i]
}

// All yields the values in order, each with its count.
func (d *Discrete[T]) All(yield func(value T, count int) bool) {
	before := uint64(0)
	for i, v := range d.values {
		if !yield(v, int(d.upTo[i]-before)) {
			return
		}
		before = d.upTo[i]
	}
}

// Bounds returns the first and the last value, or zeros if there are none.
func (d *Discrete[T]) Bounds() (low, high T) {
	if len(d.values) > 0 {
		low, high = d.values[0], d.values[len(d.values)-1]
	}
	return low, high
}

// Mean returns the mean, or 0 if there are no values.
func (d *Discrete[T]) Mean() (mean float64) {
	for v, count := range d.All {
		mean += float64(v) * float64(count)
	}
	return mean / float64(max(1, d.total()))
}

// Map returns the distribution of f of the values. If f never decreases, their
// order stays ascending.
func (d *Discrete[T]) Map(f func(T) T) Discrete[T] {
	mapped := *d
	mapped.values = make([]T, len(d.values))
	for i, v := range d.values {
		mapped.values[i] = f(v)
	}
	return mapped
}
