package stats

import (
	"cmp"
	"math"
	"slices"
)

// Collector collects any number of values for a [Sample]. A million are kept, of those
// added with counts a million different ones; from then on it counts them, rounded to a
// 2^18th of their value. So quantiles are exact for integers up to 262,144, and else to 5
// digits; Count, Sum, Mean, Min and Max stay exact. The zero Collector is empty.
type Collector struct {
	values  []float64 // those added once, or
	counted []Counted // those added with counts

	counts map[uint32]int // of rounded values, in place of the above
	count  int
	sum    Sum
	least  float64
	most   float64
}

const maxCollected = 1 << 20

// Add adds a value, which is not NaN.
func (c *Collector) Add(value float64) {
	if c.counts != nil || len(c.counted) > 0 {
		c.AddN(value, 1)
		return
	}
	if len(c.values) == maxCollected {
		c.round()
		c.AddN(value, 1)
		return
	}
	c.values = append(c.values, value)
}

// AddN adds a value n times.
func (c *Collector) AddN(value float64, n int) {
	if n <= 0 {
		return
	}
	if c.counts == nil {
		if len(c.counted) == cap(c.counted) {
			c.merge()
		}
		if len(c.counted) < maxCollected && len(c.values) == 0 {
			c.counted = append(c.counted, Counted{value, n})
			return
		}
		c.round()
	}
	c.addRounded(value, n)
}

// merge joins the counts of equal values before there is room for twice as many.
func (c *Collector) merge() {
	const least = 1 << 12
	if len(c.counted) < least {
		return
	}
	sortCounted(c.counted)
	merged := c.counted[:1]
	for _, v := range c.counted[1:] {
		if last := &merged[len(merged)-1]; last.Value == v.Value {
			last.Count += v.Count
		} else {
			merged = append(merged, v)
		}
	}
	c.counted = merged
	if 2*len(merged) > cap(merged) {
		c.counted = slices.Grow(merged, len(merged))
	}
}

// round begins to count rounded values.
func (c *Collector) round() {
	c.counts, c.least, c.most = map[uint32]int{}, math.Inf(1), math.Inf(-1)
	for _, value := range c.values {
		c.addRounded(value, 1)
	}
	for _, v := range c.counted {
		c.addRounded(v.Value, v.Count)
	}
	c.values, c.counted = nil, nil
}

const droppedBits = 35 // of a float64, which leaves 17 after the leading one

func (c *Collector) addRounded(value float64, n int) {
	value += 0 // -0 is 0
	c.counts[uint32((math.Float64bits(value)+1<<(droppedBits-1))>>droppedBits)] += n
	c.count += n
	c.sum.Add(value * float64(n))
	c.least, c.most = min(c.least, value), max(c.most, value)
}

// Sample describes the values, and empties the collector.
func (c *Collector) Sample() (d Sample) {
	switch {
	case c.counts == nil && len(c.counted) > 0:
		d = OfCounts(c.counted)
	case c.counts == nil:
		d = Of(c.values)
	default:
		d = c.rounded()
	}
	*c = Collector{}
	return d
}

func (c *Collector) rounded() Sample {
	d := Sample{Count: c.count, Sum: c.sum.Value(), Min: c.least, Max: c.most, sorted: make([]float64, 0, len(c.counts))}
	for key := range c.counts {
		d.sorted = append(d.sorted, math.Float64frombits(uint64(key)<<droppedBits))
	}
	slices.SortFunc(d.sorted, cmp.Compare[float64])
	d.upTo = make([]int, len(d.sorted))
	total := 0
	for i, value := range d.sorted {
		total += c.counts[uint32(math.Float64bits(value)>>droppedBits)]
		d.upTo[i] = total
		d.sorted[i] = min(max(value, d.Min), d.Max)
	}
	d.setMeanAndStd()
	return d
}
