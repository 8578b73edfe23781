package bench

import (
	"fmt"
	"math"
	"slices"
	"time"

	"moontide/trace"
	"moontide/trace/stats"
)

// EngineRun is a run of a plan whose runs together identify the costs of an engine.
// All of its prompts are different.
type EngineRun struct {
	Leg
	ISL, OSL int
	// Spread is the share by which the lengths of requests differ from ISL and OSL, up
	// and down.
	Spread float64
	// Shows names what the run identifies.
	Shows    string
	Expected time.Duration
}

// EngineLimits bounds the runs of a plan.
type EngineLimits struct {
	ISL         int // longest prompt
	Concurrency int // most requests in flight
	KVTokens    int // size of the KV cache of all engines in tokens; 0 is unknown
	Budget      time.Duration
}

// EngineProbe is what the runs of [ProbeRuns] measured.
type EngineProbe struct {
	ShortTTFT, LongTTFT time.Duration // of one request at a time, with shortISL and the longest prompt
	TPOT, BatchTPOT     time.Duration // with one request and probeBatch requests in flight
}

// ProbePrefix begins the names of the runs of [ProbeRuns].
const ProbePrefix = "probe-"

const (
	shortISL   = 64
	probeBatch = 16
	probeOSL   = 16
	fewTokens  = 4 // OSL of runs about prompts
	// The run at a rate has so many requests, and so many in flight on average.
	randomPrompts  = 40
	randomInFlight = 0.5
	// perRun is the time of a run without its requests: connecting, probing, reports.
	perRun = time.Second
)

// ProbeRuns returns the short runs that a plan is made from, in the order of the
// fields of [EngineProbe].
func ProbeRuns(l EngineLimits) []EngineRun {
	return []EngineRun{
		engineRun(ProbePrefix+"short", shortISL, probeOSL, 1, 3),
		engineRun(ProbePrefix+"long", l.ISL, fewTokens, 1, 2),
		engineRun(ProbePrefix+"batch", shortISL, probeOSL, min(probeBatch, l.Concurrency), 2*min(probeBatch, l.Concurrency)),
	}
}

func engineRun(name string, isl, osl, concurrency, prompts int) EngineRun {
	return EngineRun{ISL: isl, OSL: osl, Leg: Leg{Name: name, Axis: Concurrency, Level: float64(concurrency), Prompts: prompts, MaxConcurrency: concurrency}}
}

// Requests returns the requests of the run: the same at each call.
func (r EngineRun) Requests() trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		next, sent := uint64(1), 0.0
		random := stats.NewStream(0, r.Name)
		start := random.Float64()
		for i := range r.Prompts {
			// Multiples of the golden ratio are evenly spread, in an order without pattern.
			_, at := math.Modf(start + float64(i)*math.Phi)
			lengthen := func(n int, at float64) int { return max(1, int(math.Round(float64(n)*(1+r.Spread*(2*at-1))))) }
			_, other := math.Modf(at + 0.5)
			row := trace.Request{Timestamp: trace.Some(sent), InputLength: lengthen(r.ISL, at), OutputLength: lengthen(r.OSL, other)}
			for range (row.InputLength + engineRunBlock - 1) / engineRunBlock {
				row.HashIDs = append(row.HashIDs, next)
				next++
			}
			if !yield(row, nil) {
				return
			}
			if r.Axis == Rate {
				sent += 1000 / r.Level * random.ExpFloat64()
			}
		}
	}
}

// engineRunBlock is the block size of the runs' traces in tokens.
const engineRunBlock = 512

// Trace returns the trace of the run.
func (r EngineRun) Trace() Trace {
	return Trace{Name: r.Name + ".jsonl", Requests: r.Requests(), BlockSize: engineRunBlock}
}

// planSizes lists sizes of plans, best first: the OSL of runs about decoding, how many
// times each slot is used, and the most requests in flight.
var planSizes = []struct{ osl, reuse, concurrency int }{
	{512, 4, 1 << 20}, {256, 4, 1 << 20}, {256, 3, 1 << 20}, {128, 3, 1 << 20}, {128, 2, 1 << 20}, {64, 2, 1 << 20},
	{128, 2, 64}, {64, 2, 64}, {64, 2, 32}, {32, 2, 32}, {32, 2, 16}, {32, 2, 8},
}

// Check returns an error if runs within the limits cannot identify the costs.
func (l EngineLimits) Check() error {
	if l.ISL < 4*shortISL || l.Concurrency < 4 {
		return fmt.Errorf("planning runs: prompts of %d tokens and %d requests in flight are too few: at least %d and 4", l.ISL, l.Concurrency, 4*shortISL)
	}
	return nil
}

// PlanEngineRuns plans the runs that identify the costs of an engine: single requests
// of three prompt lengths for the cost of prompts and the latency, a sweep of long
// answers for the decode table, prompts among decoding requests, two context lengths at
// a high batch, a saturated run of long prompts, requests that arrive at random on a
// server that is mostly idle, and a load like those to predict. The sizes are the largest
// whose expected time is within the budget.
func PlanEngineRuns(p EngineProbe, l EngineLimits) ([]EngineRun, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	var expected time.Duration
	for _, size := range planSizes {
		runs := l.runs(p, size.osl, size.reuse, min(l.Concurrency, size.concurrency))
		expected = 0
		for i := range runs {
			runs[i].Expected = p.expected(runs[i], l.ISL)
			expected += runs[i].Expected
		}
		if expected <= l.Budget {
			return runs, nil
		}
	}
	return nil, fmt.Errorf("planning runs: the smallest plan takes about %v, more than the budget of %v", expected.Round(time.Second), l.Budget)
}

// inFlight returns how many requests of some length the KV cache holds, at most n.
func (l EngineLimits) inFlight(n, tokens int) int {
	if l.KVTokens > 0 {
		n = min(n, l.KVTokens*9/10/tokens)
	}
	return max(n, 1)
}

// runs returns the plan of one size.
func (l EngineLimits) runs(p EngineProbe, osl, reuse, most int) []EngineRun {
	shown := func(shows string, r EngineRun) EngineRun {
		r.Shows = shows
		return r
	}
	middle := geometricMean(shortISL, l.ISL)
	runs := []EngineRun{
		shown("prefill cost", engineRun("prompt-long", l.ISL, fewTokens, 1, 4)),
		shown("request latency, prefill cost", engineRun("prompt-middle", middle, fewTokens, 1, 6)),
	}
	most = l.inFlight(most, shortISL+osl)
	levels := slices.DeleteFunc([]int{1, 2, 8, 32}, func(n int) bool { return n >= most })
	for _, n := range append(levels, most) {
		decode := shown("decode time of a batch", engineRun(fmt.Sprintf("decode-%d", n), shortISL, osl, n, max(reuse*n, 4)))
		decode.Spread = 0.3 // requests of equal lengths would end and begin together
		runs = append(runs, decode)
	}
	// Prompts of different lengths arrive while other requests decode: what their steps
	// cost beyond the prompts shows in the TPOT, unlike the latency.
	few, longer := min(8, most), geometricMean(middle, l.ISL)
	some := l.inFlight(min(16, most), 2*(longer+osl))
	for _, mixed := range []EngineRun{
		engineRun(fmt.Sprintf("mixed-%d", few), middle, probeOSL, few, 8*few),
		engineRun(fmt.Sprintf("mixed-long-%d", some), longer, max(probeOSL, osl/4), some, 4*some),
	} {
		mixed.Spread = 0.5
		runs = append(runs, shown("cost of steps with prompts", mixed))
	}
	n := min(l.inFlight(most, l.ISL+osl), 32)
	crowd := min(n, 16)
	runs = append(runs,
		shown("context cost", engineRun(fmt.Sprintf("context-%d", n), l.ISL, osl, n, reuse*n)),
		shown("saturated prefill", engineRun(fmt.Sprintf("prompts-%d", crowd), l.ISL, fewTokens, crowd, reuse*crowd)))
	random := shown("latency on an idle server", engineRun("random", longer, probeOSL, 0, randomPrompts))
	random.Axis, random.Level, random.Spread = Rate, p.idleRate(random, l.ISL), 0.5
	runs = append(runs, random)
	held := l.inFlight(max(2, geometricMean(1, most)), 2*(middle+osl))
	last := shown("a load like those to predict", engineRun("all-together", middle, osl, held, max(reuse*held, 10)))
	last.Spread = 0.5
	return append(runs, last)
}

func geometricMean(a, b int) int { return int(math.Sqrt(float64(a) * float64(b))) }

// expected estimates the time of a run: prompts one after another, then tokens at the
// batch's TPOT, which grows in proportion beyond the probed batch.
func (p EngineProbe) expected(r EngineRun, long int) time.Duration {
	if r.Axis == Rate {
		return perRun + time.Duration(float64(r.Prompts)/r.Level*float64(time.Second))
	}
	prompt := float64(p.prompt(r.ISL, long))
	slope := float64(max(p.BatchTPOT-p.TPOT, 0)) / (probeBatch - 1)
	token := float64(p.TPOT) + slope*float64(r.MaxConcurrency-1)
	rounds := float64(r.Prompts) / float64(r.MaxConcurrency)
	return perRun + time.Duration(float64(r.Prompts)*prompt+rounds*float64(r.OSL)*token)
}

// prompt returns the TTFT of a prompt alone, by the shortest and the longest.
func (p EngineProbe) prompt(isl, long int) time.Duration {
	perToken := float64(max(p.LongTTFT-p.ShortTTFT, 0)) / float64(long-shortISL)
	return max(p.ShortTTFT+time.Duration(perToken*float64(isl-shortISL)), 0)
}

// idleRate returns the rate, in requests per second, at which a server is mostly idle.
func (p EngineProbe) idleRate(r EngineRun, long int) float64 {
	e2el := p.prompt(r.ISL, long) + time.Duration(r.OSL-1)*p.TPOT
	return math.Round(1000*randomInFlight/max(e2el.Seconds(), 1e-3)) / 1000
}
