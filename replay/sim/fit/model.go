package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"moontide/replay/sim/engine"
)

// model is a deployment whose costs are fitted to rows. A point has the logarithms of the
// costs, then those of the differences between the entries of the decode table.
type model struct {
	template engine.Deployment
	rows     []*Row
	seed     uint64
	costs    []string // names in setters
	knots    []int    // sequences of the decode table, without the first, 1; nil keeps the table
	at       []float64
	loss     float64
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

// decoding returns the number and the costs of the engines that decode, and the prefix of
// the costs' names.
func decoding(d *engine.Deployment) (engines int, costs *engine.Costs, prefix string) {
	if d.Disaggregated() {
		return d.Decode, &d.DecodeEngine.Costs, "decode-engine."
	}
	return max(d.Engines, 1), &d.Engine.Costs, ""
}

// Limits that are tried if the template leaves them open.
const (
	defaultSeqs = 1024
	manyTokens  = 1 << 17 // in a step: as good as no limit
)

// tokenBudgets are the usual limits of tokens in a step.
var tokenBudgets = []int{2048, 4096, 8192, 16384}

// deployments returns the deployments that are tried. Engines that compute prompts and
// answers have a budget of tokens for a step. Prefill engines compute one prompt at a time,
// and transfers share a link or not.
func deployments(d engine.Deployment) (all []engine.Deployment) {
	e := &d.Engine
	if !d.Disaggregated() {
		budgets, seqs := tokenBudgets, cmp.Or(e.MaxSeqs, defaultSeqs)
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

// newModel returns the model of a deployment. A refit has no costs of decoding.
func newModel(d engine.Deployment, rows []*Row, options Options) *model {
	m := &model{template: d, rows: rows, seed: options.Seed, costs: []string{"request-latency", "prefill-step", "prefill-per-token"}}
	if d.Disaggregated() {
		m.costs = []string{"request-latency", "step-base", "prefill-per-token", "transfer-per-token", "transfer-base"}
	}
	if !options.Refit {
		// The base time of a step includes the time of one sequence: no measurement
		// separates them.
		engines, _, prefix := decoding(&d)
		m.costs = append(m.costs, prefix+"step-base", prefix+"decode-per-context-token")
		m.knots = decodeKnots(rows, engines)
	}
	return m
}

// knotRatio is the least ratio of neighbouring entries of a decode table.
const knotRatio = 1.35

// decodeKnots returns the numbers of sequences for the entries of a decode table: those
// measured, without the least, which shows the base time of a step.
func decodeKnots(rows []*Row, engines int) []int {
	var batches []int
	for _, r := range rows {
		batches = append(batches, int(math.Round(r.batch(engines))))
	}
	slices.Sort(batches)
	knots := []int{batches[0]}
	for _, n := range batches {
		if float64(n) >= knotRatio*float64(knots[len(knots)-1]) {
			knots = append(knots, n)
		}
	}
	if len(knots) > 1 {
		knots[len(knots)-1] = batches[len(batches)-1] // the range that was measured is covered
	}
	return knots[1:]
}

// costAt returns the cost at a coordinate.
func costAt(coordinate float64) engine.Cost {
	return engine.Cost(math.Round(math.Exp(coordinate)))
}

// deployment returns the deployment with the costs at a point.
func (m *model) deployment(at []float64) engine.Deployment {
	d := m.template.Clone()
	for i, name := range m.costs {
		setters[name](&d, costAt(at[i]))
	}
	if m.knots != nil {
		_, costs, _ := decoding(&d)
		costs.Decode = engine.DecodeTable{{Sequences: 1}}
		for i, n := range m.knots {
			costs.Decode = append(costs.Decode, engine.BatchCost{Sequences: n, Cost: costs.Decode[i].Cost + costAt(at[len(m.costs)+i])})
		}
	}
	return d
}

// estimates returns the costs by name; an entry of the table is with step-base.
func (m *model) estimates() (all []Estimate) {
	add := func(name string, c engine.Cost) { all = append(all, Estimate{name, c, c, c}) }
	for i, name := range m.costs {
		add(name, costAt(m.at[i]))
	}
	d := m.deployment(m.at)
	_, costs, prefix := decoding(&d)
	for i, n := range m.knots {
		add(fmt.Sprintf("%sdecode-table.%d", prefix, n), costs.Step+costs.Decode[i+1].Cost)
	}
	return all
}

// missing returns how many measurements too few there are. In a closed loop throughput and
// E2E latency say the same.
func (m *model) missing() int {
	n := len(m.costs) + len(m.knots)
	for _, r := range m.rows {
		for _, metric := range []Metric{MeanTTFT, MeanTPOT, MeanE2EL} {
			if r.Values[metric] > 0 {
				n--
			}
		}
	}
	return n
}

// starts returns points to search from: near the measurements, with three ways to split the
// time of a prompt between costs that one TTFT cannot separate.
func (m *model) starts() (all [][]float64) {
	steps, prompts := []float64{}, [][]float64{} // TPOT; prompt tokens and TTFT; in ms
	for _, r := range m.rows {
		tokens, _ := r.Load.means()
		steps = append(steps, cmp.Or(r.Values[MeanTPOT], 10))
		prompts = append(prompts, []float64{max(tokens, 1), max(r.Values[MeanTTFT], 1)})
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
		if m.knots != nil {
			point = append(point, 0.97*step, step/100_000)
		}
		for range m.knots {
			point = append(point, max(most-step, 0.1*step)/float64(len(m.knots)))
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
