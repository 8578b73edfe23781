package simserver_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/replay/simserver"
)

func TestMetrics(t *testing.T) {
	s := start(t, simserver.Config{Model: `a"b`, KVBlocks: 8})
	ask := `{"prompt":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17],"max_tokens":4}`
	s.ask(completionPath, ask)
	s.do("POST", completionPath, strings.Replace(ask, "{", `{"stream":true,`, 1))
	s.ask(completionPath, `{"prompt":"hi","max_tokens":600}`)
	res := s.open("GET", "/metrics", "")
	if got := res.Header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	natural := s.ask(completionPath, `{"prompt":"hi","max_tokens":600}`).Usage.Completion
	const labels = `engine="0",model_name="a\"b"`
	want := `# HELP vllm:num_requests_running Number of requests whose prefill has begun.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{L} 0
# HELP vllm:num_requests_waiting Number of requests waiting for prefill.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{L} 0
# HELP vllm:kv_cache_usage_perc Share of the prefix cache that holds a block. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{L} 0.125
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{L} 35
# HELP vllm:prefix_cache_hits_total Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{L} 16
# HELP vllm:prompt_tokens_total Number of prefill tokens processed, cached ones included.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{L} 35
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{L} G
# HELP vllm:request_success_total Count of processed requests by the reason they ended.
# TYPE vllm:request_success_total counter
vllm:request_success_total{L,finished_reason="stop"} 1
vllm:request_success_total{L,finished_reason="length"} 2
vllm:request_success_total{L,finished_reason="abort"} 0
`
	want = strings.NewReplacer("{L", "{"+labels, " G\n", fmt.Sprintf(" %d\n", 8+natural)).Replace(want)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
