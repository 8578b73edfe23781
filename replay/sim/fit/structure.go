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
// settings that it leaves open. What makes little difference is not varied: the law of
// sharing where engines bound the prefill, and where links do, the limits of steps and
// a first token that does not wait for the link.
func structures(template engine.Deployment, rows []Measurement) (all []structure) {
	if !template.Disaggregated() {
		for _, l := range batchLimits(template, rows) {
			all = append(all, structureOf(template, l, false))
		}
		return all
	}
	bounded, free := limits{1, manyTokens}, limits{defaultSeqs, manyTokens}
	if template.Engine.MaxSeqs != 0 || template.Engine.MaxBatchedTokens != 0 {
		free = batchLimits(template, rows)[0]
		bounded = free
	}
	if template.Transfer.Sharing != "" {
		all = append(all, structureOf(template, free, false), structureOf(template, free, true))
		if bounded != free {
			all = append(all, structureOf(template, bounded, false))
		}
		return all
	}
	for _, after := range []bool{false, true} {
		template.Transfer = engine.Transfer{Sharing: engine.Independent, FirstTokenAfter: after}
		all = append(all, structureOf(template, free, false))
		if bounded != free {
			all = append(all, structureOf(template, bounded, false))
		}
	}
	for _, sharing := range []engine.Sharing{engine.Queue, engine.Fair, engine.Batch} {
		template.Transfer = engine.Transfer{Sharing: sharing, FirstTokenAfter: true}
		all = append(all, structureOf(template, free, true))
	}
	return all
}

func structureOf(d engine.Deployment, l limits, linkBound bool) structure {
	d.Engine.MaxSeqs, d.Engine.MaxBatchedTokens = l.seqs, l.tokens
	return structure{d, linkBound}
}

// limits are those of an engine's steps.
type limits struct{ seqs, tokens int }

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

// describe returns the settings that structures differ in.
func describe(d engine.Deployment) string {
	parts := []string{fmt.Sprintf("max-num-seqs %d", d.Engine.MaxSeqs), fmt.Sprintf("max-num-batched-tokens %d", d.Engine.MaxBatchedTokens)}
	if d.Disaggregated() {
		parts = append(parts, fmt.Sprintf("transfer-sharing %s", cmp.Or(d.Transfer.Sharing, engine.Independent)), fmt.Sprintf("first-token-after-transfer %v", d.Transfer.FirstTokenAfter))
	}
	return strings.Join(parts, ", ")
}
