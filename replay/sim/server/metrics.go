package server

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"

	"moontide/replay/sim/engine"
)

const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// latencies holds the metrics of answers as seen by clients, including delays
// added by the server to the model's times.
type latencies struct {
	ttft, itl, e2el        *histogram
	stopped, full, aborted atomic.Int64 // by finish reason
}

// newLatencies uses the buckets of vLLM.
func newLatencies() latencies {
	return latencies{
		ttft: newHistogram(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
			20, 40, 80, 160, 640, 2560),
		itl: newHistogram(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
		e2el: newHistogram(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920,
			7680),
	}
}

// tokens observes the delivery of new tokens. Tokens delivered together have no
// delay after the first.
func (m *latencies) tokens(q *activeRequest, at time.Duration) {
	n := q.generated - q.delivered
	if q.delivered == 0 {
		m.ttft.observe(at-q.begun, 1)
	} else {
		m.itl.observe(at-q.last, 1)
	}
	if n > 1 {
		m.itl.observe(0, n-1)
	}
}

func (m *latencies) completed(q *activeRequest, at time.Duration) {
	m.e2el.observe(at-q.begun, 1)
	if q.finish.reason == FinishStop {
		m.stopped.Add(1)
	} else {
		m.full.Add(1)
	}
}

func (s *Server) stats() []engine.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.advance()
	}
	return s.cluster.EachStats()
}

// serveMetrics writes metrics in Prometheus text format with vLLM's names.
// Engine metrics have a line per engine, or per rank of an engine, as with vLLM's
// data parallelism; answer metrics are reported for engine 0.
func (s *Server) serveMetrics(ctx *fasthttp.RequestCtx) *apiError {
	return respond(ctx, metricsType, s.latencies.appendText(nil, s.stats(), s.cfg.Model, s.cluster.BlockSize()))
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (m *latencies) appendText(b []byte, each []engine.Stats, model string, blockSize int) []byte {
	of := func(index int) string {
		return fmt.Sprintf(`engine="%d",model_name="%s"`, index, labelEscaper.Replace(model))
	}
	labels := of(0)
	head := func(name, kind, help string) {
		b = fmt.Appendf(b, "# HELP vllm:%s %s\n# TYPE vllm:%s %s\n", name, help, name, kind)
	}
	for _, v := range [...]struct {
		name, kind, help string
		value            func(s engine.Stats) any
	}{
		{"num_requests_running", "gauge", "Number of requests in the running batches.", func(s engine.Stats) any { return s.Running }},
		{"num_requests_waiting", "gauge", "Number of requests waiting for a place in a batch.", func(s engine.Stats) any { return s.Waiting }},
		{"kv_cache_usage_perc", "gauge", "Share of the KV cache that requests use. 1 means 100 percent usage.", func(s engine.Stats) any { return float64(s.KVUsed) / float64(s.KVBlocks) }},
		{"prefix_cache_queries_total", "counter", "Prefix cache queries, in terms of number of queried tokens.", func(s engine.Stats) any { return s.QueriedTokens }},
		{"prefix_cache_hits_total", "counter", "Prefix cache hits, in terms of number of cached tokens.", func(s engine.Stats) any { return s.HitTokens }},
		{"prompt_tokens_total", "counter", "Number of prefill tokens processed, cached ones included.", func(s engine.Stats) any { return s.PromptTokens }},
		{"num_preemptions_total", "counter", "Number of times that a request lost its place.", func(s engine.Stats) any { return s.Preemptions }},
		{"generation_tokens_total", "counter", "Number of generation tokens processed.", func(s engine.Stats) any { return s.GeneratedTokens }},
	} {
		head(v.name, v.kind, v.help)
		for i, s := range each {
			b = fmt.Appendf(b, "vllm:%s{%s} %v\n", v.name, of(i), v.value(s))
		}
	}
	head("cache_config_info", "gauge", "Sizes of the KV cache, as labels.")
	for i, s := range each {
		b = fmt.Appendf(b, "vllm:cache_config_info{%s,block_size=\"%d\",num_gpu_blocks=\"%d\"} 1\n", of(i), blockSize, s.KVBlocks)
	}
	head("request_success_total", "counter", "Count of processed requests by the reason they ended.")
	for _, v := range [...]struct {
		reason FinishReason
		count  *atomic.Int64
	}{{FinishStop, &m.stopped}, {FinishLength, &m.full}, {FinishAbort, &m.aborted}} {
		b = fmt.Appendf(b, "vllm:request_success_total{%s,finished_reason=\"%s\"} %d\n", labels, v.reason, v.count.Load())
	}
	for _, v := range [...]struct {
		name, help string
		histogram  *histogram
	}{
		{"time_to_first_token_seconds", "Time from a request to its first token, as written.", m.ttft},
		{"inter_token_latency_seconds", "Time between consecutive tokens of an answer, as written.", m.itl},
		{"e2e_request_latency_seconds", "Time from a request to the last token of its answer, as written.", m.e2el},
	} {
		head(v.name, "histogram", v.help)
		b = v.histogram.appendText(b, "vllm:"+v.name, labels)
	}
	return b
}

// histogram is a Prometheus histogram of durations. One goroutine may observe
// while others append.
type histogram struct {
	bounds []time.Duration // upper bounds; the last bucket is unbounded
	counts []atomic.Uint64 // one more than bounds
	sum    atomic.Int64    // nanoseconds
	fine   *hdrhistogram.Histogram
}

// Durations in fine have this unit, this maximum and this many digits.
const (
	fineUnit   = time.Microsecond
	fineMax    = int64(24 * time.Hour / fineUnit)
	fineDigits = 3
)

// newHistogram takes bounds in seconds.
func newHistogram(bounds ...float64) *histogram {
	h := &histogram{counts: make([]atomic.Uint64, len(bounds)+1), fine: hdrhistogram.New(1, fineMax, fineDigits)}
	for _, b := range bounds {
		h.bounds = append(h.bounds, time.Duration(math.Round(b*float64(time.Second))))
	}
	return h
}

// observe adds d the given number of times.
func (h *histogram) observe(d time.Duration, times int) {
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.counts[i].Add(uint64(times))
	h.sum.Add(int64(d) * int64(times))
	h.fine.RecordValues(min(int64(d.Round(fineUnit)/fineUnit), fineMax), int64(times))
}

// appendText appends the histogram in Prometheus' text format.
func (h *histogram) appendText(b []byte, name, labels string) []byte {
	total := uint64(0)
	for i := range h.counts {
		total += h.counts[i].Load()
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = decimal(h.bounds[i].Seconds())
		}
		b = fmt.Appendf(b, "%s_bucket{%s,le=\"%s\"} %d\n", name, labels, bound, total)
	}
	b = fmt.Appendf(b, "%s_sum{%s} %v\n", name, labels, time.Duration(h.sum.Load()).Seconds())
	return fmt.Appendf(b, "%s_count{%s} %d\n", name, labels, total)
}

// decimal formats a bound like the Python client library, with a decimal point.
func decimal(x float64) string {
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if x == float64(int64(x)) {
		s += ".0"
	}
	return s
}

// Summary describes what a [Server] answered, as it wrote it: the truth that a
// client's figures can be checked against.
type Summary struct {
	Completed    int     `json:"completed_requests"`
	Aborted      int     `json:"aborted_requests"` // because the client left
	OutputTokens int     `json:"output_tokens"`
	TTFT         Latency `json:"ttft"`
	ITL          Latency `json:"itl"`
	E2EL         Latency `json:"e2el"`
}

// Latency describes durations in milliseconds. Percentiles are exact to 0.1 %.
type Latency struct {
	Count    int     `json:"count"`
	MeanMS   float64 `json:"mean_ms"`
	MedianMS float64 `json:"median_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

// Summary returns what the server answered until its shutdown. Call it when
// [Server.Shutdown] has returned.
func (s *Server) Summary() Summary {
	m := &s.latencies
	return Summary{
		Completed:    int(m.stopped.Load() + m.full.Load()),
		Aborted:      int(m.aborted.Load()),
		OutputTokens: int(m.ttft.fine.TotalCount() + m.itl.fine.TotalCount()),
		TTFT:         m.ttft.latency(),
		ITL:          m.itl.latency(),
		E2EL:         m.e2el.latency(),
	}
}

func (h *histogram) latency() Latency {
	n := h.fine.TotalCount()
	if n == 0 {
		return Latency{}
	}
	ms := func(units int64) float64 { return float64(units) * float64(fineUnit) / float64(time.Millisecond) }
	return Latency{
		Count:    int(n),
		MeanMS:   time.Duration(h.sum.Load()).Seconds() * 1e3 / float64(n),
		MedianMS: ms(h.fine.ValueAtQuantile(50)),
		P99MS:    ms(h.fine.ValueAtQuantile(99)),
		MaxMS:    ms(h.fine.Max()),
	}
}
