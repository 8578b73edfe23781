package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/sim/virtual"
	"moontide/trace"
	"moontide/trace/stats"
)

// reference is the true largest load of a task, and its standard error.
type reference struct {
	Load, Error float64
	// Unstable is set if no objective fails at lower loads than those the system cannot
	// sustain.
	Unstable bool
}

// longRun is the number of requests of a run of a reference, of which the first tenth
// fills the system and is not measured. Each of the draws gives an estimate.
const (
	longRun = 30_000
	draws   = 4
)

// refer returns the truth of a task near a load, by simulation: for each draw of requests,
// the load at which they just meet the objectives. All runs of a draw have the same
// requests, and arrivals at exactly the run's rate on average, so that the latencies are
// nearly smooth functions of the load.
func (t *task) refer(near float64, gates []run.Gate) (r reference, err error) {
	var loads []float64
	capacity := math.Inf(1)
	for draw := range uint64(draws) {
		drawn := t.draw(draw)
		if t.axis == bench.Rate && (draw == 0 || r.Unstable) {
			if capacity, err = t.capacity(drawn, near); err != nil {
				return r, err
			}
		}
		load, err := crossing(min(near, 0.98*capacity), capacity, t.axis == bench.Concurrency, func(load float64) (float64, error) {
			records, err := t.simulate(drawn, load)
			return excess(records, gates), err
		})
		if err != nil {
			return r, err
		}
		r.Unstable = r.Unstable || load == capacity
		loads = append(loads, load)
		near = load
	}
	for _, x := range loads {
		r.Load += x / draws
	}
	for _, x := range loads {
		r.Error += (x - r.Load) * (x - r.Load)
	}
	r.Error = math.Sqrt(r.Error / (draws - 1) / draws)
	return r, nil
}

// draw returns requests whose arrivals have a mean distance of 1 s.
func (t *task) draw(seed uint64) []trace.Request {
	random := rand.New(rand.NewPCG(seed, 7))
	rows := make([]trace.Request, longRun)
	at, block := 0.0, uint64(1)
	for i := range rows {
		r := trace.Request{Timestamp: trace.Some(at), InputLength: t.isl.draw(random), OutputLength: t.osl.draw(random)}
		for range (r.InputLength + 511) / 512 {
			r.HashIDs = append(r.HashIDs, block)
			block++
		}
		rows[i] = r
		at += random.ExpFloat64() * 1000
	}
	for i := range rows {
		rows[i].Timestamp.Value *= longRun * 1000 / at
	}
	return rows
}

// kept keeps records.
type kept []replay.Record

// Record implements [replay.Recorder].
func (k *kept) Record(rec replay.Record) error {
	rec.HashIDs = nil
	*k = append(*k, rec)
	return nil
}

// simulate returns the records of a run at a load, in the order of sending.
func (t *task) simulate(rows []trace.Request, load float64) ([]replay.Record, error) {
	endpoint, err := virtual.New(virtual.Config{Deployment: t.deployment, TraceBlockSize: 512, Coarse: true})
	if err != nil {
		return nil, err
	}
	records := make(kept, 0, len(rows))
	runner := replay.VirtualRunner{Model: endpoint, Recorder: &records}
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
	inOrder := make([]replay.Record, len(records))
	for _, rec := range records {
		inOrder[rec.Row] = rec
	}
	return inOrder, err
}

// excess returns the logarithm of the largest value of a metric over its limit, of the
// requests between the first and the last tenth.
func excess(records []replay.Record, gates []run.Gate) float64 {
	records = records[len(records)/10 : len(records)*9/10]
	worst := math.Inf(-1)
	for _, g := range gates {
		var values []float64
		for i := range records {
			if v := g.Metric.Latency.Of(&records[i]); v.Set {
				values = append(values, v.Value)
			}
		}
		worst = max(worst, math.Log(g.Metric.Statistic.Of(stats.Of(values))/g.Limit))
	}
	return worst
}

// capacity returns the rate that the system completes in overload.
func (t *task) capacity(rows []trace.Request, near float64) (float64, error) {
	records, err := t.simulate(rows, 2*near)
	if err != nil {
		return 0, err
	}
	last := slices.MaxFunc(records, func(a, b replay.Record) int { return int(a.Due - b.Due) }).Due
	from, n := last/5, 0
	for i := range records {
		if records[i].Done > from && records[i].Done <= last {
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
