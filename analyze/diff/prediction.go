package diff

import (
	"fmt"
	"math"
	"slices"
	"time"

	"moontide/analyze/run"
	"moontide/trace"
	"moontide/trace/stats"
)

// Prediction is the error of a simulated side against the measured one.
type Prediction struct {
	OfB    bool              // B is the simulated side, not A
	Errors []PredictionError // of throughput, latencies and the cached share
	// Phases divides the time of a request: until its first token it waits for
	// admission, in the queue and for its prefill; then it decodes. Their errors add
	// up to that of E2EL.
	Phases []PhaseError
	Cached CachedError
	Focus  Focus
}

// PredictionError is the error of one metric.
type PredictionError struct {
	Metric              run.Metric
	Measured, Predicted float64
	Relative            trace.Opt[float64]  // Predicted / Measured - 1; absent if Measured is not positive
	Interval            trace.Opt[Interval] // for Relative
}

// Phase is a part of the time of a request.
type Phase uint8

// The phases of a request.
const (
	UntilFirstToken Phase = iota // TTFT
	Decode                       // E2EL - TTFT: TPOT times the tokens after the first
	phases
)

// PhaseError is the error of the mean time of a phase in milliseconds.
type PhaseError struct {
	Phase               Phase
	Measured, Predicted float64
	// Share is the share of the phase in the absolute errors of TTFT and decode time,
	// summed over all requests.
	Share float64
}

// CachedError compares the cached tokens of each request.
type CachedError struct {
	Measured, Predicted float64 // tokens of all requests
	Equal, Fewer, More  int     // requests by predicted cached tokens
}

// Focus is a group of requests that has most of the error in one phase: at least
// half of the absolute errors of both phases, and more of them than of the requests.
// Where is empty if no such group stands out.
type Focus struct {
	Phase    Phase
	Share    float64 // of the absolute errors
	Requests float64 // share of the requests
	Where    []Where
}

// Where is a condition on a property of the requests.
type Where struct{ By, Band string }

// predictedMetrics are the metrics of [Prediction.Errors].
func predictedMetrics() (all []run.Metric) {
	for _, key := range []string{"request_throughput", "output_throughput", "cached_share"} {
		all = append(all, run.MustMetric(key))
	}
	for _, l := range pairedLatencies {
		for _, s := range []run.Statistic{run.Mean, run.Median, run.Percentile(99)} {
			all = append(all, l.Metric(s))
		}
	}
	return all
}

// simulation returns how far a side is from a real server: 2 in virtual time, 1 for
// an embedded endpoint, 0 for a server. The runs of the side have to agree.
func simulation(runs []*Run) (level int, ok bool) {
	of := func(r *Run) int {
		switch target := r.Run.Target; {
		case target.Virtual:
			return 2
		case target.Simulated:
			return 1
		}
		return 0
	}
	level = of(runs[0])
	return level, !slices.ContainsFunc(runs, func(r *Run) bool { return of(r) != level })
}

// predicts reports whether one side predicts the other, and whether that is B.
func predicts(a, b []*Run) (ofB, ok bool) {
	levelA, okA := simulation(a)
	levelB, okB := simulation(b)
	return levelB > levelA, okA && okB && levelA != levelB
}

// compared is a prediction in the making.
type compared struct {
	pairs
	ofB bool
}

func (c *compared) sides(p *pair) (measured, predicted *rowMeans) {
	if c.ofB {
		return &p.a, &p.b
	}
	return &p.b, &p.a
}

// prediction compares the sides of paired runs, measured and predicted.
func (c *compared) prediction(measured, predicted side, draws []weights) *Prediction {
	found := &Prediction{OfB: c.ofB, Cached: c.cached()}
	metrics := predictedMetrics()
	errors := make([]Difference, len(metrics))
	inParallel(len(metrics), func(i int) { errors[i] = difference(metrics[i], measured, predicted, draws) })
	for _, d := range errors {
		if d.Difference.Set {
			found.Errors = append(found.Errors, PredictionError{d.Metric, d.A.Value, d.B.Value, d.Relative, d.RelativeInterval})
		}
	}
	var total [phases]float64
	var times [2][phases]mean
	for i := range c.pairs.pairs {
		p := &c.pairs.pairs[i]
		m, s := c.sides(p)
		for k, size := range p.phaseErrors() {
			total[k] += size
			times[0][k].add(m.phase(Phase(k)))
			times[1][k].add(s.phase(Phase(k)))
		}
	}
	for k := range phases {
		found.Phases = append(found.Phases, PhaseError{
			Phase: k, Measured: times[0][k].value().Value, Predicted: times[1][k].value().Value,
			Share: share(total[k], total[UntilFirstToken]+total[Decode]),
		})
	}
	found.Focus = c.focus(c.properties())
	return found
}

func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// phase returns the mean time of a phase.
func (m *rowMeans) phase(phase Phase) trace.Opt[float64] {
	first, end := m.latencies[0].value(), m.latencies[2].value()
	if phase == UntilFirstToken {
		return first
	}
	return trace.Opt[float64]{Value: end.Value - first.Value, Set: first.Set && end.Set}
}

// phaseErrors returns the absolute difference of each phase.
func (p *pair) phaseErrors() (sizes [phases]float64) {
	for k := range sizes {
		a, b := p.a.phase(Phase(k)), p.b.phase(Phase(k))
		if a.Set && b.Set {
			sizes[k] = math.Abs(b.Value - a.Value)
		}
	}
	return sizes
}

func (c *compared) cached() (e CachedError) {
	for i := range c.pairs.pairs {
		m, s := c.sides(&c.pairs.pairs[i])
		measured, predicted := m.cachedTokens.value(), s.cachedTokens.value()
		if !measured.Set || !predicted.Set {
			continue
		}
		e.Measured += measured.Value
		e.Predicted += predicted.Value
		switch {
		case predicted.Value < measured.Value:
			e.Fewer++
		case predicted.Value > measured.Value:
			e.More++
		default:
			e.Equal++
		}
	}
	return e
}

// properties are those by which the errors of a prediction are divided. The [Focus]
// is in the first ones.
func (c *compared) properties() []property {
	return []property{
		c.quantiles("requests in flight when sent", func(p *pair) trace.Opt[float64] {
			measured, _ := c.sides(p)
			return measured.inFlight.value()
		}),
		c.quantiles("uncached prompt tokens", func(p *pair) trace.Opt[float64] {
			measured, predicted := c.sides(p)
			if tokens := measured.uncachedTokens.value(); tokens.Set {
				return tokens
			}
			return predicted.uncachedTokens.value()
		}),
		{
			name: "cached tokens", bands: []string{"predicted fewer", "predicted equal", "predicted more"}, bounds: []float64{0, math.SmallestNonzeroFloat64},
			of: func(p *pair) trace.Opt[float64] {
				m, s := c.sides(p)
				measured, predicted := m.cachedTokens.value(), s.cachedTokens.value()
				return trace.Opt[float64]{Value: predicted.Value - measured.Value, Set: measured.Set && predicted.Set}
			},
		},
		promptLengths(),
		c.times(),
	}
}

// quantiles divides the pairs at the quartiles of a property and at its 90th
// percentile.
func (c *compared) quantiles(name string, of func(p *pair) trace.Opt[float64]) property {
	var values []float64
	for i := range c.pairs.pairs {
		if v := of(&c.pairs.pairs[i]); v.Set {
			values = append(values, v.Value)
		}
	}
	sample := stats.Of(values)
	var limits []float64
	for _, q := range []float64{0.25, 0.5, 0.75, 0.9} {
		if limit := math.Round(sample.Quantile(q)); limit < sample.Max {
			limits = append(limits, limit)
		}
	}
	limits = slices.Compact(limits)
	by := property{name: name, of: of, bands: []string{"all"}, limits: limits}
	if len(limits) == 0 {
		return by
	}
	by.bands[0] = upTo(limits[0])
	for i, limit := range limits {
		by.bounds = append(by.bounds, math.Nextafter(limit, math.Inf(1)))
		if i+1 < len(limits) {
			by.bands = append(by.bands, fmt.Sprintf("above %.0f to %.0f", limit, limits[i+1]))
		}
	}
	by.bands = append(by.bands, above(limits[len(limits)-1]))
	return by
}

func upTo(limit float64) string  { return fmt.Sprintf("up to %.0f", limit) }
func above(limit float64) string { return fmt.Sprintf("above %.0f", limit) }

// inFlight holds the times at which requests were sent and ended, each in order.
type inFlight struct{ sent, ended []time.Duration }

func inFlightOf(requests []request) (f inFlight) {
	for i := range requests {
		if q := &requests[i]; q.WasSent {
			f.sent, f.ended = append(f.sent, q.Sent), append(f.ended, q.end)
		}
	}
	slices.Sort(f.sent)
	slices.Sort(f.ended)
	return f
}

// at returns the number of requests in flight just after a time.
func (f inFlight) at(t time.Duration) int {
	until := func(times []time.Duration) int {
		i, _ := slices.BinarySearch(times, t+1)
		return i
	}
	return until(f.sent) - until(f.ended)
}
