package fit

import "fmt"

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
		rows[i] = Row{Measurement: m}
		rows[i].contradictions()
	}
	for i := range rows {
		rows[i].findFalling(rows, MeanTPOT, "TPOT falls")
		rows[i].findFalling(rows, MeanTTFT, "cold or stalled")
	}
	return rows
}

func (r *Row) find(kind, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{kind, fmt.Sprintf(format, args...)})
}

// contradictions finds what contradicts a measurement by itself.
func (r *Row) contradictions() {
	v := r.Values
	if r.Load.closed() {
		r.checkLittle()
	}
	if !r.Load.closed() || len(r.Load.Requests) > 0 {
		return
	}
	if mean, p99 := v[MeanTTFT], v[P99TTFT]; r.Load.Concurrency == 1 && mean > 0 && p99 > aloneSpread*mean {
		r.find("cold or stalled", "p99 TTFT %.4g ms is %.1f times the mean with one request in flight (limit %.1f): some requests found a cold or stalled server", p99, p99/mean, aloneSpread)
	}
	if mean, p99 := v[MeanTPOT], v[P99TPOT]; mean > 0 && p99 > tpotSpread*mean && r.Load.OSL >= longAnswer {
		r.find("uneven TPOT", "p99 TPOT %.4g ms is %.1f times the mean (limit %.1f), for answers of one shape that decode together", p99, p99/mean, tpotSpread)
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
	slots := float64(r.Load.prompts()) / concurrency
	least := leastLittle * slots / (slots + 1)
	switch share := inFlight / concurrency; {
	case inFlight == 0 || share <= mostLittle+rounding && share >= least-rounding:
	case share < 0.02 || share > 50:
		r.find("Little's law", "throughput x E2EL is %.3g times the concurrency %d: the latencies are not in milliseconds", share, r.Load.Concurrency)
	default:
		r.find("Little's law", "throughput x E2EL is %.3g requests in flight, %.2f of the concurrency %d (expected %.2f to %.2f): the number of prompts is wrong, or the throughput is of another run", inFlight, share, r.Load.Concurrency, least, mostLittle)
	}
}

// findFalling finds that a latency is above that of another row of the same shape with a
// higher concurrency.
func (r *Row) findFalling(rows []Row, m Metric, kind string) {
	table := func(l *Load) bool { return l.closed() && len(l.Requests) == 0 }
	for i := range rows {
		o := &rows[i]
		if table(&r.Load) && table(&o.Load) && o.Load.ISL == r.Load.ISL && o.Load.OSL == r.Load.OSL && o.Load.Concurrency > r.Load.Concurrency &&
			o.Values[m] > 0 && r.Values[m] > falling*o.Values[m] {
			r.find(kind, "%v %.4g at concurrency %d exceeds %.4g at concurrency %d", m, r.Values[m], r.Load.Concurrency, o.Values[m], o.Load.Concurrency)
			return
		}
	}
}
