package settings

import (
	"moontide/replay/sim/engine"
)

// Deployment returns the simulated engines: base, which is [engine.Default] or from a file,
// with the settings of engines that were set.
func (s *Settings) Deployment(base engine.Deployment) (engine.Deployment, error) {
	d := base.Clone()
	d.Seed = s.Seed
	if s.IsSet("engines") {
		if d.DecodeEngine != nil {
			return d, wrong("{engines}: the engine file has prefill and decode engines of their own: use {prefill-engines} and {decode-engines}")
		}
		d.Prefill, d.Decode = 0, 0
	}
	for _, p := range engine.Parameters {
		if !s.IsSet(p.Name) {
			continue
		}
		text := p.Text(&s.Engines)
		if err := p.Set(&d, text); err != nil {
			return d, wrong("{%s}: %v", p.Name, err)
		}
		if p.OfEngine != nil && d.DecodeEngine != nil {
			decode := engine.Deployment{Engine: *d.DecodeEngine}
			if err := p.Set(&decode, text); err != nil {
				return d, wrong("{%s}: %v", p.Name, err)
			}
			*d.DecodeEngine = decode.Engine
		}
	}
	if d.Disaggregated() {
		d.Engines = 0
	}
	if d.Routing == "" {
		d.Routing = engine.Default().Routing
	}
	for _, e := range []*engine.Config{&d.Engine, d.DecodeEngine} {
		if e == nil || e.MaxBatchedTokens == 0 {
			continue
		}
		if e.MaxSeqs == 0 { // the default would exceed the limit of tokens
			e.MaxSeqs = min(engine.Default().Engine.MaxSeqs, e.MaxBatchedTokens)
		}
		if e.MaxBatchedTokens < e.MaxSeqs {
			if s.IsSet("max-num-batched-tokens") {
				return d, wrong("{max-num-batched-tokens} %d is below {max-num-seqs} %d: a step could not hold a token of each sequence", e.MaxBatchedTokens, e.MaxSeqs)
			}
			e.MaxBatchedTokens = e.MaxSeqs
		}
	}
	if err := d.Validate(); err != nil {
		return d, wrong("%v", err)
	}
	return d, nil
}
