package sessions

import "math"

// fitChoice finds the leaves of a choice from samples whose values are 1 for
// the outcome that happened and 0 for the others. Splits of likely dimensions need less
// gain. fitShares then learns the shares.
func fitChoice(samples []sample, known int, likely ...int) choice {
	outcomes := len(samples[0].values) - known
	g := treeGrower{samples: samples, known: known, minGain: minChoiceGain, likely: likely}
	for o := range outcomes {
		target := make([]float64, len(samples))
		for i := range samples {
			target[i] = samples[i].values[known+o]
		}
		g.targets = append(g.targets, target)
	}
	g.grow()
	c := choice{decisionTree: decisionTree{g.splits}, Leaves: make([]shares, len(g.leaves))}
	for i := range c.Leaves {
		c.Leaves[i] = make(shares, 1+outcomes)
	}
	return c
}

// fitShares learns the shares from samples whose values are the weight of the
// outcome that happened, in observations.
func (c *choice) fitShares(samples []sample, known int) {
	outcomes := len(c.Leaves[0]) - 1
	happened := make([][]int, len(c.Leaves)) // count of each outcome, none last
	for i := range happened {
		happened[i] = make([]int, outcomes+1)
	}
	for _, s := range samples {
		leaf := c.leaf(s.values)
		k := c.Leaves[leaf]
		k[0]++
		outcome := outcomes
		for i := range outcomes {
			k[1+i] += s.values[known+i]
			if s.values[known+i] > 0 {
				outcome = i
			}
		}
		happened[leaf][outcome]++
	}
	for _, k := range c.Leaves {
		whole := max(sum(k[1:]), k[0])
		for j := range k[1:] {
			k[1+j] /= whole
		}
	}
	for o := range outcomes {
		c.poolRare(happened, o)
	}
	c.poolRareNone(happened)
	for _, k := range c.Leaves {
		for j, share := range k[1:] {
			k[1+j] = math.Floor(share*1e6+1e-6) / 1e6
		}
	}
}

// poolRare sets a common share for an outcome in all leaves where it happened
// to fewer than minRequests requests. The share is 0 unless it happened to that
// many in all these leaves together.
func (c *choice) poolRare(happened [][]int, outcome int) {
	times, total, count := 0, 0.0, 0.0
	for i, k := range c.Leaves {
		if happened[i][outcome] < minRequests {
			times += happened[i][outcome]
			total += k[1+outcome] * k[0]
			count += k[0]
		}
	}
	if times < minRequests {
		total = 0
	}
	for i, k := range c.Leaves {
		if happened[i][outcome] < minRequests {
			k[1+outcome] = total / count
		}
	}
}

// poolRareNone does the same for the remaining share of a leaf.
func (c *choice) poolRareNone(happened [][]int) {
	none := len(happened[0]) - 1
	times, count := 0, 0.0
	for i, k := range c.Leaves {
		if happened[i][none] < minRequests {
			times += happened[i][none]
			count += k[0]
		}
	}
	if times < minRequests {
		times = 0
	}
	for i, k := range c.Leaves {
		all := sum(k[1:])
		rest := max(0, 1-all)
		if happened[i][none] < minRequests {
			rest = float64(times) / count
		}
		for j := range k[1:] {
			if all > 0 {
				k[1+j] *= (1 - rest) / all
			}
		}
	}
}

func sum(values []float64) float64 {
	total := 0.0
	for _, x := range values {
		total += x
	}
	return total
}
