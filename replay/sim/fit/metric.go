package fit

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
