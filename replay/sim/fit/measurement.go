package fit

import (
	"fmt"
	"time"
)

// Measurement is a load and what was measured under it.
type Measurement struct {
	// Name identifies the measurement in messages, such as a run's folder or
	// "line 7".
	Name string
	// Deployment names what was measured, if a table holds several deployments.
	Deployment string
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
	if len(l.Requests) > 0 {
		return fmt.Sprintf("%d recorded requests", len(l.Requests))
	}
	if l.Rate > 0 {
		return fmt.Sprintf("%d:%d at %g/s", l.ISL, l.OSL, l.Rate)
	}
	return fmt.Sprintf("%d:%d at %d", l.ISL, l.OSL, l.Concurrency)
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
