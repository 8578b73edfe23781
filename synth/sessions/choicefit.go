package sessions

import "math"

// fitChoice finds which leaves to tell apart, from samples whose values are 1
// for the thing that happened and 0 for the others. The shares are for fill.
func fitChoice(samples []sample, known int) choice {
	things := len(samples[0].at) - known
	g := grower{samples: samples, known: known, few: max(minLeaf, len(samples)/maxLeaves), enough: enoughForChoice}
	for t := range things {
		target := make([]float64, len(samples))
		for i := range samples {
			target[i] = samples[i].at[known+t]
		}
		g.targets = append(g.targets, target)
	}
	g.grow()
	c := choice{partition: partition{g.cuts}, leaves: make([]chances, len(g.leaves))}
	for i := range c.leaves {
		c.leaves[i].shares = make([]float64, things)
	}
	return c
}

// fill takes the shares from samples whose values are what each thing that
// happened stands for.
func (c *choice) fill(samples []sample, known int) {
	things := len(c.leaves[0].shares)
	happened := make([][]int, len(c.leaves)) // how often each thing did, and none last
	for i := range happened {
		happened[i] = make([]int, things+1)
	}
	for _, s := range samples {
		leaf := c.leaf(s.at)
		k := &c.leaves[leaf]
		k.count++
		what := things
		for i := range k.shares {
			k.shares[i] += s.at[known+i]
			if s.at[known+i] > 0 {
				what = i
			}
		}
		happened[leaf][what]++
	}
	for i := range c.leaves {
		k := &c.leaves[i]
		whole := max(sumOf(k.shares), float64(k.count))
		for j := range k.shares {
			k.shares[j] /= whole
		}
	}
	for i := range things {
		c.pool(happened, i)
	}
	c.poolNone(happened)
	for _, k := range c.leaves {
		for j := range k.shares {
			k.shares[j] = math.Floor(k.shares[j]*1e6+1e-6) / 1e6
		}
	}
}

// pool gives all leaves in which a thing happened to fewer than minCell requests
// one share of it, so that this rests on as many, or is 0.
func (c *choice) pool(happened [][]int, thing int) {
	times, sum, count := 0, 0.0, 0.0
	for i, k := range c.leaves {
		if happened[i][thing] < minCell {
			times += happened[i][thing]
			sum += k.shares[thing] * float64(k.count)
			count += float64(k.count)
		}
	}
	if times < minCell {
		sum = 0
	}
	for i, k := range c.leaves {
		if happened[i][thing] < minCell {
			k.shares[thing] = sum / count
		}
	}
}

// poolNone does the same for what is left of a leaf's shares.
func (c *choice) poolNone(happened [][]int) {
	none := len(happened[0]) - 1
	times, count := 0, 0
	for i, k := range c.leaves {
		if happened[i][none] < minCell {
			times += happened[i][none]
			count += k.count
		}
	}
	if times < minCell {
		times = 0
	}
	for i, k := range c.leaves {
		all := sumOf(k.shares)
		left := max(0, 1-all)
		if happened[i][none] < minCell {
			left = float64(times) / float64(count)
		}
		for j := range k.shares {
			if all > 0 {
				k.shares[j] *= (1 - left) / all
			}
		}
	}
}

func sumOf(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum
}
