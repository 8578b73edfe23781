package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/sim/virtual"
	"moontide/trace"
	"moontide/trace/stats"
)

// A run of a reference has this many requests. The first tenth fills the system and is not
// measured. Closed loops need more: under round-robin routing, a slow engine collects ever
// more of the requests in flight, for tens of thousands of requests. Each of the draws
// gives an estimate.
const (
	longRun       = 30_000
	longClosedRun = 120_000
	draws         = 4
)

// refer returns the truth of a task near a load and its standard error, by simulation: for
// each draw of requests, the load at which they just meet the objectives. All runs of a draw have the same
// requests, and arrivals at exactly the run's rate on average, so that the latencies are
// nearly smooth functions of the load.
func (t *task) refer(near float64, gates []run.Gate) (truth, spread float64, err error) {
	var loads []float64
	unstable := false
	capacity := math.Inf(1)
	for draw := range uint64(draws) {
		drawn := t.draw(draw)
		if t.axis == bench.Rate && (draw == 0 || unstable) {
			if capacity, err = t.capacity(drawn, near); err != nil {
				return 0, 0, err
			}
		}
		load, err := crossing(min(near, 0.98*capacity), capacity, t.axis == bench.Concurrency, func(load float64) (float64, error) {
			seen, err := t.simulate(drawn, load, gates)
			return seen.excess(gates), err
		})
		if err != nil {
			return 0, 0, err
		}
		unstable = unstable || load == capacity
		loads = append(loads, load)
		near = load
	}
	for _, x := range loads {
		truth += x / draws
	}
	for _, x := range loads {
		spread += (x - truth) * (x - truth)
	}
	return truth, math.Sqrt(spread / (draws - 1) / draws), nil
}

// endless reports whether a concurrency meets the objectives that is far above those tried.
func (t *task) endless(load float64, gates []run.Gate) (bool, error) {
	if t.axis != bench.Concurrency {
		return false, nil
	}
	seen, err := t.simulate(t.draw(0), load, gates)
	if err != nil {
		return false, err
	}
	return seen.excess(gates) < 0, nil
}

// draw returns requests whose arrivals have a mean distance of 1 s.
func (t *task) draw(seed uint64) []trace.Request {
	random := rand.New(rand.NewPCG(seed, 7))
	n := longRun
	if t.axis == bench.Concurrency {
		n = longClosedRun
	}
	rows := make([]trace.Request, n)
	at := 0.0
	for i := range rows {
		rows[i] = trace.Request{Timestamp: trace.Some(at), InputLength: t.isl.draw(random), OutputLength: t.osl.draw(random)}
		at += random.ExpFloat64() * 1000
	}
	for i := range rows {
		rows[i].Timestamp.Value *= float64(n) * 1000 / at
	}
	return rows
}

// observed is what is kept of the requests of a run, in the order of sending.
type observed struct {
	gates     []run.Gate
	due, done []time.Duration
	values    [][]trace.Opt[float64] // of each gate's metric
}

// Record implements [replay.Recorder].
func (o *observed) Record(rec replay.Record) error {
	o.due[rec.Row], o.done[rec.Row] = rec.Due, rec.Done
	for i, g := range o.gates {
		o.values[i][rec.Row] = g.Metric.Latency.Of(&rec)
	}
	return nil
}

// simulate runs the requests at a load.
func (t *task) simulate(rows []trace.Request, load float64, gates []run.Gate) (*observed, error) {
	endpoint, err := virtual.New(virtual.Config{Deployment: t.deployment, TraceBlockSize: 512, Coarse: true})
	if err != nil {
		return nil, err
	}
	seen := &observed{gates: gates, due: make([]time.Duration, len(rows)), done: make([]time.Duration, len(rows))}
	for range gates {
		seen.values = append(seen.values, make([]trace.Opt[float64], len(rows)))
	}
	runner := replay.VirtualRunner{Model: endpoint, Recorder: seen}
	if t.axis == bench.Concurrency {
		runner.Closed, runner.MaxConcurrency = true, int(load)
	}
	at := func(yield func(trace.Request, error) bool) {
		for _, r := range rows {
			if t.axis == bench.Concurrency {
				r.Timestamp.Value = 0
			} else {
				r.Timestamp.Value /= load
			}
			if !yield(r, nil) {
				return
			}
		}
	}
	_, err = runner.Run(context.Background(), at)
	return seen, err
}

// excess returns the logarithm of the largest value of a metric over its limit, of the
// requests between the first and the last tenth.
func (o *observed) excess(gates []run.Gate) float64 {
	worst := math.Inf(-1)
	for i, g := range gates {
		var values []float64
		for _, v := range o.values[i][len(o.due)/10 : len(o.due)*9/10] {
			if v.Set {
				values = append(values, v.Value)
			}
		}
		worst = max(worst, math.Log(g.Metric.Statistic.Of(stats.Of(values))/g.Limit))
	}
	return worst
}

// capacity returns the rate that the system completes in overload.
func (t *task) capacity(rows []trace.Request, near float64) (float64, error) {
	seen, err := t.simulate(rows, 2*near, nil)
	if err != nil {
		return 0, err
	}
	last := slices.Max(seen.due)
	from, n := last/5, 0
	for _, done := range seen.done {
		if done > from && done <= last {
			n++
		}
	}
	return float64(n) / (last - from).Seconds(), nil
}

// crossing returns where a growing function of the load is 0, or most if it is below 0
// there. With whole loads it interpolates between two.
func crossing(near, most float64, whole bool, f func(load float64) (float64, error)) (float64, error) {
	values := map[float64]float64{}
	at := func(load float64) (y float64, err error) {
		if whole {
			load = max(1, math.Round(load))
		}
		y, known := values[load]
		if !known {
			y, err = f(load)
			values[load] = y
		}
		return y, err
	}
	if whole {
		near = max(1, math.Round(near))
	}
	low, high := near, near
	for step := 1.01; ; step *= step {
		y, err := at(low)
		if err != nil {
			return 0, err
		}
		if y < 0 {
			break
		}
		high = low
		if low /= step; whole {
			low = math.Floor(low)
		}
	}
	for step := 1.01; high == low || values[high] < 0; step *= step {
		if high >= 0.995*most {
			return most, nil
		}
		if low, high = high, min(high*step, 0.995*most); whole {
			high = math.Ceil(high)
		}
		if _, err := at(high); err != nil {
			return 0, err
		}
	}
	for high/low > 1.003 && !(whole && high-low <= 1) {
		a, b := values[low], values[high]
		x := low * math.Pow(high/low, min(max(a/(a-b), 0.2), 0.8))
		if whole {
			x = min(max(math.Round(x), low+1), high-1)
		}
		y, err := at(x)
		if err != nil {
			return 0, err
		}
		if y < 0 {
			low = x
		} else {
			high = x
		}
	}
	a, b := values[low], values[high]
	return low * math.Pow(high/low, a/(a-b)), nil
}
