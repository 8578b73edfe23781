package fit

import (
	"fmt"
	"slices"
)

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
	if !r.Load.closed() {
		return
	}
	r.checkLittle()
	if len(r.Load.Requests) > 0 {
		return // of many shapes
	}
	v := r.Values
	if mean, p99 := v[MeanTTFT], v[P99TTFT]; r.Load.Concurrency == 1 && mean > 0 && p99 > aloneSpread*mean {
		r.find("cold or stalled: p99 TTFT %.4g ms is %.1f times the mean with one request in flight (limit %.1f): some requests found a cold or stalled server", p99, p99/mean, aloneSpread)
	}
	if mean, p99 := v[MeanTPOT], v[P99TPOT]; mean > 0 && p99 > tpotSpread*mean && r.Load.OSL >= longAnswer {
		r.find("uneven TPOT: p99 TPOT %.4g ms is %.1f times the mean (limit %.1f), for answers of one shape that decode together", p99, p99/mean, tpotSpread)
	}
	r.findFalling(all, MeanTPOT, "TPOT falls")
	r.findFalling(all, MeanTTFT, "cold or stalled")
}

// findFalling finds that a latency is above that of another measurement of the same shape
// with a higher concurrency.
func (r *Row) findFalling(all []Measurement, m Metric, kind string) {
	l := &r.Load
	i := slices.IndexFunc(all, func(o Measurement) bool {
		return o.Load.closed() && len(o.Load.Requests) == 0 && o.Load.ISL == l.ISL && o.Load.OSL == l.OSL &&
			o.Load.Concurrency > l.Concurrency && o.Values[m] > 0 && r.Values[m] > falling*o.Values[m]
	})
	if i >= 0 {
		r.find(kind+": %s %.4g at concurrency %d exceeds %.4g at concurrency %d", m, r.Values[m], l.Concurrency, all[i].Values[m], all[i].Load.Concurrency)
	}
}

// checkLittle compares the mean number of requests in flight by Little's law with the
// concurrency.
func (r *Row) checkLittle() {
	_, tokens := r.Load.means()
	rate, rounding := r.Values[OutputThroughput]/tokens, 0.0
	if rate == 0 {
		rate = r.Values[RequestThroughput]
		rounding = printedDecimals / max(rate, printedDecimals)
	}
	concurrency := float64(r.Load.Concurrency)
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
