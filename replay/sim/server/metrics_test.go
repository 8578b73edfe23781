package server_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/replay/sim/engine"
	"moontide/trace/routing"
)

func TestMetrics(t *testing.T) {
	cfg := over(engine.Config{KVBlocks: 50})
	cfg.Model = `a"b`
	s := start(t, cfg)
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
	state, latencies, _ := strings.Cut(string(got), "# HELP vllm:time_to_first_token_seconds ")
	natural := s.ask(completionPath, `{"prompt":"hi","max_tokens":600}`).Usage.Completion
	const labels = `engine="0",model_name="a\"b"`
	want := `# HELP vllm:num_requests_running Number of requests in the running batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{L} 0
# HELP vllm:num_requests_waiting Number of requests waiting for a place in a batch.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{L} 0
# HELP vllm:kv_cache_usage_perc Share of the KV cache that requests use. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{L} 0
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{L} 35
# HELP vllm:prefix_cache_hits_total Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{L} 16
# HELP vllm:prompt_tokens_total Number of prefill tokens processed, cached ones included.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{L} 35
# HELP vllm:num_preemptions_total Number of times that a request lost its place.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{L} 0
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{L} G
# HELP vllm:cache_config_info Sizes of the KV cache, as labels.
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{L,block_size="16",num_gpu_blocks="50"} 1
# HELP vllm:request_success_total Count of processed requests by the reason they ended.
# TYPE vllm:request_success_total counter
vllm:request_success_total{L,finished_reason="stop"} 1
vllm:request_success_total{L,finished_reason="length"} 2
vllm:request_success_total{L,finished_reason="abort"} 0
`
	want = strings.NewReplacer("{L", "{"+labels, " G\n", fmt.Sprintf(" %d\n", 8+natural)).Replace(want)
	if diff := cmp.Diff(want, state); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for line, times := range map[string]int{
		"# TYPE vllm:time_to_first_token_seconds histogram\n":                                  1,
		`vllm:time_to_first_token_seconds_bucket{` + labels + `,le="2560.0"} 3` + "\n":         1,
		`vllm:time_to_first_token_seconds_bucket{` + labels + `,le="+Inf"} 3` + "\n":           1,
		`vllm:time_to_first_token_seconds_count{` + labels + `} 3` + "\n":                      1,
		fmt.Sprintf(`vllm:inter_token_latency_seconds_count{%s} %d`+"\n", labels, 8+natural-3): 1,
		`vllm:inter_token_latency_seconds_bucket{` + labels + `,le="0.025"`:                    1,
		`vllm:e2e_request_latency_seconds_count{` + labels + `} 3` + "\n":                      1,
		"# TYPE ": 3, "_sum{": 3, "_bucket{": 23 + 20 + 22,
	} {
		if n := strings.Count(latencies, line); n != times {
			t.Errorf("%q is there %d times, want %d", line, n, times)
		}
	}
}

// Each rank of each engine has its own lines, which add up to the whole.
func TestMetricsOfEachEngine(t *testing.T) {
	cfg := over(engine.Config{KVBlocks: 50})
	cfg.Deployment.Engines, cfg.Deployment.Engine.Ranks, cfg.Deployment.Routing = 2, 2, routing.RoundRobin
	s := start(t, cfg)
	for range 6 { // first one rank of each engine, then the other
		s.ask(completionPath, `{"prompt":[1,2,3],"max_tokens":2}`)
	}
	_, text := s.do("GET", "/metrics", "")
	for i, want := range []int{6, 3, 6, 3} {
		if line := fmt.Sprintf("vllm:prompt_tokens_total{engine=\"%d\",model_name=\"sim\"} %d\n", i, want); !strings.Contains(text, line) {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	if n := strings.Count(text, "# TYPE vllm:num_requests_running gauge\n"); n != 1 {
		t.Errorf("a metric is explained %d times", n)
	}
}
