package fit

import (
	"cmp"
	"fmt"
	"strings"

	"moontide/replay/sim/engine"
)

// Limits that a structure has if the template leaves them open.
const (
	defaultSeqs = 1024
	manyTokens  = 1 << 17 // in a step: as good as no limit
)

// structure is a deployment without costs, and what bounds its prefill: the engines or
// their links. The costs that a search starts from follow from it.
type structure struct {
	engine.Deployment
	linkBound bool
}

// structures returns the structures to compare: the template with combinations of the
// settings that it leaves open. Those in which the law of sharing or the limits of
// steps matter little have only one value of it.
func structures(template engine.Deployment, rows []Measurement) (all []structure) {
	limits := []limits{{1, manyTokens}, {defaultSeqs, 8192}, {defaultSeqs, manyTokens}}
	if !template.Disaggregated() || template.Engine.MaxSeqs != 0 || template.Engine.MaxBatchedTokens != 0 {
		limits = batchLimits(template, rows)
	}
	if !template.Disaggregated() {
		for _, d := range vary([]engine.Deployment{template}, limits, setLimits) {
			all = append(all, structure{d, false})
		}
		return all
	}
	after := []bool{false, true}
	if template.Transfer.Sharing != "" {
		after = []bool{template.Transfer.FirstTokenAfter}
	}
	setAfter := func(d *engine.Deployment, after bool) { d.Transfer.FirstTokenAfter = after }
	setSharing := func(d *engine.Deployment, s engine.Sharing) { d.Transfer.Sharing = s }
	base := vary([]engine.Deployment{template}, after, setAfter)
	sharings := []engine.Sharing{template.Transfer.Sharing}
	if template.Transfer.Sharing == "" {
		sharings = []engine.Sharing{engine.Queue, engine.Fair, engine.Batch}
	}
	for _, d := range vary(vary(base, limits, setLimits), sharings[:1], setSharing) {
		if template.Transfer.Sharing == "" {
			d.Transfer.Sharing = engine.Independent
		}
		all = append(all, structure{d, false})
	}
	for _, d := range vary(vary(base, limits[:min(2, len(limits))], setLimits), sharings, setSharing) {
		if d.Transfer.Sharing != engine.Independent {
			all = append(all, structure{d, true})
		}
	}
	return all
}

// limits are those of an engine's steps.
type limits struct{ seqs, tokens int }

func setLimits(d *engine.Deployment, l limits) {
	d.Engine.MaxSeqs, d.Engine.MaxBatchedTokens = l.seqs, l.tokens
}

// batchLimits returns the limits of steps that the measurements may tell apart.
func batchLimits(template engine.Deployment, rows []Measurement) (all []limits) {
	own := limits{cmp.Or(template.Engine.MaxSeqs, defaultSeqs), template.Engine.MaxBatchedTokens}
	if own.tokens > 0 {
		own.seqs = min(own.seqs, own.tokens)
		return []limits{own}
	}
	burst := 0 // tokens that may wait at once
	for _, m := range rows {
		burst = max(burst, int(float64(max(m.Load.Concurrency, 1))*m.Load.meanComputed()))
	}
	for tokens := 1024; tokens <= 16384; tokens *= 2 {
		if own.tokens = tokens; own.seqs <= tokens {
			all = append(all, own)
		}
		if tokens > burst {
			break
		}
	}
	return append(all, limits{own.seqs, max(manyTokens, own.seqs)})
}

func vary[T any](deployments []engine.Deployment, values []T, set func(*engine.Deployment, T)) (all []engine.Deployment) {
	for _, d := range deployments {
		for _, v := range values {
			set(&d, v)
			all = append(all, d)
		}
	}
	return all
}

// describe returns the settings that structures differ in.
func describe(d engine.Deployment) string {
	parts := []string{fmt.Sprintf("max-num-seqs %d", d.Engine.MaxSeqs), fmt.Sprintf("max-num-batched-tokens %d", d.Engine.MaxBatchedTokens)}
	if d.Disaggregated() {
		parts = append(parts, fmt.Sprintf("transfer-sharing %s", cmp.Or(d.Transfer.Sharing, engine.Independent)), fmt.Sprintf("first-token-after-transfer %v", d.Transfer.FirstTokenAfter))
	}
	return strings.Join(parts, ", ")
}
