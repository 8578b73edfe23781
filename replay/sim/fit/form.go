package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"moontide/replay/sim/engine"
)

// form is a deployment whose costs are fitted. The costs are a vector of logarithms, in
// the order of costs.
type form struct {
	template engine.Deployment
	knots    []int // sequences of the decode table, without the first, 1; nil keeps the table
}

// Limits that a form has if the template leaves them open.
const (
	defaultSeqs = 1024
	manyTokens  = 1 << 17 // in a step: as good as no limit
)

// tokenBudgets are the usual limits of tokens in a step.
var tokenBudgets = []int{2048, 4096, 8192, 16384}

// forms returns the deployments that are tried. Engines that compute prompts and answers
// have a budget of tokens for a step. Prefill engines compute one prompt at a time, and
// transfers share a link or not.
func forms(template engine.Deployment) (all []engine.Deployment) {
	d := template.Clone()
	if !d.Disaggregated() {
		budgets := tokenBudgets
		if own := d.Engine.MaxBatchedTokens; own > 0 {
			budgets = []int{own}
		}
		for _, tokens := range budgets {
			d.Engine.MaxBatchedTokens, d.Engine.MaxSeqs = tokens, min(cmp.Or(template.Engine.MaxSeqs, defaultSeqs), tokens)
			all = append(all, d)
		}
		return all
	}
	if d.DecodeEngine == nil {
		own := d.Engine
		own.MaxSeqs, own.MaxBatchedTokens = cmp.Or(own.MaxSeqs, defaultSeqs), cmp.Or(own.MaxBatchedTokens, manyTokens)
		d.DecodeEngine = &own
	}
	d.Engine.MaxSeqs, d.Engine.MaxBatchedTokens = cmp.Or(d.Engine.MaxSeqs, 1), cmp.Or(d.Engine.MaxBatchedTokens, manyTokens)
	if d.Transfer.Sharing != "" {
		return []engine.Deployment{d}
	}
	for _, sharing := range []engine.Sharing{engine.Independent, engine.Batch} {
		d.Transfer = engine.Transfer{Sharing: sharing, FirstTokenAfter: true}
		all = append(all, d)
	}
	return all
}

// cost is a cost that is fitted, with its name in an [Estimate].
type cost struct {
	name string
	set  func(d *engine.Deployment, c engine.Cost)
}

// costs returns the costs, in the order of the coordinates of a point.
func (f *form) costs() []cost {
	latency := cost{"request-latency", func(d *engine.Deployment, c engine.Cost) { d.Latency = c.Duration() }}
	perToken := cost{"prefill-per-token", func(d *engine.Deployment, c engine.Cost) { d.Engine.Costs.PrefillToken = c }}
	all := []cost{latency, {"prefill-step", func(d *engine.Deployment, c engine.Cost) { d.Engine.Costs.PrefillStep = c }}, perToken}
	prefix, decoding := "", func(d *engine.Deployment) *engine.Costs { return &d.Engine.Costs }
	if f.template.Disaggregated() {
		all = []cost{
			latency, {"step-base", func(d *engine.Deployment, c engine.Cost) { d.Engine.Costs.Step = c }}, perToken,
			{"transfer-per-token", func(d *engine.Deployment, c engine.Cost) { d.Transfer.PerToken = c }},
			{"transfer-base", func(d *engine.Deployment, c engine.Cost) { d.Transfer.Base = c.Duration() }},
		}
		prefix, decoding = "decode-engine.", func(d *engine.Deployment) *engine.Costs { return &d.DecodeEngine.Costs }
	}
	if f.knots == nil {
		return all
	}
	// The base time of a step includes the time of one sequence: no measurement separates
	// them.
	all = append(all,
		cost{prefix + "step-base", func(d *engine.Deployment, c engine.Cost) {
			decoding(d).Step, decoding(d).Decode = c, engine.DecodeTable{{Sequences: 1}}
		}},
		cost{prefix + "decode-per-context-token", func(d *engine.Deployment, c engine.Cost) { decoding(d).ContextToken = c }})
	for _, n := range f.knots {
		all = append(all, cost{fmt.Sprintf("%sdecode-table.%d", prefix, n), func(d *engine.Deployment, c engine.Cost) {
			table := decoding(d).Decode
			decoding(d).Decode = append(table, engine.BatchCost{Sequences: n, Cost: table[len(table)-1].Cost + c})
		}})
	}
	return all
}

// costAt returns the cost at a coordinate.
func costAt(coordinate float64) engine.Cost { return engine.Cost(math.Round(math.Exp(coordinate))) }

// deployment returns the deployment with the costs at a point.
func (f *form) deployment(at []float64) engine.Deployment {
	d := f.template.Clone()
	for i, c := range f.costs() {
		c.set(&d, costAt(at[i]))
	}
	return d
}

// estimates returns the costs at a point by name; an entry of the table is with step-base.
func (f *form) estimates(at []float64) (all []Estimate) {
	costs, step := f.costs(), engine.Cost(0)
	for i, c := range costs {
		value := costAt(at[i])
		switch entries := len(costs) - len(f.knots); {
		case i >= entries:
			step += value
			value = step
		case i == entries-2:
			step = value
		}
		all = append(all, Estimate{Name: c.name, Value: value, Low: value, High: value})
	}
	return all
}

// engines returns the number of engines that decode.
func engines(d *engine.Deployment) int {
	if d.Disaggregated() {
		return d.Decode
	}
	return max(d.Engines, 1)
}

// batch returns about the most sequences that an engine decodes at once: in a closed
// loop those in flight, else by Little's law.
func (m *Measurement) batch(engines int) float64 {
	inFlight := float64(m.Load.Concurrency)
	if decoding := m.Values[MeanE2EL] - m.Values[MeanTTFT]; !m.Load.closed() && decoding > 0 && m.Values[RequestThroughput] > 0 {
		inFlight = m.Values[RequestThroughput] * decoding / 1000
	}
	return max(1, inFlight/float64(engines))
}

// knotRatio is the least ratio of neighbouring entries of a decode table.
const knotRatio = 1.35

// decodeKnots returns the numbers of sequences for the entries of a decode table: those
// measured, without the least, which shows the base time of a step.
func decodeKnots(rows []Measurement, engines int) []int {
	batches := make([]float64, len(rows))
	for i := range rows {
		batches[i] = rows[i].batch(engines)
	}
	slices.Sort(batches)
	knots := []int{int(math.Round(batches[0]))}
	for i, b := range batches {
		n := int(math.Round(b))
		last := knots[len(knots)-1]
		switch {
		case float64(n) >= knotRatio*float64(last):
			knots = append(knots, n)
		case i == len(batches)-1 && n > last && len(knots) > 1:
			knots[len(knots)-1] = n // the range that was measured is covered
		}
	}
	return knots[1:]
}

// starts returns points to search from: near the measurements, with three ways to split the
// time of a prompt between costs that one TTFT cannot separate.
func (f *form) starts(rows []Measurement) (all [][]float64) {
	step, most := math.Inf(1), 0.0 // ms
	var timed []Measurement        // those with a TTFT
	for _, m := range rows {
		if tpot := m.Values[MeanTPOT]; tpot > 0 {
			step, most = min(step, tpot), max(most, tpot)
		}
		if m.Values[MeanTTFT] > 0 {
			timed = append(timed, m)
		}
	}
	if math.IsInf(step, 1) {
		step = 10
	}
	if timed == nil {
		timed = []Measurement{{}}
	}
	leastTTFT := func(sign float64) (m Measurement, isl float64) { // of the shortest or longest prompts
		m = slices.MinFunc(timed, func(a, b Measurement) int {
			from, _ := a.Load.means()
			to, _ := b.Load.means()
			return cmp.Or(cmp.Compare(sign*from, sign*to), cmp.Compare(a.Values[MeanTTFT], b.Values[MeanTTFT]))
		})
		isl, _ = m.Load.means()
		return m, isl
	}
	short, shortest := leastTTFT(1)
	long, longest := leastTTFT(-1)
	least := max(short.Values[MeanTTFT], 1)
	perToken := (long.Values[MeanTTFT] - least) / max(longest-shortest, 1)
	if limit := 0.9 * least / max(shortest, 1); perToken <= 0 || perToken > limit {
		perToken = limit * 2 / 3
	}
	base := least - perToken*shortest
	for _, share := range []float64{0.5, 0.1, 0.9} {
		other := 1 - share
		point := []float64{other * base, share * base, perToken}
		if f.template.Disaggregated() {
			point = []float64{0.1 * base, other * base, other * perToken, share * perToken, share * base}
		}
		if f.knots != nil {
			point = append(point, 0.97*step, step/100_000)
		}
		for range f.knots {
			point = append(point, max(most-step, 0.1*step)/float64(len(f.knots)))
		}
		for i, ms := range point {
			point[i] = math.Log(max(ms*float64(engine.Millisecond), 1))
		}
		all = append(all, point)
	}
	return all
}
