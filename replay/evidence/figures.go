package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	mstats "github.com/montanaflynn/stats"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"moontide/replay/runfile"
)

// series is one value of a metric.
type series struct {
	labels map[string]string
	value  float64
}

// names lists a server's metrics. If there are several names, the first that is
// present is used; the others are from older versions.
type names struct {
	engine           string
	running, waiting []string
	kvUse            []string // share, or percent if above 1
	hit              []string // counters of tokens
	queried          []string
	missed           []string // instead of queried
	hitBlocks        bool     // hit and missed count blocks
	hitRate          []string // gauges of servers without the counters
	preemptions      []string
	aborted          []string // counters of requests that the client closed
	block            []string // gauges of the block size, or labels: see page
	blocks           []string
	capacity         []string // tokens
}

// known lists the servers, engines first because Dynamo passes on its engines'
// metrics.
var known = []names{
	{
		engine:  "vllm",
		running: []string{"vllm_num_requests_running"}, waiting: []string{"vllm_num_requests_waiting"},
		kvUse:       []string{"vllm_kv_cache_usage_perc", "vllm_gpu_cache_usage_perc"},
		queried:     []string{"vllm_prefix_cache_queries_total", "vllm_gpu_prefix_cache_queries_total"},
		hit:         []string{"vllm_prefix_cache_hits_total", "vllm_gpu_prefix_cache_hits_total"},
		hitRate:     []string{"vllm_gpu_prefix_cache_hit_rate"},
		preemptions: []string{"vllm_num_preemptions_total"},
		aborted:     []string{"vllm_request_success_total"},
		block:       []string{"vllm_cache_config_info.block_size"},
		blocks:      []string{"vllm_cache_config_info.num_gpu_blocks"},
	}, {
		engine:  "sglang",
		running: []string{"sglang_num_running_reqs"}, waiting: []string{"sglang_num_queue_reqs"},
		kvUse:       []string{"sglang_token_usage"},
		queried:     []string{"sglang_prompt_tokens_total"},
		hit:         []string{"sglang_cached_tokens_total"},
		hitRate:     []string{"sglang_cache_hit_rate"},
		preemptions: []string{"sglang_num_retracted_requests_total"},
		aborted:     []string{"sglang_num_aborted_requests_total"},
		block:       []string{"sglang_cache_config_info.page_size"},
		blocks:      []string{"sglang_cache_config_info.num_pages"},
		capacity:    []string{"sglang_max_total_num_tokens"},
	}, {
		engine:  "trtllm",
		running: []string{"trtllm_num_requests_running"}, waiting: []string{"trtllm_num_requests_waiting"},
		kvUse:  []string{"trtllm_kv_cache_utilization"},
		hit:    []string{"trtllm_kv_cache_reused_blocks_total"},
		missed: []string{"trtllm_kv_cache_missed_blocks_total"}, hitBlocks: true,
		hitRate: []string{"trtllm_kv_cache_hit_rate"},
		aborted: []string{"trtllm_request_success_total"},
		block:   []string{"trtllm_kv_cache_tokens_per_block"},
		blocks:  []string{"trtllm_kv_cache_max_blocks"},
	}, {
		engine:  "dynamo",
		running: []string{"dynamo_frontend_inflight_requests", "dynamo_component_inflight_requests"},
		waiting: []string{"dynamo_frontend_queued_requests"},
		kvUse:   []string{"dynamo_component_gpu_cache_usage_percent", "dynamo_component_kvstats_gpu_cache_usage_percent"},
		hitRate: []string{"dynamo_component_kv_cache_hit_rate", "dynamo_component_kvstats_gpu_prefix_cache_hit_rate"},
		block:   []string{"dynamo_frontend_model_kv_cache_block_size"},
		blocks:  []string{"dynamo_component_total_blocks", "dynamo_component_kvstats_total_blocks"},
	}, {
		engine:  "llamacpp",
		running: []string{"llamacpp_requests_processing"}, waiting: []string{"llamacpp_requests_deferred"},
		kvUse:  []string{"llamacpp_kv_cache_usage_ratio"},
		hit:    []string{"llamacpp_prompt_tokens_cached_total"},
		missed: []string{"llamacpp_prompt_tokens_total"},
	},
}

// startTime is a gauge of every server with a Prometheus client.
const startTime = "process_start_time_seconds"

// ErrUnknown reports that a page has none of the known metrics.
var ErrUnknown = errors.New("metrics have no figure of vLLM, SGLang, TensorRT-LLM, Dynamo or llama.cpp")

// page maps metric names to their series. Colons in names are replaced by underscores, as
// some servers do. The labels of an info metric that are numbers are "name.label".
type page map[string][]series

// parse adds the series of known servers to a page.
func (p page) parse(r io.Reader) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return fmt.Errorf("metrics do not parse: %.100q", err.Error())
	}
	for name, family := range families {
		name = strings.ReplaceAll(name, ":", "_")
		engine, _, _ := strings.Cut(name, "_")
		if name != startTime && !slices.ContainsFunc(known, func(n names) bool { return n.engine == engine }) {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetHistogram() != nil || m.GetSummary() != nil {
				continue
			}
			s := series{map[string]string{}, m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			if !s.counts() {
				continue
			}
			p[name] = append(p[name], s)
			for label, text := range s.labels {
				if x, err := strconv.ParseFloat(text, 64); strings.HasSuffix(name, "_info") && err == nil && x >= 1 && x < 1e12 {
					p[name+"."+label] = append(p[name+"."+label], series{value: x})
				}
			}
		}
	}
	return nil
}

// counts reports whether a series is a number and not a duplicate from another rank of
// the same engine. A counter of ended requests by reason counts those that the client
// closed: in vLLM "abort", in TensorRT-LLM "cancelled".
func (s series) counts() bool {
	for _, rank := range []string{"tp_rank", "pp_rank", "moe_ep_rank"} {
		if r := s.labels[rank]; r != "" && r != "0" {
			return false
		}
	}
	reason, some := s.labels["finished_reason"]
	aborted := !some || reason == "abort" || reason == "cancelled"
	return aborted && !math.IsNaN(s.value) && !math.IsInf(s.value, 0)
}

// figures adds up the series of a page. Each figure is from the first server that
// provides it; Engine is the first server that provides any.
func (p page) figures() (f runfile.ServerFigures, err error) {
	for _, n := range known {
		before := f
		f.Running = cmp.Or(f.Running, p.sum(n.running))
		f.Waiting = cmp.Or(f.Waiting, p.sum(n.waiting))
		f.Preemptions = cmp.Or(f.Preemptions, p.sum(n.preemptions))
		f.Aborted = cmp.Or(f.Aborted, p.sum(n.aborted))
		f.HitRate = cmp.Or(f.HitRate, reduce(mstats.Mean, p.shares(n.hitRate)))
		if f.KVUse == nil {
			use := p.shares(n.kvUse)
			f.KVUse, f.KVUseMax, f.Engines = reduce(mstats.Mean, use), reduce(mstats.Max, use), len(use)
		}
		if f.BlockSize == nil && f.CapacityTokens == nil {
			f.BlockSize, f.CapacityTokens = p.capacity(n)
		}
		if f.HitTokens == nil {
			f.HitTokens, f.QueriedTokens = p.hits(n, f.BlockSize)
		}
		if f.Engine == "" && f != before {
			f.Engine = n.engine
		}
	}
	if f.Engine == "" {
		return f, ErrUnknown
	}
	f.StartTime = reduce(mstats.Max, p.values([]string{startTime}))
	return f, nil
}

// reduce applies a statistic to values; it returns nil without values.
func reduce(statistic func(mstats.Float64Data) (float64, error), values []float64) *float64 {
	x, err := statistic(values)
	if err != nil {
		return nil
	}
	return &x
}

// values returns the values of the first name that is present.
func (p page) values(names []string) (values []float64) {
	for _, name := range names {
		for _, s := range p[name] {
			values = append(values, s.value)
		}
		if values != nil {
			break
		}
	}
	return values
}

func (p page) sum(names []string) *float64 { return reduce(mstats.Sum, p.values(names)) }

// shares returns values from 0 to 1; some servers report percent.
func (p page) shares(names []string) []float64 {
	values := p.values(names)
	if len(values) > 0 && slices.Max(values) > 1 {
		for i := range values {
			values[i] /= 100
		}
	}
	return values
}

// hits returns the tokens found in the prefix cache and the tokens looked up.
func (p page) hits(n names, block *float64) (hit, queried *float64) {
	hit, queried = p.sum(n.hit), p.sum(n.queried)
	if missed := p.sum(n.missed); hit != nil && missed != nil {
		queried = new(*hit + *missed)
	}
	if hit == nil || queried == nil || n.hitBlocks && block == nil {
		return nil, nil
	}
	if n.hitBlocks {
		hit, queried = new(*hit**block), new(*queried**block)
	}
	return hit, queried
}

// capacity returns the block size and the total capacity of the KV caches of
// all engines, in tokens.
func (p page) capacity(n names) (block, tokens *float64) {
	block, blocks := reduce(mstats.Max, p.values(n.block)), p.sum(n.blocks)
	if block != nil && blocks != nil {
		return block, new(*blocks * *block)
	}
	return block, p.sum(n.capacity)
}
