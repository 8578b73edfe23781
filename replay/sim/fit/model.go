package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"moontide/replay/sim/engine"
)

// model is a deployment whose costs are fitted to rows.
type model struct {
	template engine.Deployment
	engines  int    // that decode
	prefix   string // of the names of decoding costs
	rows     []*Row
	seed     uint64
	// at has the logarithms of the costs, then those of the differences between the entries
	// of the decode table.
	at    []float64
	costs []string // names in setters
	knots []int    // sequences of the decode table, without the first, 1; nil keeps the table
	loss  float64
}

// setters set the costs that are fitted, by their names in an [Estimate].
var setters = map[string]func(d *engine.Deployment, c engine.Cost){
	"request-latency":                        func(d *engine.Deployment, c engine.Cost) { d.Latency = c.Duration() },
	"prefill-step":                           func(d *engine.Deployment, c engine.Cost) { d.Engine.Costs.PrefillStep = c },
	"prefill-per-token":                      func(d *engine.Deployment, c engine.Cost) { d.Engine.Costs.PrefillToken = c },
	"transfer-base":                          func(d *engine.Deployment, c engine.Cost) { d.Transfer.Base = c.Duration() },
	"transfer-per-token":                     func(d *engine.Deployment, c engine.Cost) { d.Transfer.PerToken = c },
	"step-base":                              func(d *engine.Deployment, c engine.Cost) { d.Engine.Costs.Step = c },
	"decode-per-context-token":               func(d *engine.Deployment, c engine.Cost) { d.Engine.Costs.ContextToken = c },
	"decode-engine.step-base":                func(d *engine.Deployment, c engine.Cost) { d.DecodeEngine.Costs.Step = c },
	"decode-engine.decode-per-context-token": func(d *engine.Deployment, c engine.Cost) { d.DecodeEngine.Costs.ContextToken = c },
}

// newModel returns the model of a deployment.
func newModel(d engine.Deployment, rows []*Row, options Options) *model {
	m := &model{template: d, rows: rows, seed: options.Seed, engines: max(d.Engines, 1)}
	m.costs = []string{"request-latency", "prefill-step", "prefill-per-token"}
	if d.Disaggregated() {
		m.engines, m.prefix = d.Decode, "decode-engine."
		m.costs = []string{"request-latency", "step-base", "prefill-per-token", "transfer-per-token", "transfer-base"}
	}
	if !options.Refit {
		// The base time of a step includes the time of one sequence: no measurement
		// separates them.
		m.costs = append(m.costs, m.prefix+"step-base", m.prefix+"decode-per-context-token")
		m.knots = m.measuredKnots()
	}
	return m
}

// Limits that the template leaves open; that of tokens in a step is as good as none.
const defaultSeqs, manyTokens = 1024, 1 << 17

// deployments returns the deployments that are tried. Engines that compute prompts and
// answers have one of the usual budgets of tokens for a step. Prefill engines compute one
// prompt at a time, and transfers share a link or not.
func deployments(d engine.Deployment) (all []engine.Deployment) {
	e := &d.Engine
	if !d.Disaggregated() {
		budgets, seqs := []int{2048, 4096, 8192, 16384}, cmp.Or(e.MaxSeqs, defaultSeqs)
		if e.MaxBatchedTokens > 0 {
			budgets = []int{e.MaxBatchedTokens}
		}
		for _, tokens := range budgets {
			e.MaxBatchedTokens, e.MaxSeqs = tokens, min(seqs, tokens)
			all = append(all, d)
		}
		return all
	}
	if d.DecodeEngine == nil {
		decode := *e
		decode.MaxSeqs, decode.MaxBatchedTokens = cmp.Or(e.MaxSeqs, defaultSeqs), cmp.Or(e.MaxBatchedTokens, manyTokens)
		d.DecodeEngine = &decode
	}
	e.MaxSeqs, e.MaxBatchedTokens = cmp.Or(e.MaxSeqs, 1), cmp.Or(e.MaxBatchedTokens, manyTokens)
	if d.Transfer.Sharing != "" {
		return []engine.Deployment{d}
	}
	d.Transfer.FirstTokenAfter = true
	for _, d.Transfer.Sharing = range engine.Sharings {
		all = append(all, d)
	}
	return all
}

// measuredKnots returns the numbers of sequences that the rows measure, without the least,
// which shows the base time of a step.
func (m *model) measuredKnots() []int {
	var batches []int
	for _, r := range m.rows {
		batches = append(batches, int(math.Round(r.batch(m.engines))))
	}
	slices.Sort(batches)
	knots := []int{batches[0]}
	for _, n := range batches {
		const leastRatio = 1.35 // of neighbours
		if float64(n) >= leastRatio*float64(knots[len(knots)-1]) {
			knots = append(knots, n)
		}
	}
	knots[len(knots)-1] = batches[len(batches)-1] // the range that was measured is covered
	return knots[1:]
}

// without returns the model of the rows that are not left out. It has no entries of the
// decode table that they do not measure: the differences to these become one.
func (m model) without(left func(row *Row) bool) *model {
	at, knots := m.at, m.knots
	m.rows = slices.DeleteFunc(slices.Clone(m.rows), left)
	if len(m.rows) == 0 || knots == nil {
		return &m
	}
	measured, difference := m.measuredKnots(), 0.0
	m.at, m.knots = slices.Clone(at[:len(m.costs)]), []int{}
	for i, n := range knots {
		difference += math.Exp(at[len(m.costs)+i])
		if slices.Contains(measured, n) {
			m.at, m.knots, difference = append(m.at, math.Log(difference)), append(m.knots, n), 0
		}
	}
	return &m
}

// costAt returns the cost at a coordinate, from 10 ps to 10 s.
func costAt(coordinate float64) engine.Cost {
	const least, most = float64(10 * engine.Picosecond), float64(10 * engine.Second)
	return engine.Cost(math.Round(min(max(math.Exp(coordinate), least), most)))
}

// deployment returns the deployment with the costs at a point.
func (m *model) deployment(at []float64) engine.Deployment {
	d := m.template.Clone()
	for i, name := range m.costs {
		setters[name](&d, costAt(at[i]))
	}
	if m.knots != nil {
		table := engine.DecodeTable{{Sequences: 1}}
		for i, n := range m.knots {
			table = append(table, engine.BatchCost{Sequences: n, Cost: table[i].Cost + costAt(at[len(m.costs)+i])})
		}
		costs := &d.Engine.Costs
		if d.Disaggregated() {
			costs = &d.DecodeEngine.Costs
		}
		costs.Decode = table
	}
	return d
}

// estimates returns the costs by name; an entry of the table is with step-base.
func (m *model) estimates() (all []Estimate) {
	var step engine.Cost
	add := func(name string, c engine.Cost) { all = append(all, Estimate{name, c, c, c}) }
	for i, name := range m.costs {
		add(name, costAt(m.at[i]))
		if name == m.prefix+"step-base" {
			step = costAt(m.at[i])
		}
	}
	for i, n := range m.knots {
		step += costAt(m.at[len(m.costs)+i])
		add(fmt.Sprintf("%sdecode-table.%d", m.prefix, n), step)
	}
	return all
}

// starts returns points to search from: near the measurements, with three ways to split the
// time of a prompt between costs that one TTFT cannot separate. There are none if the rows
// have fewer means than the model has costs: a TTFT, a TPOT, and a throughput or E2EL each.
func (m *model) starts() (all [][]float64) {
	steps, prompts := []float64{}, [][]float64{} // TPOT; prompt tokens and TTFT; in ms
	for _, r := range m.rows {
		if tpot := r.Values[MeanTPOT]; tpot > 0 {
			steps = append(steps, tpot)
		}
		if ttft := r.Values[MeanTTFT]; ttft > 0 {
			prompts = append(prompts, []float64{max(float64(r.Load.ISL), 1), max(ttft, 1)})
		}
	}
	if len(steps) == 0 || len(prompts) == 0 || len(steps)+len(prompts)+len(m.rows) < len(m.costs)+len(m.knots) {
		return nil
	}
	step, most := slices.Min(steps), slices.Max(steps)
	slices.SortFunc(prompts, slices.Compare)
	short, longest := prompts[0], prompts[len(prompts)-1][0]
	long := prompts[slices.IndexFunc(prompts, func(p []float64) bool { return p[0] == longest })]
	perToken := (long[1] - short[1]) / max(long[0]-short[0], 1)
	if limit := 0.9 * short[1] / short[0]; perToken <= 0 || perToken > limit {
		perToken = limit * 2 / 3
	}
	base := short[1] - perToken*short[0]
	for _, share := range []float64{0.5, 0.1, 0.9} {
		other := 1 - share
		point := []float64{other * base, share * base, perToken}
		if m.template.Disaggregated() {
			point = []float64{0.1 * base, other * base, other * perToken, share * perToken, share * base}
		}
		if n := len(m.knots); m.knots != nil {
			point = append(point, 0.97*step, step/100_000)
			point = append(point, slices.Repeat([]float64{max(most-step, 0.1*step) / float64(n)}, n)...)
		}
		for i, ms := range point {
			point[i] = math.Log(max(ms*float64(engine.Millisecond), 1))
		}
		all = append(all, point)
	}
	return all
}

// weights of the metrics. Request throughput counts only where output throughput is
// missing.
var weights = map[Metric]float64{
	OutputThroughput: 1, MeanE2EL: 1, MeanTTFT: 0.8, MeanTPOT: 1, P99E2EL: 0.5, P99TTFT: 0.25, P99TPOT: 0.3,
}

// priorWeight pulls costs to where the search began, so that those on which nothing
// depends stay there.
const priorWeight = 0.003

// solve returns the model fitted from a point: the residuals are the weighted logarithms of
// predicted to measured values. What cannot be simulated is predicted as almost nothing.
func (m model) solve(ctx context.Context, start []float64, scale float64, iterations int) *model {
	p := problem{scale, func(at []float64) (all []float64) {
		d := m.deployment(at)
		for _, r := range m.rows {
			predicted, _ := Simulate(d, r.Load, m.seed)
			for _, metric := range Metrics {
				weight, measured := weights[metric], r.Values[metric]
				if metric == RequestThroughput && r.Values[OutputThroughput] == 0 {
					weight = 1
				}
				if weight > 0 && measured > 0 {
					all = append(all, weight*math.Log(max(predicted[metric], 1e-6)/measured))
				}
			}
		}
		for i := range at {
			all = append(all, priorWeight*(at[i]-start[i]))
		}
		return all
	}}
	m.at, m.loss = p.solve(ctx, start, iterations)
	return &m
}
