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
	Sessions int          `json:"sessions"`
	Requests stats.Sample `json:"requests"`
	// Joins is the number of rows that wait for several others.
	Joins int `json:"joins"`
	// Lost is the number of ids in after that no row has; Missing are the first.
	Lost    int            `json:"lost"`
	Missing []trace.LostID `json:"-"`
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
	requests := make([]int32, n) // of each session, by first row
	for row := range n {
		requests[g.First(row)]++
		if len(g.Before(row)) > 1 {
			of.Joins++
		}
	}
	of.Requests = countsOf(requests)
	of.Sessions = of.Requests.Count
	return of
}

// countsOf returns the distribution of the numbers above 0.
func countsOf(numbers []int32) stats.Sample {
	var all stats.Collector
	for _, n := range numbers {
		if n > 0 {
			all.Add(float64(n))
		}
	}
	return all.Sample()
}
