package fit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Measurement is a load and what was measured under it.
type Measurement struct {
	Name       string // in messages, such as a run's folder or "line 7"
	Deployment string // that was measured, if a table holds several
	Load       Load
	Values     Values
}

// Load describes the requests of a measurement: of a fixed shape in a closed loop
// (Concurrency) or at a rate (Rate, with or without Concurrency), or those of a
// recorded run (Requests, with or without Concurrency).
type Load struct {
	// ISL and OSL are the tokens of a prompt and the most of an answer. MeanOutput
	// is the mean of the answers' tokens if some stop before OSL, at any length; 0 is
	// OSL.
	ISL, OSL   int
	MeanOutput float64
	// Concurrency limits the requests in flight; 0 is no limit. Without Rate and
	// Requests all prompts wait for a slot from the start: a closed loop.
	Concurrency int
	// Rate is the number of requests sent per second, with exponential gaps.
	Rate float64
	// Prompts is the number of requests; 0 is [PromptsPerSlot] per slot.
	Prompts int
	// Requests are those of a recorded run, in order of arrival.
	Requests []Request
}

// PromptsPerSlot is the assumed number of prompts per slot of a closed loop whose
// number of prompts is unknown.
const PromptsPerSlot = 10

// Request is a request of a recorded run.
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

func (l Load) prompts() int {
	switch {
	case len(l.Requests) > 0:
		return len(l.Requests)
	case l.Prompts > 0:
		return l.Prompts
	}
	return PromptsPerSlot * max(l.Concurrency, 1)
}

// means returns the mean numbers of prompt tokens that are computed and of the tokens of
// an answer.
func (l Load) means() (computed, output float64) {
	if len(l.Requests) == 0 {
		if l.MeanOutput > 0 {
			return float64(l.ISL), l.MeanOutput
		}
		return float64(l.ISL), float64(l.OSL)
	}
	for _, r := range l.Requests {
		computed, output = computed+float64(r.Input-r.CachedInput), output+float64(r.Output)
	}
	return computed / float64(len(l.Requests)), output / float64(len(l.Requests))
}

// requests returns the requests of a load. The same seed gives the same requests.
func (l Load) requests(seed uint64) []Request {
	if len(l.Requests) > 0 {
		return l.Requests
	}
	all := make([]Request, l.prompts())
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
	top := float64(limit)
	if mean <= 0 || mean > top {
		mean = top
	}
	if mean < top/2 {
		top = max(2*mean-1, 1) // no answer reaches the limit
	}
	lengths := make([]int, n)
	early := min(int(math.Ceil(2*(1-mean/top)*float64(n)-1e-9)), n)
	// The mean of the early ones makes up for rounding their number.
	least := 0.0
	if early > 0 {
		least = 2*(mean*float64(n)-top*float64(n-early))/float64(early) - top
	}
	rest := 0.0
	for i := range lengths {
		length := top
		if i < early {
			length = least + (top-least)*(float64(i)+0.5)/float64(early)
		}
		length += rest
		lengths[i] = int(min(max(math.Round(length), 1), float64(limit)))
		rest = length - float64(lengths[i])
	}
	return lengths
}

// Metric is a measured value of a run that is fitted or compared.
type Metric int

// The metrics, with their units.
const (
	RequestThroughput Metric = iota // requests/s
	OutputThroughput                // tokens/s
	MeanE2EL                        // ms
	P99E2EL                         // ms
	MeanTTFT                        // ms
	P99TTFT                         // ms
	MeanTPOT                        // ms, of requests with more than one output token
	P99TPOT                         // ms

	numMetrics
)

var metricKeys = [numMetrics]string{
	"request_throughput", "output_throughput",
	"mean_e2el_ms", "p99_e2el_ms", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms",
}

// String returns the metric's key in the summary of a run, such as mean_ttft_ms.
func (m Metric) String() string { return metricKeys[m] }

// Metrics returns all metrics.
func Metrics() []Metric {
	all := make([]Metric, numMetrics)
	for i := range all {
		all[i] = Metric(i)
	}
	return all
}

// Values holds a value per [Metric], in the metric's unit; 0 is not measured.
type Values [numMetrics]float64
