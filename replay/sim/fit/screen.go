package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Limits of the screening. Closed loops of published tables that can be predicted to a
// few percent keep them.
const (
	mostLittle     = 1.03 // requests in flight over the concurrency
	leastLittle    = 0.95 // times what filling and draining the loop leaves
	tokenTolerance = 0.05 // tokens by throughput against those by latency
	fallingTPOT    = 1.1  // TPOT over that at a higher concurrency
	fallingTTFT    = 1.1  // TTFT over that at a higher concurrency
	aloneSpread    = 1.5  // p99 over mean TTFT with one request in flight
	tpotSpread     = 1.6  // p99 over mean TPOT
	// longAnswer is the OSL from which prompts that interrupt an answer hardly show in its
	// TPOT.
	longAnswer      = 32
	mostExcluded    = 1. / 3
	printedDecimals = 0.005 // half of the last digit of a request throughput
)

// Screen returns the measurements with what contradicts them: laws that hold whatever
// the server is. Rows with a finding that excludes them have the role Excluded.
func Screen(measurements []Measurement) []Row {
	rows := make([]Row, len(measurements))
	for i, m := range measurements {
		rows[i] = Row{Measurement: m, Findings: m.contradictions()}
	}
	findDuplicates(rows)
	for _, group := range shapes(rows) {
		findFalling(rows, group, MeanTPOT, fallingTPOT, "TPOT falls")
		findFalling(rows, group, MeanTTFT, fallingTTFT, "cold or stalled")
	}
	for i := range rows {
		if slices.ContainsFunc(rows[i].Findings, func(f Finding) bool { return f.Excludes }) {
			rows[i].Role = Excluded
		}
	}
	return rows
}

// contradictions returns what contradicts a measurement by itself.
func (m Measurement) contradictions() (all []Finding) {
	exclude := func(kind, format string, args ...any) {
		all = append(all, Finding{kind, fmt.Sprintf(format, args...), true})
	}
	v := m.Values
	for _, pair := range [][2]Metric{{MeanE2EL, P99E2EL}, {MeanTTFT, P99TTFT}, {MeanTPOT, P99TPOT}} {
		if mean, p99 := v[pair[0]], v[pair[1]]; p99 > 0 && p99 < 0.995*mean {
			exclude("p99 below mean", "%v %.6g is below %v %.6g", pair[1], p99, pair[0], mean)
		}
	}
	tokens := m.Load.meanOutput()
	if m.Load.closed() {
		if inFlight, rounding := m.inFlight(tokens); inFlight > 0 {
			share, slots := inFlight/float64(m.Load.Concurrency), float64(m.Load.prompts())/float64(m.Load.Concurrency)
			least := leastLittle * slots / (slots + 1)
			if share > mostLittle+rounding || share < least-rounding {
				exclude("Little's law", "throughput x E2EL is %.3g requests in flight, %.2f of the concurrency %d (expected %.2f to %.2f): the number of prompts is wrong, or the throughput is of another run", inFlight, share, m.Load.Concurrency, least, mostLittle)
			}
		}
	}
	if v[MeanTTFT] > 0 && v[MeanE2EL] > 0 && v[MeanTPOT] > 0 {
		parts := v[MeanTTFT] + (tokens-1)*v[MeanTPOT]
		if ratio := parts / v[MeanE2EL]; math.Abs(ratio-1) > tokenTolerance {
			exclude("E2EL", "TTFT + %.4g x TPOT is %.4g ms and E2EL %.4g ms", tokens-1, parts, v[MeanE2EL])
		}
	}
	if x := v[RequestThroughput]; x > 0 && v[OutputThroughput] > 0 {
		if ratio := v[OutputThroughput] / (x * tokens); math.Abs(ratio-1) > tokenTolerance+printedDecimals/x {
			exclude("tokens", "output throughput / request throughput is %.4g tokens, the answers have %.4g", v[OutputThroughput]/x, tokens)
		}
	}
	if !m.Load.closed() || len(m.Load.Requests) > 0 {
		return all
	}
	if mean, p99 := v[MeanTTFT], v[P99TTFT]; m.Load.Concurrency == 1 && mean > 0 && p99 > aloneSpread*mean {
		exclude("cold or stalled", "p99 TTFT %.4g ms is %.1f times the mean with one request in flight (limit %.1f): some requests found a cold or stalled server", p99, p99/mean, aloneSpread)
	}
	if mean, p99 := v[MeanTPOT], v[P99TPOT]; mean > 0 && p99 > tpotSpread*mean && m.Load.OSL >= longAnswer {
		exclude("uneven TPOT", "p99 TPOT %.4g ms is %.1f times the mean (limit %.1f), for answers of one shape that decode together", p99, p99/mean, tpotSpread)
	}
	return all
}

// inFlight returns the mean number of requests in flight by Little's law, and the
// relative error that printing the throughput may have caused.
func (m Measurement) inFlight(tokens float64) (inFlight, rounding float64) {
	seconds := m.Values[MeanE2EL] / 1000
	if m.Values[OutputThroughput] > 0 {
		return m.Values[OutputThroughput] / tokens * seconds, 0
	}
	rate := m.Values[RequestThroughput]
	return rate * seconds, printedDecimals / max(rate, printedDecimals)
}

// shapes returns the indices of closed loops by shape, in order of concurrency.
func shapes(rows []Row) [][]int {
	byShape := map[[2]int][]int{}
	var order [][2]int
	for i, r := range rows {
		if !r.Load.closed() || len(r.Load.Requests) > 0 {
			continue
		}
		shape := [2]int{r.Load.ISL, r.Load.OSL}
		if byShape[shape] == nil {
			order = append(order, shape)
		}
		byShape[shape] = append(byShape[shape], i)
	}
	var groups [][]int
	for _, shape := range order {
		group := byShape[shape]
		slices.SortStableFunc(group, func(a, b int) int { return cmp.Compare(rows[a].Load.Concurrency, rows[b].Load.Concurrency) })
		groups = append(groups, group)
	}
	return groups
}

// findFalling finds rows in which a latency is above that at a higher concurrency.
func findFalling(rows []Row, group []int, m Metric, limit float64, kind string) {
	for k, i := range group {
		value := rows[i].Values[m]
		for _, j := range group[k+1:] {
			higher := rows[j].Values[m]
			if higher > 0 && value > limit*higher && rows[j].Load.Concurrency > rows[i].Load.Concurrency {
				reason := fmt.Sprintf("%v %.4g at concurrency %d exceeds %.4g at concurrency %d", m, value, rows[i].Load.Concurrency, higher, rows[j].Load.Concurrency)
				rows[i].Findings = append(rows[i].Findings, Finding{kind, reason, true})
				break
			}
		}
	}
}

// findDuplicates finds rows of tables that repeat all values of another. Recorded runs
// may be equal, if what they measured is a simulation.
func findDuplicates(rows []Row) {
	seen := map[Values]int{}
	for i, r := range rows {
		if len(r.Load.Requests) > 0 {
			continue
		}
		if first, again := seen[r.Values]; again && r.Load.Concurrency == rows[first].Load.Concurrency && r.Load.ISL == rows[first].Load.ISL {
			rows[i].Findings = append(rows[i].Findings, Finding{"duplicate", "the same values as " + rows[first].Name, true})
			continue
		}
		seen[r.Values] = i
	}
}
