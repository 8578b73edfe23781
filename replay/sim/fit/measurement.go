package fit

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
	// HeldOut are predictions by fits without the rows of its shape, and without those
	// of its load.
	HeldOut []Values
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
