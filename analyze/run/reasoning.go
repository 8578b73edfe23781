package run

import (
	"slices"

	"moontide/replay"
	"moontide/trace"
)

// reasoningTokens sums the server's counts of reasoning tokens.
type reasoningTokens struct{ tokens, requests int }

func (n *reasoningTokens) mean() trace.Opt[float64] { return trace.Ratio(n.tokens, n.requests) }

// addReasoning adds a completed request, before its latencies are added. TTFVT is
// kept apart from TTFT from the first answer with reasoning on.
func (c *collector) addReasoning(rec *replay.Record) {
	if n := rec.Counts.Reasoning; n.Set {
		c.reasoning.tokens += n.Value
		c.reasoning.requests++
	}
	if !rec.ReasoningOnly && !rec.FirstVisible.Set {
		return
	}
	r := c.result
	if r.Reasoned == 0 {
		c.latencies[TTFVT] = slices.Clone(c.latencies[TTFT])
	}
	r.Reasoned++
	if rec.ReasoningOnly {
		r.ReasoningOnly++
	}
}
