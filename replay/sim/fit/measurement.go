package fit

import (
	"cmp"
	"fmt"
	"slices"
)

// Measurement is a load and what was measured under it.
type Measurement struct {
	Name       string // in messages, such as a run's folder or "line 7"
	Deployment string // that was measured, if a table holds several
	Load       Load
	Values     Values
}

// Metric is the key of a measured value in the summary of a run.
type Metric string

// The metrics that are fitted or compared, with their units.
const (
	RequestThroughput Metric = "request_throughput" // requests/s
	OutputThroughput  Metric = "output_throughput"  // tokens/s
	MeanE2EL          Metric = "mean_e2el_ms"
	P99E2EL           Metric = "p99_e2el_ms"
	MeanTTFT          Metric = "mean_ttft_ms"
	P99TTFT           Metric = "p99_ttft_ms"
	MeanTPOT          Metric = "mean_tpot_ms" // of requests with more than one output token
	P99TPOT           Metric = "p99_tpot_ms"
)

// Metrics lists the metrics.
var Metrics = []Metric{RequestThroughput, OutputThroughput, MeanE2EL, P99E2EL, MeanTTFT, P99TTFT, MeanTPOT, P99TPOT}

// Values holds values by metric. What was not measured is missing or 0.
type Values map[Metric]float64

// Row is a measurement beside its predictions.
type Row struct {
	Measurement
	Findings  []string // of the screening, such as "Little's law: ..."; a row with one is not fitted
	Predicted Values   // nil if it is not fitted
	HeldOut   []Values // predictions by fits without its shape, and without its load
}

// Error returns the relative error of a prediction of a metric, or false if it was not
// measured or not predicted.
func (r *Row) Error(predicted Values, m Metric) (relative float64, ok bool) {
	if r.Values[m] == 0 || predicted[m] == 0 {
		return 0, false
	}
	return predicted[m]/r.Values[m] - 1, true
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

// Limits of the screening. Closed loops of published tables that can be predicted to a
// few percent keep them.
const (
	mostLittle      = 1.03  // requests in flight over the concurrency
	leastLittle     = 0.95  // times what filling and draining the loop leaves
	falling         = 1.1   // TPOT or TTFT over that at a higher concurrency
	aloneSpread     = 1.5   // p99 over mean TTFT with one request in flight
	tpotSpread      = 1.6   // p99 over mean TPOT
	longAnswer      = 32    // OSL from which prompts that interrupt an answer hardly show in its TPOT
	printedDecimals = 0.005 // half of the last digit of a request throughput
)

// Screen returns the measurements with what contradicts them: laws that hold whatever
// the server is.
func Screen(measurements []Measurement) []Row {
	rows := make([]Row, len(measurements))
	for i, m := range measurements {
		rows[i].Measurement = m
		rows[i].screen(measurements)
	}
	return rows
}

func (r *Row) find(format string, args ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
}

// screen finds what contradicts a closed loop, by itself and beside others.
func (r *Row) screen(all []Measurement) {
	l, v := &r.Load, r.Values
	if !l.closed() {
		return
	}
	r.checkLittle()
	if len(l.Requests) > 0 {
		return // of many shapes
	}
	if mean, p99 := v[MeanTTFT], v[P99TTFT]; l.Concurrency == 1 && mean > 0 && p99 > aloneSpread*mean {
		r.find("cold or stalled: p99 TTFT %.4g ms is %.1f times the mean with one request in flight (limit %.1f): some requests found a cold or stalled server", p99, p99/mean, aloneSpread)
	}
	if mean, p99 := v[MeanTPOT], v[P99TPOT]; mean > 0 && p99 > tpotSpread*mean && l.OSL >= longAnswer {
		r.find("uneven TPOT: p99 TPOT %.4g ms is %.1f times the mean (limit %.1f), for answers of one shape that decode together", p99, p99/mean, tpotSpread)
	}
	for _, m := range []Metric{MeanTPOT, MeanTTFT} {
		i := slices.IndexFunc(all, func(o Measurement) bool {
			return o.Load.closed() && len(o.Load.Requests) == 0 && o.Load.ISL == l.ISL && o.Load.OSL == l.OSL &&
				o.Load.Concurrency > l.Concurrency && o.Values[m] > 0 && v[m] > falling*o.Values[m]
		})
		if i >= 0 {
			r.find("falls with concurrency: %s is %.4g at %d and %.4g at %d: a cold or stalled server", m, v[m], l.Concurrency, all[i].Values[m], all[i].Load.Concurrency)
		}
	}
}

// checkLittle compares the mean number of requests in flight by Little's law with the
// concurrency.
func (r *Row) checkLittle() {
	concurrency, rounding := float64(r.Load.Concurrency), 0.0
	rate := r.Values[OutputThroughput] / cmp.Or(r.Load.MeanOutput, float64(r.Load.OSL))
	if rate == 0 {
		rate = r.Values[RequestThroughput]
		rounding = printedDecimals / max(rate, printedDecimals)
	}
	inFlight := rate * r.Values[MeanE2EL] / 1000
	slots := float64(len(r.Load.requests(0))) / concurrency
	least := leastLittle * slots / (slots + 1)
	switch share := inFlight / concurrency; {
	case inFlight == 0 || share <= mostLittle+rounding && share >= least-rounding:
	case share < 0.02 || share > 50:
		r.find("Little's law: throughput x E2EL is %.3g times the concurrency %d: the latencies are not in milliseconds", share, r.Load.Concurrency)
	default:
		r.find("Little's law: throughput x E2EL is %.3g requests in flight, %.2f of the concurrency %d (expected %.2f to %.2f): the number of prompts is wrong, or the throughput is of another run", inFlight, share, r.Load.Concurrency, least, mostLittle)
	}
}
