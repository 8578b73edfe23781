package fit

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"moontide/replay/sim/engine"
)

// batch returns about the most sequences that an engine decodes at once: in a closed
// loop those in flight, else by Little's law the rate of requests times the time that
// each decodes.
func (m Measurement) batch(engines int) float64 {
	if m.Load.closed() {
		return max(1, float64(m.Load.Concurrency)/float64(engines))
	}
	rate := m.Values[RequestThroughput]
	if tokens := m.Load.meanOutput(); m.Values[OutputThroughput] > 0 && tokens > 0 {
		rate = m.Values[OutputThroughput] / tokens // printed with more digits
	}
	decoding := m.Values[MeanE2EL] - m.Values[MeanTTFT]
	if rate == 0 || decoding <= 0 {
		return float64(m.Load.Concurrency) / float64(engines)
	}
	return rate * decoding / 1000 / float64(engines)
}

// knotRatio is the least ratio of neighbouring entries of a decode table.
const knotRatio = 1.35

// decodeKnots returns the numbers of sequences for the entries of a decode table:
// those measured, from 1.
func decodeKnots(rows []Measurement, engines int) []int {
	var batches []float64
	for _, m := range rows {
		batches = append(batches, m.batch(engines))
	}
	slices.Sort(batches)
	knots := []int{1}
	for i, b := range batches {
		n := int(math.Round(b))
		last := knots[len(knots)-1]
		switch {
		case float64(n) >= knotRatio*float64(last):
			knots = append(knots, n)
		case i == len(batches)-1 && n > last && last > 1:
			knots[len(knots)-1] = n // the range that was measured is covered
		}
	}
	return knots
}

// engines returns the number of engines that decode.
func engines(d engine.Deployment) int {
	if d.Disaggregated() {
		return d.Decode
	}
	return max(d.Engines, 1)
}

// firstGuess returns a deployment with costs near those of the measurements.
func firstGuess(template engine.Deployment, linkBound bool, rows []Measurement) engine.Deployment {
	d := template
	step := math.Inf(1) // all in ms
	for _, m := range rows {
		if tpot := m.Values[MeanTPOT]; tpot > 0 {
			step = min(step, tpot)
		}
	}
	if math.IsInf(step, 1) {
		step = 10
	}
	fixed, perToken := firstTokenLine(rows)
	decode := engine.Costs{Step: inMilliseconds(0.97 * step)}
	decode.Decode, decode.ContextToken = guessTable(rows, engines(d), step)
	if !d.Disaggregated() {
		rest := max(fixed-step, 0.05*step) / 2
		d.Latency = inMilliseconds(rest).Duration()
		d.Engine.Costs = decode
		d.Engine.Costs.PrefillStep, d.Engine.Costs.PrefillToken = inMilliseconds(rest), inMilliseconds(perToken)
		return d
	}
	serial, serialToken := serialLine(rows, d.Prefill, fixed, perToken)
	rest := max(fixed-serial, 0.1*serial) / 2
	d.Latency = inMilliseconds(rest).Duration()
	d.Engine.Costs = engine.Costs{Step: inMilliseconds(serial), PrefillToken: inMilliseconds(serialToken)}
	d.Transfer.Base, d.Transfer.PerToken = inMilliseconds(rest).Duration(), inMilliseconds(0.05*serialToken)
	if linkBound {
		d.Engine.Costs = engine.Costs{Step: inMilliseconds(rest), PrefillToken: inMilliseconds(max(perToken-serialToken, 0.2*serialToken))}
		d.Transfer.Base, d.Transfer.PerToken = inMilliseconds(serial).Duration(), inMilliseconds(serialToken)
	}
	own := cmp.Or(d.DecodeEngine, &engine.Config{MaxSeqs: defaultSeqs, MaxBatchedTokens: manyTokens, BlockSize: d.Engine.BlockSize, KVBlocks: d.Engine.KVBlocks, MaxModelLen: d.Engine.MaxModelLen})
	copied := *own
	copied.Costs = decode
	d.DecodeEngine = &copied
	return d
}

// longestPrompt returns the most prompt tokens that a request of the measurements
// computes, on average in measurements of lengths that are not known singly.
func longestPrompt(rows []Measurement) (longest int) {
	for _, m := range rows {
		longest = max(longest, int(m.Load.meanComputed()))
		for _, r := range m.Load.Requests {
			longest = max(longest, r.Input-r.CachedInput)
		}
	}
	return longest
}

// firstTokenLine fits a line to the mean TTFT, in ms, over the prompt tokens of the
// measurements with the least concurrency of each length.
func firstTokenLine(rows []Measurement) (fixed, perToken float64) {
	least := map[int]Measurement{}
	for _, m := range rows {
		isl := int(m.Load.meanComputed())
		if before, found := least[isl]; m.Values[MeanTTFT] > 0 && (!found || m.Load.Concurrency < before.Load.Concurrency) {
			least[isl] = m
		}
	}
	var short, long Measurement
	for _, m := range least {
		if short.Values[MeanTTFT] == 0 || m.Load.meanComputed() < short.Load.meanComputed() {
			short = m
		}
		if long.Values[MeanTTFT] == 0 || m.Load.meanComputed() > long.Load.meanComputed() {
			long = m
		}
	}
	ttft, isl := short.Values[MeanTTFT], max(short.Load.meanComputed(), 1)
	perToken = (long.Values[MeanTTFT] - ttft) / max(long.Load.meanComputed()-isl, 1)
	if perToken <= 0 || perToken > 0.9*ttft/isl {
		perToken = 0.6 * ttft / isl
	}
	return ttft - perToken*isl, perToken
}

// serialLine fits a line to the time, in ms, that a prompt takes of a prefill engine
// or its link when many wait: the prompts of a whole closed loop arrive at once, and the
// last of them wait for all others. Without such measurements it returns that of first
// tokens.
func serialLine(rows []Measurement, prefillEngines int, fixed, perToken float64) (serial, serialToken float64) {
	most := map[int]Measurement{}
	for _, m := range rows {
		isl := int(m.Load.meanComputed())
		if m.Values[P99TTFT] > 0 && m.Load.Concurrency >= 8*prefillEngines && m.Load.Concurrency > most[isl].Load.Concurrency {
			most[isl] = m
		}
	}
	var n, sumX, sumY, sumXX, sumXY float64
	for _, isl := range slices.Sorted(maps.Keys(most)) {
		m := most[isl]
		x, y := float64(isl), m.Values[P99TTFT]*float64(prefillEngines)/float64(m.Load.Concurrency)
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	switch {
	case n == 0:
		return max(0.5*fixed, 0.1*perToken*sumX), perToken
	case n > 1:
		serialToken = (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	}
	if serialToken <= 0 || serialToken > sumY/sumX {
		serialToken = 0.7 * sumY / sumX
	}
	return max((sumY-serialToken*sumX)/n, 0.05*sumY/n), serialToken
}

// guessTable returns a decode table in which longer contexts take a tenth of the
// time, and the cost of a token of the context.
func guessTable(rows []Measurement, engines int, step float64) (table engine.DecodeTable, contextToken engine.Cost) {
	knots := decodeKnots(rows, engines)
	largest := step
	for _, m := range rows {
		if m.Load.meanOutput() >= 0.3*m.Load.meanComputed() {
			largest = max(largest, m.Values[MeanTPOT])
		}
	}
	smooth := func(n int) float64 { // a concave curve from step to largest
		return max(largest-step, 0.3*step) * math.Pow(float64(n)/float64(knots[len(knots)-1]), 0.7)
	}
	before, knotBefore := step, 1
	for _, knot := range knots {
		if knot == 1 {
			table = engine.DecodeTable{{Sequences: 1}}
			continue
		}
		nearest := slices.MinFunc(rows, func(a, b Measurement) int {
			distance := func(m Measurement) float64 {
				// Prefill disturbs long prompts with short answers most.
				return math.Abs(math.Log(max(m.batch(engines), 0.1)/float64(knot))) + 0.05*m.Load.meanComputed()/m.Load.meanOutput()
			}
			return cmp.Compare(distance(a), distance(b))
		})
		tpot := max(nearest.Values[MeanTPOT], before)
		last := &table[len(table)-1]
		table = append(table, engine.BatchCost{Sequences: knot, Cost: last.Cost + inMilliseconds(max(0.9*(tpot-before), 0.5*(smooth(knot)-smooth(knotBefore))))})
		before, knotBefore = tpot, knot
		context := float64(knot) * (nearest.Load.meanComputed() + nearest.Load.meanOutput()/2)
		contextToken = inMilliseconds(0.1 * tpot / context)
	}
	return table, max(contextToken, bounds["decode-per-context-token"][0])
}

func inMilliseconds(ms float64) engine.Cost {
	return engine.Cost(math.Round(ms * float64(engine.Millisecond)))
}
