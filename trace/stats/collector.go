package stats

import (
	"math"
	"slices"
)

// Collector collects any number of values for a [Sample]. It keeps up to a million values
// exactly (with counts: a million distinct values). Beyond that it counts values rounded
// to 2^-18 of their size: quantiles are exact for integers up to 262,144 and have 5
// significant digits otherwise; Count, Sum, Mean, Min and Max stay exact. The zero
// Collector is empty.
type Collector struct {
	values  []float64 // those added once
	counted []Counted // those added with counts

	pages []*page // counts of rounded values, in place of the above
	count int
	sum   Sum
	least float64
	most  float64
}

// page holds the counts of rounded values whose keys differ in the last bits.
type page [1 << 14]int

const (
	maxCollected = 1 << 20
	droppedBits  = 35 // of a float64, which leaves 17 after the leading one
)

// Add adds a value, which is not NaN.
func (c *Collector) Add(value float64) {
	if c.pages == nil && c.full() {
		c.round()
	}
	if c.pages != nil {
		c.addRounded(value, 1)
		return
	}
	c.values = append(c.values, value)
}

// AddN adds a value n times.
func (c *Collector) AddN(value float64, n int) {
	switch {
	case n <= 0:
		return
	case n == 1 && len(c.counted) == 0:
		c.Add(value)
		return
	case c.pages == nil:
		if len(c.counted) == cap(c.counted) {
			c.merge()
		}
		if !c.full() {
			c.counted = append(c.counted, Counted{value, n})
			return
		}
		c.round()
	}
	c.addRounded(value, n)
}

func (c *Collector) full() bool { return len(c.values)+len(c.counted) >= maxCollected }

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
	c.pages, c.least, c.most = make([]*page, 1<<(64-droppedBits)/len(page{})), math.Inf(1), math.Inf(-1)
	for _, value := range c.values {
		c.addRounded(value, 1)
	}
	for _, v := range c.counted {
		c.addRounded(v.Value, v.Count)
	}
	c.values, c.counted = nil, nil
}

func (c *Collector) addRounded(value float64, n int) {
	value += 0 // -0 is 0
	rounded := int((key(value) + 1<<(droppedBits-1)) >> droppedBits)
	p := c.pages[rounded/len(page{})]
	if p == nil {
		p = new(page)
		c.pages[rounded/len(page{})] = p
	}
	p[rounded%len(page{})] += n
	c.count += n
	c.sum.Add(value * float64(n))
	c.least, c.most = min(c.least, value), max(c.most, value)
}

// Clone returns a copy, to which other values can be added.
func (c *Collector) Clone() *Collector {
	clone := *c
	clone.values, clone.counted, clone.pages = slices.Clone(c.values), slices.Clone(c.counted), slices.Clone(c.pages)
	for i, p := range c.pages {
		if p != nil {
			counts := *p
			clone.pages[i] = &counts
		}
	}
	return &clone
}

// Sample describes the values, and empties the collector.
func (c *Collector) Sample() (d Sample) {
	switch {
	case c.pages != nil:
		d = c.rounded()
	case len(c.counted) == 0:
		d = Of(c.values)
	default:
		for _, value := range c.values {
			c.counted = append(c.counted, Counted{value, 1})
		}
		d = OfCounts(c.counted)
	}
	*c = Collector{}
	return d
}

func (c *Collector) rounded() Sample {
	d := Sample{Count: c.count, Sum: c.sum.Value(), Min: c.least, Max: c.most}
	total := 0
	for i, p := range c.pages {
		if p == nil {
			continue
		}
		for k, n := range p {
			if n > 0 {
				total += n
				d.upTo = append(d.upTo, total)
				d.sorted = append(d.sorted, min(max(value(uint64(i*len(p)+k)<<droppedBits), d.Min), d.Max))
			}
		}
	}
	d.setMeanAndStd()
	return d
}
