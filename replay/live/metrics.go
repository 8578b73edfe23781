// Package live serves the metrics of a run in progress for Prometheus, without delaying
// the run.
//
//	m := live.NewMetrics()
//	server, err := live.Listen("127.0.0.1:9464", m)
//	...
//	m.Start(live.Run{Name: "first", Status: runner.Status})
//	m.Record(record) // for each request that ended
package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"moontide/replay"
	"moontide/trace/stats"
)

// Run describes the run whose metrics are exported.
type Run struct {
	Name, Trace, Model string // labels
	Rows               int    // of the trace
	Status             func() replay.Status
	// Verdict returns the verdict so far from the 99th percentile of the client's lag
	// and the median TTFT. It may be nil.
	Verdict func(lag, ttft time.Duration) string
}

// Metrics collects the metrics of one run at a time. Its methods may be called from
// any goroutine.
type Metrics struct {
	mu                   sync.Mutex
	run                  Run
	ttft, itl, e2el, lag *stats.Durations
	ok                   uint64
	failed               map[replay.Class]uint64 // and abandoned
	input, output        uint64                  // tokens of successful requests
}

// NewMetrics returns metrics without a run.
func NewMetrics() *Metrics {
	m := &Metrics{failed: map[replay.Class]uint64{}}
	m.reset()
	return m
}

func (m *Metrics) reset() {
	for _, d := range []**stats.Durations{&m.ttft, &m.itl, &m.e2el, &m.lag} {
		*d = stats.NewDurations(10)
	}
}

// Start begins a run with all metrics at 0.
func (m *Metrics) Start(run Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run, m.ok, m.input, m.output = run, 0, 0, 0
	m.reset()
	clear(m.failed)
}

// Record adds a request that has ended.
func (m *Metrics) Record(rec replay.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if lag := rec.ClientLag(); lag.Set {
		m.lag.Add(lag.Value, 1)
	}
	if rec.Class != replay.OK {
		m.failed[rec.Class]++
		return
	}
	m.ok++
	output, _ := rec.OutputTokens()
	m.output += uint64(output)
	if n := rec.Counts.Input; n.Set {
		m.input += uint64(n.Value)
	} else {
		m.input += uint64(rec.InputLength)
	}
	if !rec.Sent.Set || !rec.First.Set || !rec.Last.Set {
		return
	}
	m.ttft.Add(rec.First.Value-rec.Sent.Value, 1)
	m.e2el.Add(rec.Last.Value-rec.Sent.Value, 1)
	for _, gap := range rec.Gaps {
		m.itl.Add(gap, 1)
	}
}

// AppendMetric appends a metric in Prometheus' text format. Samples are pairs of labels,
// such as `class="ok"` or "" for none, and value.
func AppendMetric(b []byte, name, kind, help string, samples ...any) []byte {
	b = fmt.Appendf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	for i := 0; i < len(samples); i += 2 {
		b = append(b, name...)
		if labels := samples[i].(string); labels != "" {
			b = fmt.Appendf(b, "{%s}", labels)
		}
		b = fmt.Appendf(b, " %v\n", samples[i+1])
	}
	return b
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// AppendText appends the metrics in Prometheus' text format. It appends nothing
// before the first run.
func (m *Metrics) AppendText(b []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run.Status == nil {
		return b
	}
	labels := fmt.Sprintf(`run="%s"`, escaper.Replace(m.run.Name))
	metric := func(name, kind, help string, samples ...any) {
		for i := 0; i < len(samples); i += 2 {
			samples[i] = labels + samples[i].(string)
		}
		b = AppendMetric(b, "moontide_"+name, kind, help, samples...)
	}
	status := m.run.Status()
	metric("run_info", "gauge", "The run, as labels.", fmt.Sprintf(`,trace="%s",model="%s"`, escaper.Replace(m.run.Trace), escaper.Replace(m.run.Model)), 1)
	metric("trace_requests", "gauge", "Requests of the trace.", "", m.run.Rows)
	metric("requests_sent_total", "counter", "Requests that were sent.", "", status.Sent)
	metric("requests_in_flight", "gauge", "Requests that were sent and have not ended.", "", status.InFlight)
	byClass := []any{`,class="ok"`, m.ok}
	for _, class := range slices.Sorted(maps.Keys(m.failed)) {
		byClass = append(byClass, fmt.Sprintf(`,class="%s"`, escaper.Replace(string(class))), m.failed[class])
	}
	metric("requests_total", "counter", "Requests that have ended, by class.", byClass...)
	metric("prompt_tokens_total", "counter", "Input tokens of successful requests.", "", m.input)
	metric("generation_tokens_total", "counter", "Output tokens of successful requests.", "", m.output)
	if m.run.Verdict != nil && m.lag.Count() > 0 {
		var states []any
		verdict := m.run.Verdict(m.lag.Quantile(0.99), m.ttft.Quantile(0.5))
		for _, level := range []string{"VALID", "SUSPECT", "INVALID"} {
			states = append(states, fmt.Sprintf(`,level="%s"`, level), map[bool]int{true: 1}[verdict == level])
		}
		metric("verdict", "gauge", "1 for the verdict so far, from the client's lag.", states...)
	}
	for _, h := range []struct {
		name, help string
		of         *stats.Durations
	}{
		{"time_to_first_token_seconds", "TTFT of successful requests.", m.ttft},
		{"inter_token_latency_seconds", "Gaps between token chunks of successful requests.", m.itl},
		{"e2e_request_latency_seconds", "E2EL of successful requests.", m.e2el},
		{"client_lag_seconds", "Lateness of the client when it sent a request.", m.lag},
	} {
		b = appendHistogram(b, "moontide_"+h.name, labels, h.help, h.of)
	}
	return b
}
