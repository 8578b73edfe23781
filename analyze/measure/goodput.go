package measure

import (
	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Objective is an upper limit for a latency of each request.
type Objective struct {
	Latency Latency
	LimitMS float64
}

// String returns the objective as ttft:2000, see package slo.
func (o Objective) String() string {
	return o.Latency.String() + ":" + stats.Plain(o.LimitMS)
}

// MetBy reports whether a request meets the objective. Undefined latencies, such as TPOT
// with a single token, meet it, but an answer without a visible token misses one of TTFVT.
func (o Objective) MetBy(q *Request) bool {
	value := q.Latency(o.Latency)
	return value.Set && value.Value <= o.LimitMS || !value.Set && o.Latency != TTFVT
}

// Goodput counts the requests that met their objectives. Failed ones meet none.
type Goodput struct {
	Requests   int // ended in the measured part, including failed ones
	Good       int // met every objective
	Rate       trace.Opt[float64]
	Objectives []MetObjective
}

// MetObjective is an objective and the number of requests that met it.
type MetObjective struct {
	Objective
	Met int
}

// Share returns n as a share of Requests, from 0 to 1.
func (g *Goodput) Share(n int) trace.Opt[float64] {
	return trace.Ratio(n, g.Requests)
}

// newGoodput returns nil without objectives.
func newGoodput(objectives []Objective) *Goodput {
	if len(objectives) == 0 {
		return nil
	}
	g := &Goodput{}
	for _, o := range objectives {
		g.Objectives = append(g.Objectives, MetObjective{Objective: o})
	}
	return g
}

// add counts a request that has ended.
func (g *Goodput) add(q *Request) {
	g.Requests++
	if q.Class != replay.OK {
		return
	}
	for i := range g.Objectives {
		countIf(&g.Objectives[i].Met, g.Objectives[i].MetBy(q))
	}
	countIf(&g.Good, q.Good)
}
