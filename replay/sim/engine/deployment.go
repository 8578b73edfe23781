package engine

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"moontide/trace/routing"
)

// Deployment configures engines that serve together. The zero value has one
// engine.
type Deployment struct {
	// Engine configures each engine.
	Engine Config
	// DecodeEngine, if not nil, configures the decode engines of a
	// disaggregated deployment, and Engine only the prefill engines. Both have
	// the same block size.
	DecodeEngine *Config
	// Engines is the number of engines behind the router; 0 is one.
	Engines int
	// Routing selects the engine for a request: in a disaggregated deployment,
	// the prefill engine. "" is [routing.RoundRobin]. Decode engines are
	// selected by [routing.LeastLoaded].
	Routing routing.Policy
	// Seed is the seed for [routing.Random].
	Seed uint64
	// Prefill and Decode, if both are above 0, make the deployment
	// disaggregated: Prefill engines compute prompts and first tokens, Decode
	// engines the remaining tokens.
	Prefill, Decode int
	// Transfer configures the transfers of prompts' KV caches from prefill to
	// decode engines.
	Transfer Transfer
	// Latency is the time a request takes to reach the router, whatever the load.
	Latency time.Duration
}

// Transfer configures the transfers of KV caches. Each prefill engine sends
// over a link of its own, which a transfer needs for Base + PerToken x prompt
// tokens if it has the link for itself.
type Transfer struct {
	Base     time.Duration
	PerToken Cost // of the prompt
	// Sharing says how transfers at the same time share a link; "" is
	// [Independent].
	Sharing Sharing
	// FirstTokenAfter makes the first token of an answer leave after the
	// transfer; otherwise the prefill engine sends it before.
	FirstTokenAfter bool
}

// Sharing says how transfers share a link.
type Sharing string

// The laws of [Transfer.Sharing].
const (
	Independent Sharing = "none"  // transfers do not slow each other down
	Batch       Sharing = "batch" // they end together, when all their work is done
)

// Sharings lists the laws.
var Sharings = []Sharing{Independent, Batch}

// MaxEngines is the maximum number of engines of each kind in a deployment.
const MaxEngines = 1024

// Disaggregated reports whether separate engines compute prompts and answers.
func (d Deployment) Disaggregated() bool { return d.Prefill > 0 && d.Decode > 0 }

// IsZero reports whether d is the zero value.
func (d Deployment) IsZero() bool { return reflect.ValueOf(d).IsZero() }

// String describes the deployment.
func (d Deployment) String() string {
	policy := cmp.Or(d.Routing, routing.RoundRobin)
	front, decode := d.Engine.ofRanks(), d.decodeEngine().ofRanks()
	switch {
	case d.Disaggregated() && front == decode:
		return fmt.Sprintf("%d prefill and %d decode engines%s, %s routing", d.Prefill, d.Decode, front, policy)
	case d.Disaggregated():
		return fmt.Sprintf("%d prefill engines%s and %d decode engines%s, %s routing", d.Prefill, front, d.Decode, decode, policy)
	case d.Engines > 1:
		return fmt.Sprintf("%d engines%s, %s routing", d.Engines, front, policy)
	case front != "":
		return fmt.Sprintf("1 engine%s, %s routing", front, policy)
	}
	return "1 engine"
}

// ofRanks describes the ranks if there are several.
func (c Config) ofRanks() string {
	if c.Ranks > 1 {
		return fmt.Sprintf(" of %d ranks", c.Ranks)
	}
	return ""
}

// Validate returns the first error in d.
func (d Deployment) Validate() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"engines", d.Engines}, {"prefill engines", d.Prefill}, {"decode engines", d.Decode}} {
		if n.value < 0 || n.value > MaxEngines {
			return fmt.Errorf("engine: a deployment of %d %s; at most %d", n.value, n.name, MaxEngines)
		}
	}
	switch {
	case (d.Prefill > 0) != (d.Decode > 0):
		return fmt.Errorf("engine: %d prefill and %d decode engines: set both or neither", d.Prefill, d.Decode)
	case d.Disaggregated() && d.Engines > 0:
		return errors.New("engine: set Engines, or Prefill and Decode, not both")
	case !slices.Contains(Sharings, cmp.Or(d.Transfer.Sharing, Independent)):
		return fmt.Errorf("engine: unknown sharing of links %q", d.Transfer.Sharing)
	case d.Latency < 0 || d.Latency > maxCost.Duration():
		return fmt.Errorf("engine: latency of a request is not from 0 to %v: %v", maxCost, d.Latency)
	case d.Transfer.Base < 0 || d.Transfer.Base > maxCost.Duration() || d.Transfer.PerToken < 0 || d.Transfer.PerToken > maxCost:
		return fmt.Errorf("engine: transfer time is not from 0 to %v: %v and %v a token", maxCost, d.Transfer.Base, d.Transfer.PerToken)
	}
	if d.DecodeEngine != nil {
		if err := d.DecodeEngine.Validate(); err != nil {
			return fmt.Errorf("decode %w", err)
		}
		if front, back := d.Engine.WithDefaults().BlockSize, d.DecodeEngine.WithDefaults().BlockSize; front != back {
			return fmt.Errorf("engine: prefill engines have blocks of %d tokens and decode engines of %d", front, back)
		}
	}
	if d.Routing != "" {
		if _, err := routing.Parse(string(d.Routing)); err != nil {
			return fmt.Errorf("engine: %w", err)
		}
	}
	return d.Engine.Validate()
}

// New returns the deployment at time 0, idle and with empty caches.
func (d Deployment) New() (*Cluster, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{transfer: d.Transfer, latency: d.Latency}
	front := max(d.Engines, 1)
	if d.Disaggregated() {
		front = d.Prefill
	}
	var err error
	if c.front, err = newPool(d.Engine, front, d.Routing, d.Seed); err != nil || !d.Disaggregated() {
		return c, err
	}
	for _, k := range c.front.ranks {
		k.link.sharing = cmp.Or(d.Transfer.Sharing, Independent)
	}
	c.decode, err = newPool(d.decodeEngine(), d.Decode, routing.LeastLoaded, 0)
	return c, err
}

// NewCoarse is like New without [Token] events: the first and last tokens and
// preemptions are the same, at the same times, but steps between them that differ
// in nothing but the length of the contexts are computed at once, which makes
// long answers cheap. With [Config.PhasedTPOT] it is like New.
func (d Deployment) NewCoarse() (*Cluster, error) {
	c, err := d.New()
	if err != nil {
		return nil, err
	}
	for _, p := range []*pool{c.front, c.decode} {
		if p == nil {
			continue
		}
		for _, e := range p.engines {
			e.coarse = e.cfg.PhasedTPOT == 0
			for _, k := range e.ranks {
				k.coarse = e.coarse
			}
		}
	}
	return c, nil
}

// decodeEngine returns the configuration of decode engines.
func (d *Deployment) decodeEngine() Config {
	if d.DecodeEngine != nil {
		return *d.DecodeEngine
	}
	return d.Engine
}

// Clone returns a copy that shares nothing with d.
func (d Deployment) Clone() Deployment {
	d.Engine.Costs.Decode = slices.Clone(d.Engine.Costs.Decode)
	if d.DecodeEngine != nil {
		decode := *d.DecodeEngine
		decode.Costs.Decode = slices.Clone(decode.Costs.Decode)
		d.DecodeEngine = &decode
	}
	return d
}

// Default returns one engine that approximates Llama 3.1 8B in FP8 on one H100
// of 80 GB:
//
//   - A step reads 8 GB of weights at about 2.7 of the 3.35 TB/s: 3 ms, plus
//     1 ms for kernel launches and scheduling.
//   - A prompt token takes 16 GFLOP at a little over half of the 1,979 TFLOPS:
//     15 us, or 66,000 tokens a second.
//   - A decoding sequence shares the reading of the weights; sampling and
//     its part of the scheduling take about 10 us.
//   - The KV cache of a token is 32 layers of 8 heads of 128 numbers, twice, a
//     byte each: 64 KiB, read in 26 ns.
//   - 90 % of 80 GB, less weights and activations, leave 60 GB for the KV
//     cache: 57,000 blocks of 16 tokens.
//   - A transfer moves the 64 KiB per token at 45 GB/s (a 400 Gbit/s network),
//     after 2 ms of handshake.
//
// Limits are vLLM's defaults on that GPU.
func Default() Deployment {
	return Deployment{
		Engine: Config{
			Costs: Costs{
				Step:         4 * Millisecond,
				PrefillToken: 15 * Microsecond,
				Sequence:     10 * Microsecond,
				ContextToken: 26 * Nanosecond,
			},
			MaxSeqs:          1024,
			MaxBatchedTokens: 8192,
			BlockSize:        16,
			KVBlocks:         57_000,
			MaxModelLen:      131_072,
		},
		Engines:  1,
		Routing:  routing.RoundRobin,
		Transfer: Transfer{Base: 2 * time.Millisecond, PerToken: 1500 * Nanosecond},
	}
}
