package fit

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"moontide/replay/sim/engine"
	"moontide/trace"
	"moontide/trace/stats"
)

// Load describes the requests of a measurement: of a fixed shape in a closed loop
// (Concurrency) or at a rate (Rate, with or without Concurrency), or those of a
// recorded run (Requests, with or without Concurrency).
type Load struct {
	ISL, OSL   int     // tokens of a prompt, and the most of an answer; of a recorded run the means
	MeanOutput float64 // mean tokens of an answer if some stop before OSL; 0 is OSL
	// Concurrency limits the requests in flight; 0 is no limit. Without Rate and
	// Requests all prompts wait for a slot from the start: a closed loop.
	Concurrency int
	Rate        float64   // requests sent per second, with exponential gaps
	Prompts     int       // number of requests; 0 is [PromptsPerSlot]
	Requests    []Request // those of a recorded run, in order of arrival
}

// PromptsPerSlot is the assumed number of prompts per slot of a closed loop whose
// number of prompts is unknown.
const PromptsPerSlot = 10

// Request is a request of a load.
type Request struct {
	Arrival     time.Duration // since the start; 0 for all in a closed loop
	Input       int           // prompt tokens
	Output      int           // tokens of the answer
	CachedInput int           // prompt tokens that the server found in its prefix cache
}

// String returns the shape and its intensity, such as "3000:150 at 16".
func (l Load) String() string {
	switch {
	case len(l.Requests) > 0:
		return fmt.Sprintf("%d recorded requests", len(l.Requests))
	case l.Rate > 0:
		return fmt.Sprintf("%d:%d at %g/s", l.ISL, l.OSL, l.Rate)
	}
	return fmt.Sprintf("%d:%d at %d", l.ISL, l.OSL, l.Concurrency)
}

// closed reports whether a load is a closed loop.
func (l Load) closed() bool {
	return l.Concurrency > 0 && l.Rate == 0 && (len(l.Requests) == 0 || l.Requests[len(l.Requests)-1].Arrival == 0)
}

// requests returns the requests of a load. The same seed gives the same requests.
func (l Load) requests(seed uint64) []Request {
	if len(l.Requests) > 0 {
		return l.Requests
	}
	all := make([]Request, cmp.Or(l.Prompts, PromptsPerSlot*max(l.Concurrency, 1)))
	random := rand.New(rand.NewPCG(seed, 0x666974)) // "fit"
	lengths := answerLengths(len(all), l.OSL, l.MeanOutput)
	random.Shuffle(len(lengths), func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	at := 0.0
	for i := range all {
		all[i] = Request{Input: l.ISL, Output: lengths[i]}
		if l.Rate > 0 {
			all[i].Arrival = time.Duration(at * float64(time.Second))
			at += random.ExpFloat64() / l.Rate
		}
	}
	return all
}

// answerLengths returns n lengths with a mean: some reach the limit, the others stop
// anywhere before it, evenly spread. So few answers stop early where the mean is close
// to the limit, and most requests of a closed loop stay in step.
func answerLengths(n, limit int, mean float64) []int {
	top, count := float64(limit), float64(n)
	if mean <= 0 || mean > top {
		mean = top
	}
	if mean < top/2 {
		top = max(2*mean-1, 1) // no answer reaches the limit
	}
	early := min(math.Ceil(2*(1-mean/top)*count-1e-9), count)
	least := 2*(mean*count-top*(count-early))/early - top // makes up for rounding early
	lengths, rest := make([]int, n), 0.0
	for i := range lengths {
		length := top
		if float64(i) < early {
			length = least + (top-least)*(float64(i)+0.5)/early
		}
		length += rest
		lengths[i] = int(min(max(math.Round(length), 1), float64(limit)))
		rest = length - float64(lengths[i])
	}
	return lengths
}

// flight is a request that is simulated.
type flight struct {
	engine.Request
	sent, first, last time.Duration
}

// Simulate returns the metrics of a load on a deployment. The seed selects the order of
// lengths and the arrivals. Prompts share nothing but the tokens that are recorded as
// cached.
func Simulate(d engine.Deployment, l Load, seed uint64) (Values, error) {
	requests := l.requests(seed)
	cluster, err := d.NewCoarse()
	if err != nil {
		return nil, err
	}
	flights := make([]flight, len(requests))
	var events []engine.Event
	for now, sent, ended := time.Duration(0), 0, 0; ended < len(flights); {
		waits := sent < len(flights) && (l.Concurrency == 0 || sent-ended < l.Concurrency)
		if waits && requests[sent].Arrival <= now {
			f := &flights[sent]
			prompt := engine.UniquePrompt(requests[sent].Input, requests[sent].CachedInput, cluster.BlockSize())
			f.sent, f.Request = now, engine.Request{Prompt: prompt, Output: requests[sent].Output, Owner: f}
			if err := cluster.Submit(now, &f.Request); err != nil {
				return nil, err
			}
			sent++
			continue
		}
		next, busy := cluster.Next()
		if waits && (!busy || requests[sent].Arrival < next) {
			next, busy = requests[sent].Arrival, true
		}
		if !busy {
			return nil, fmt.Errorf("the simulation ended with %d of %d requests complete", ended, len(flights))
		}
		now = next
		events = cluster.Advance(now, events[:0])
		for _, e := range events {
			switch f := e.Request.Owner.(*flight); e.Kind {
			case engine.First:
				f.first = e.At
			case engine.Finished:
				f.last = e.At
				ended++
			}
		}
	}
	return valuesOf(flights), nil
}

// valuesOf computes the metrics.
func valuesOf(flights []flight) Values {
	var ttft, e2el, tpot []float64 // ms
	tokens, end := 0, time.Duration(0)
	for _, f := range flights {
		tokens, end = tokens+f.Output, max(end, f.last)
		ttft, e2el = append(ttft, trace.MS(f.first-f.sent)), append(e2el, trace.MS(f.last-f.sent))
		if f.Output > 1 {
			tpot = append(tpot, trace.MS(f.last-f.first)/float64(f.Output-1))
		}
	}
	seconds := (end - flights[0].sent).Seconds()
	first, all, each := stats.Of(ttft), stats.Of(e2el), stats.Of(tpot)
	return Values{
		RequestThroughput: float64(len(flights)) / seconds, OutputThroughput: float64(tokens) / seconds,
		MeanE2EL: all.Mean, P99E2EL: all.Quantile(0.99), MeanTTFT: first.Mean, P99TTFT: first.Quantile(0.99), MeanTPOT: each.Mean, P99TPOT: each.Quantile(0.99),
	}
}
