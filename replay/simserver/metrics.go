package simserver

import (
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"
)

const metricsType = "text/plain; version=0.0.4; charset=utf-8"

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// serveMetrics writes the engine's state in Prometheus' text format, under the
// names that vLLM gives to the same things.
func (s *Server) serveMetrics(ctx *fasthttp.RequestCtx) *apiError {
	ctx.SetContentType(metricsType)
	ctx.SetBody(appendMetrics(nil, s.stats(), s.cfg.Model))
	return nil
}

func appendMetrics(b []byte, s Stats, model string) []byte {
	labels := fmt.Sprintf(`engine="0",model_name="%s"`, labelEscaper.Replace(model))
	for _, m := range [...]struct {
		name, kind, help string
		value            any
	}{
		{"num_requests_running", "gauge", "Number of requests whose prefill has begun.", s.Running},
		{"num_requests_waiting", "gauge", "Number of requests waiting for prefill.", s.Waiting},
		{"kv_cache_usage_perc", "gauge", "Share of the prefix cache that holds a block. 1 means 100 percent usage.", s.CacheUsage},
		{"prefix_cache_queries_total", "counter", "Prefix cache queries, in terms of number of queried tokens.", s.QueriedTokens},
		{"prefix_cache_hits_total", "counter", "Prefix cache hits, in terms of number of cached tokens.", s.HitTokens},
		{"prompt_tokens_total", "counter", "Number of prefill tokens processed, cached ones included.", s.PromptTokens},
		{"generation_tokens_total", "counter", "Number of generation tokens processed.", s.GeneratedTokens},
	} {
		b = fmt.Appendf(b, "# HELP vllm:%s %s\n# TYPE vllm:%s %s\n", m.name, m.help, m.name, m.kind)
		b = fmt.Appendf(b, "vllm:%s{%s} %v\n", m.name, labels, m.value)
	}
	b = append(b, "# HELP vllm:request_success_total Count of processed requests by the reason they ended.\n"...)
	b = append(b, "# TYPE vllm:request_success_total counter\n"...)
	for _, reason := range [...]FinishReason{FinishStop, FinishLength, FinishAbort} {
		b = fmt.Appendf(b, "vllm:request_success_total{%s,finished_reason=\"%s\"} %d\n", labels, reason, s.Finished[reason])
	}
	return b
}
