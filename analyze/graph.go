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

// Untimed counts the later turns of sessions, and the other rows that wait for others,
// that have a delay instead of a timestamp. When they are sent depends on the answers
// before them, so their place among the rows is only an estimate, and so is their
// arrival; see [trace.Graph.SendTimes].
type Untimed struct {
	Turns int
	// Misplaced is the number of those that cannot have been sent where they are:
	// even if answers took no time, the next row with a timestamp came before.
	Misplaced int
}

// untimedOf finds untimed turns. It takes 8 bytes a row.
func untimedOf(rows *rows, graph *trace.Graph) (u Untimed) {
	earliest := make([]float64, rows.len())
	// since holds the earliest times of the untimed turns since the last row with a
	// timestamp.
	var since []float64
	for i, r := range rows.all {
		if r.timed {
			earliest[i] = r.ms
			for _, at := range since {
				if at > r.ms {
					u.Misplaced++
				}
			}
			since = since[:0]
			continue
		}
		before := graph.Before(i)
		if len(before) == 0 && !r.hasAfter {
			continue
		}
		u.Turns++
		for _, b := range before { // those of later rows are still 0
			earliest[i] = max(earliest[i], earliest[b])
		}
		earliest[i] += r.ms
		since = append(since, earliest[i])
	}
	return u
}

// estimateTimes gives the rows that wait for others and have no timestamp the time
// at which they would be sent. Without any timestamp, nothing is known about times.
func (c *collector) estimateTimes(graph *trace.Graph) (u Untimed) {
	if graph == nil || !c.sessions.untimed {
		return u
	}
	if u = untimedOf(&c.rows, graph); u.Turns == 0 || !c.sessions.timed {
		return u
	}
	graph.SendTimes(0, c.rows.len(), 0, func(i int) trace.Due {
		r := c.rows.at(i)
		return trace.Due{At: &r.ms, Timed: r.timed, OSL: int(r.osl)}
	})
	for _, r := range c.rows.all {
		if !r.timed {
			r.timed, r.estimated = true, true
		}
	}
	return u
}
