package analyze

import (
	"iter"

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
	var requests, deepest, widest, at counts // at is by depth
	for own := range depthsBySession(g, n) {
		clear(at)
		deep, wide := 0, 0
		for _, depth := range own {
			at.add(int(depth), 1)
			deep, wide = max(deep, int(depth)), max(wide, at[depth])
		}
		at = at[:deep+1]
		requests.add(len(own), 1)
		deepest.add(deep, 1)
		widest.add(wide, 1)
	}
	for row := range n {
		if len(g.Before(row)) > 1 {
			of.Joins++
		}
	}
	of.Requests, of.Depth, of.Width = requests.sample(), deepest.sample(), widest.sample()
	of.Sessions = of.Requests.Count
	return of
}

// depthsBySession yields the depths of the rows of each session.
func depthsBySession(g *trace.Graph, n int) iter.Seq[[]int32] {
	ends := make([]int32, n) // of the depths of each session, by first row
	for row := range n {
		ends[g.First(row)]++
	}
	end := int32(0)
	for first, size := range ends {
		ends[first] = end // until all are placed
		end += size
	}
	sorted := make([]int32, n)
	for row, depth := range depths(g, n) {
		first := g.First(row)
		sorted[ends[first]] = depth
		ends[first]++
	}
	return func(yield func([]int32) bool) {
		start := int32(0)
		for _, end := range ends {
			if end > start && !yield(sorted[start:end]) {
				return
			}
			start = max(start, end)
		}
	}
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
