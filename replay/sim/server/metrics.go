package server

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay/sim/engine"
	"moontide/trace/stats"
)

// latencies holds the latencies of responses as seen by clients, including delays
// added by the server to the model's times. The loop alone observes.
type latencies struct {
	ttft, itl, e2el    *stats.Durations
	completed, aborted atomic.Int64
}

// deliver observes the delivery of new tokens. Tokens delivered together have no
// delay after the first.
func (m *latencies) deliver(q *activeRequest, at time.Duration) {
	if q.delivered == 0 {
		m.ttft.Add(at-q.begun, 1)
	} else {
		m.itl.Add(at-q.last, 1)
	}
	m.itl.Add(0, q.generated-q.delivered-1)
	if q.generated == q.Output {
		m.e2el.Add(at-q.begun, 1)
		m.completed.Add(1)
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

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// metrics are the metrics of an engine, with vLLM's names.
var metrics = [...]struct {
	name, kind string
	value      func(s engine.Stats) any
}{
	{"num_requests_running", "gauge", func(s engine.Stats) any { return s.Running }},
	{"num_requests_waiting", "gauge", func(s engine.Stats) any { return s.Waiting }},
	{"kv_cache_usage_perc", "gauge", func(s engine.Stats) any { return float64(s.KVUsed) / float64(s.KVBlocks) }},
	{"prefix_cache_queries_total", "counter", func(s engine.Stats) any { return s.QueriedTokens }},
	{"prefix_cache_hits_total", "counter", func(s engine.Stats) any { return s.HitTokens }},
	{"prompt_tokens_total", "counter", func(s engine.Stats) any { return s.PromptTokens }},
	{"num_preemptions_total", "counter", func(s engine.Stats) any { return s.Preemptions }},
	{"generation_tokens_total", "counter", func(s engine.Stats) any { return s.GeneratedTokens }},
}

// serveMetrics writes metrics in Prometheus text format. There is a line per engine,
// or per rank of an engine, as with vLLM's data parallelism; aborted requests are
// those of engine 0.
func (s *Server) serveMetrics(ctx *fasthttp.RequestCtx) {
	var b []byte
	each, model := s.stats(), labelEscaper.Replace(s.cfg.Model)
	for _, m := range metrics {
		b = fmt.Appendf(b, "# TYPE vllm:%s %s\n", m.name, m.kind)
		for i, stats := range each {
			b = fmt.Appendf(b, "vllm:%s{engine=\"%d\",model_name=\"%s\"} %v\n", m.name, i, model, m.value(stats))
		}
	}
	b = append(b, "# TYPE vllm:cache_config_info gauge\n"...)
	for i, stats := range each {
		b = fmt.Appendf(b, "vllm:cache_config_info{engine=\"%d\",model_name=\"%s\",block_size=\"%d\",num_gpu_blocks=\"%d\"} 1\n", i, model, s.cluster.BlockSize(), stats.KVBlocks)
	}
	b = append(b, "# TYPE vllm:request_success_total counter\n"...)
	b = fmt.Appendf(b, "vllm:request_success_total{engine=\"0\",model_name=\"%s\",finished_reason=\"abort\"} %d\n", model, s.latencies.aborted.Load())
	respond(ctx, "text/plain; version=0.0.4; charset=utf-8", b)
}

// Summary describes what a [Server] responded, as it wrote it: the truth that a
// client's figures can be checked against.
type Summary struct {
	Completed    int     `json:"completed_requests"`
	Aborted      int     `json:"aborted_requests"` // because the client left
	OutputTokens int     `json:"output_tokens"`
	TTFT         Latency `json:"ttft"`
	ITL          Latency `json:"itl"`
	E2EL         Latency `json:"e2el"`
}

// Latency describes durations in milliseconds, exact to 0.1 %.
type Latency struct {
	Count    int     `json:"count"`
	MeanMS   float64 `json:"mean_ms"`
	MedianMS float64 `json:"median_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

// Summary returns what the server responded until its shutdown. Call it when
// [Server.Shutdown] has returned.
func (s *Server) Summary() Summary {
	m := &s.latencies
	return Summary{
		Completed:    int(m.completed.Load()),
		Aborted:      int(m.aborted.Load()),
		OutputTokens: int(m.ttft.Count() + m.itl.Count()),
		TTFT:         latencyOf(m.ttft),
		ITL:          latencyOf(m.itl),
		E2EL:         latencyOf(m.e2el),
	}
}

func latencyOf(d *stats.Durations) Latency {
	if d.Count() == 0 {
		return Latency{}
	}
	quantile := func(p float64) float64 { return d.Quantile(p).Round(time.Microsecond).Seconds() * 1000 }
	return Latency{
		Count: int(d.Count()), MeanMS: d.Sum().Seconds() * 1000 / float64(d.Count()),
		MedianMS: quantile(0.5), P99MS: quantile(0.99), MaxMS: quantile(1),
	}
}
