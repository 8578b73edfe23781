package evidence

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"moontide/replay/runfile"
)

// series is one value: a name whose colons are underscores, as some servers
// have it, its labels, and the value.
type series struct {
	name   string
	labels map[string]string
	value  float64
}

// names are what a server calls its figures. Of several names for one thing the
// first that is there counts: the others are of older versions.
type names struct {
	engine           string
	running, waiting []string
	kvUse            []string // share, or percent where it is above 1
	hit              []string // counters of tokens
	queried          []string
	missed           string   // with hit counts blocks instead
	hitRate          []string // gauges, for servers without the counters
	preemptions      []string
	info             string // has labels with the size of a block and their number
	blockLabel       string
	blocksLabel      string
	block            []string // gauges of the same
	blocks           []string
	capacity         []string // tokens
}

// known are the servers, the ones closest to the engine first: Dynamo passes on
// what its engines say.
var known = []names{
	{
		engine:  "vllm",
		running: []string{"vllm_num_requests_running"}, waiting: []string{"vllm_num_requests_waiting"},
		kvUse:       []string{"vllm_kv_cache_usage_perc", "vllm_gpu_cache_usage_perc"},
		queried:     []string{"vllm_prefix_cache_queries_total", "vllm_gpu_prefix_cache_queries_total"},
		hit:         []string{"vllm_prefix_cache_hits_total", "vllm_gpu_prefix_cache_hits_total"},
		hitRate:     []string{"vllm_gpu_prefix_cache_hit_rate"},
		preemptions: []string{"vllm_num_preemptions_total"},
		info:        "vllm_cache_config_info", blockLabel: "block_size", blocksLabel: "num_gpu_blocks",
	}, {
		engine:  "sglang",
		running: []string{"sglang_num_running_reqs"}, waiting: []string{"sglang_num_queue_reqs"},
		kvUse:       []string{"sglang_token_usage"},
		queried:     []string{"sglang_prompt_tokens_total"},
		hit:         []string{"sglang_cached_tokens_total"},
		hitRate:     []string{"sglang_cache_hit_rate"},
		preemptions: []string{"sglang_num_retracted_requests_total"},
		info:        "sglang_cache_config_info", blockLabel: "page_size", blocksLabel: "num_pages",
		capacity: []string{"sglang_max_total_num_tokens"},
	}, {
		engine:  "trtllm",
		running: []string{"trtllm_num_requests_running"}, waiting: []string{"trtllm_num_requests_waiting"},
		kvUse:   []string{"trtllm_kv_cache_utilization"},
		hit:     []string{"trtllm_kv_cache_reused_blocks_total"},
		missed:  "trtllm_kv_cache_missed_blocks_total",
		hitRate: []string{"trtllm_kv_cache_hit_rate"},
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
	},
}

// ErrUnknown says that metrics have none of the names that are known.
var ErrUnknown = errors.New("metrics have no figure of vLLM, SGLang, TensorRT-LLM or Dynamo")

// Parse reads figures from a text of metrics.
func Parse(r io.Reader) (runfile.ServerFigures, error) {
	all, err := parse(r)
	if err != nil {
		return runfile.ServerFigures{}, err
	}
	return figures(all)
}

// parse reads the series of a text whose names begin as those that are known.
func parse(r io.Reader) ([]series, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("metrics do not parse: %.100q", err.Error())
	}
	var all []series
	for name, family := range families {
		name = strings.ReplaceAll(name, ":", "_")
		engine, _, _ := strings.Cut(name, "_")
		if !slices.ContainsFunc(known, func(n names) bool { return n.engine == engine }) {
			continue
		}
		for _, m := range family.GetMetric() {
			s := series{name: name, labels: map[string]string{}}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			switch {
			case m.GetGauge() != nil:
				s.value = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				s.value = m.GetCounter().GetValue()
			case m.GetUntyped() != nil:
				s.value = m.GetUntyped().GetValue()
			default:
				continue // a histogram or a summary
			}
			if s.counts() {
				all = append(all, s)
			}
		}
	}
	return all, nil
}

// counts reports whether a series is a number, and not that of another process
// of an engine which says the same.
func (s series) counts() bool {
	for _, rank := range []string{"tp_rank", "pp_rank", "moe_ep_rank"} {
		if r := s.labels[rank]; r != "" && r != "0" {
			return false
		}
	}
	return !math.IsNaN(s.value) && !math.IsInf(s.value, 0)
}

// figures sums up series. Each figure is taken from the first server that knows
// it, and bears the name of the first that knows any.
func figures(all []series) (runfile.ServerFigures, error) {
	byName := map[string][]series{}
	for _, s := range all {
		byName[s.name] = append(byName[s.name], s)
	}
	var f runfile.ServerFigures
	for _, n := range known {
		of := reading{byName}
		before := f
		f.Running, f.Waiting = either(f.Running, of.sum(n.running)), either(f.Waiting, of.sum(n.waiting))
		f.Preemptions = either(f.Preemptions, of.sum(n.preemptions))
		f.HitRate = either(f.HitRate, of.share(n.hitRate).mean())
		if f.KVUse == nil {
			use := of.share(n.kvUse)
			f.KVUse, f.KVUseMax, f.Engines = use.mean(), use.max(), len(use)
		}
		if f.BlockSize == nil && f.CapacityTokens == nil {
			f.BlockSize, f.CapacityTokens = of.capacity(n)
		}
		if f.HitTokens == nil {
			f.HitTokens, f.QueriedTokens = of.hits(n, f.BlockSize)
		}
		if f.Engine == "" && f != before {
			f.Engine = n.engine
		}
	}
	if f.Engine == "" {
		return f, ErrUnknown
	}
	return f, nil
}

// reading looks figures up.
type reading struct{ byName map[string][]series }

// values are those of the first name that is there.
type values []float64

func (r reading) values(names []string) values {
	for _, name := range names {
		if found := r.byName[name]; len(found) > 0 {
			var v values
			for _, s := range found {
				v = append(v, s.value)
			}
			return v
		}
	}
	return nil
}

func (r reading) sum(names []string) *float64 { return r.values(names).sum() }

// share reads values from 0 to 1, which some servers give as percent.
func (r reading) share(names []string) values {
	v := r.values(names)
	if m := v.max(); m != nil && *m > 1 {
		for i := range v {
			v[i] /= 100
		}
	}
	return v
}

// hits are the tokens that were found in the prefix cache, and all that were
// looked up.
func (r reading) hits(n names, block *float64) (hit, queried *float64) {
	hit = r.sum(n.hit)
	if n.missed == "" {
		queried = r.sum(n.queried)
	} else if missed := r.sum([]string{n.missed}); hit != nil && missed != nil && block != nil {
		hit, queried = new(*hit**block), new((*hit+*missed)**block)
	}
	if hit == nil || queried == nil {
		return nil, nil
	}
	return hit, queried
}

// capacity is the size of a block, and how many tokens the KV caches of all
// engines hold.
func (r reading) capacity(n names) (block, tokens *float64) {
	if b := r.values(n.block); len(b) > 0 {
		block = &b[0]
	}
	if blocks := r.sum(n.blocks); blocks != nil && block != nil {
		tokens = new(*blocks * *block)
	}
	for _, s := range r.byName[n.info] {
		b, err := strconv.ParseFloat(s.labels[n.blockLabel], 64)
		if err != nil || !(b >= 1 && b < 1e6) {
			continue
		}
		block = &b
		if blocks, err := strconv.ParseFloat(s.labels[n.blocksLabel], 64); err == nil && blocks > 0 && blocks < 1e12 {
			if tokens == nil {
				tokens = new(float64)
			}
			*tokens += blocks * b
		}
	}
	if tokens == nil {
		tokens = r.sum(n.capacity)
	}
	return block, tokens
}

func (v values) sum() *float64 {
	if len(v) == 0 {
		return nil
	}
	total := 0.0
	for _, x := range v {
		total += x
	}
	return &total
}

func (v values) mean() *float64 {
	total := v.sum()
	if total != nil {
		*total /= float64(len(v))
	}
	return total
}

func (v values) max() *float64 {
	if len(v) == 0 {
		return nil
	}
	most := v[0]
	for _, x := range v {
		most = max(most, x)
	}
	return &most
}

// either is a, or else b.
func either(a, b *float64) *float64 {
	if a != nil {
		return a
	}
	return b
}
