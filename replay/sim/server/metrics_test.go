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
	natural := s.ask(completionPath, `{"prompt":"hi","max_tokens":600}`).Output
	want := `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{L} 0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{L} 0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{L} 0
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{L} 35
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{L} 16
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{L} 35
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{L} 0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{L} G
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{L,block_size="16",num_gpu_blocks="50"} 1
# TYPE vllm:request_success_total counter
vllm:request_success_total{L,finished_reason="abort"} 0
`
	want = strings.NewReplacer("{L", `{engine="0",model_name="a\"b"`, " G\n", fmt.Sprintf(" %d\n", 8+natural)).Replace(want)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
