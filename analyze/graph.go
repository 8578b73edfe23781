package analyze

import (
	"moontide/trace"
	"moontide/trace/stats"
)

// Graph describes a trace whose rows name the requests that they wait for (key after).
type Graph struct {
	// Sessions is the number of groups of rows that wait for each other or have a
	// session id in common, such as an agent with its sub-agents. A row without either
	// counts as one. Requests is the number of rows of each.
	Sessions int
	Requests stats.Sample
	// Depth is the number of rows of the longest chain of each session in which each
	// waits for the one before. Width is the largest number of rows of a session at
	// one depth: how many run at a time at most if all take equally long.
	Depth, Width stats.Sample
	// Joins is the number of rows that wait for several others.
	Joins int
	// Lost is the number of ids in after that no row has; Missing are the first.
	Lost    int
	Missing []trace.LostID
}

// Whole returns a [*trace.GraphError] if rows wait for requests that are missing.
func (g *Graph) Whole() error {
	if g == nil || g.Lost == 0 {
		return nil
	}
	return g.Missing[0].AsError()
}

// graphOf describes the graph of n rows.
func graphOf(g *trace.Graph, n int) *Graph {
	of := &Graph{Lost: g.Lost(), Missing: g.LostIDs()}
	depth := depths(g, n)
	type place struct{ session, depth int }
	at := map[place]int{}
	requests, deepest, widest := make([]int, n), make([]int, n), make([]int, n) // by first row
	for row, depth := range depth {
		session := g.First(row)
		requests[session]++
		deepest[session] = max(deepest[session], int(depth))
		here := place{session, int(depth)}
		at[here]++
		widest[session] = max(widest[session], at[here])
		if len(g.Before(row)) > 1 {
			of.Joins++
		}
	}
	of.Requests, of.Depth, of.Width = sampleOf(requests), sampleOf(deepest), sampleOf(widest)
	of.Sessions = of.Requests.Count
	return of
}

// sampleOf returns the distribution of the numbers above 0.
func sampleOf(numbers []int) stats.Sample {
	var all counts
	for _, n := range numbers {
		if n > 0 {
			all.add(n, 1)
		}
	}
	return all.sample()
}

// depths returns the number of rows of the longest chain that ends with each row.
func depths(g *trace.Graph, n int) []int32 {
	depth := make([]int32, n)
	var left []int32
	for row := range n {
		left = append(left[:0], int32(row))
		for len(left) > 0 {
			next := left[len(left)-1]
			longest, ready := int32(0), true
			for _, before := range g.Before(int(next)) {
				if depth[before] == 0 {
					left, ready = append(left, before), false
				}
				longest = max(longest, depth[before])
			}
			if ready {
				depth[next] = longest + 1
				left = left[:len(left)-1]
			}
		}
	}
	return depth
}
