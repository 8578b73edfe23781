package report

import (
	"fmt"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/trace"
)

func sampledReuse(s *doc.Section, a *analyze.Analysis) {
	s.Text("A block of a prompt is a hit if it and all blocks before it occurred in earlier requests.",
		"The rates are those of an infinite cache, which starts empty and never evicts,",
		fmt.Sprintf("estimated from a sample of %s %% of the distinct blocks.", doc.Plain(100*a.Sampled.Curve.Share)))
	infiniteRows(s, a.Sampled.Infinite)
	s.Text("A sample of blocks says nothing about single prompts, so observed contexts, roots, trees, reuse intervals",
		"and inferred sessions are omitted.")
	contextRows(s, "declared", a.Declared, "no row declares it")
}

// sampleText describes the errors of an estimated curve.
func (c *Cache) sampleText() string {
	largest, at := 0.0, 0
	for _, p := range c.Points {
		if e := c.Sample.Error(p.Capacity); e >= largest {
			largest, at = e, p.Capacity
		}
	}
	text := fmt.Sprintf("Hits of one cache shared by all requests, in the order of the trace, estimated from %s of %s distinct blocks (%s %%)."+
		" The standard error of the block hit rate is at most %s points, at %s.",
		doc.Int(c.Sample.Blocks), doc.Int(c.Sample.Unique), doc.Plain(100*c.Sample.Share), doc.Percent(largest), doc.Count(at, "block"))
	if largest > 0 {
		text += fmt.Sprintf(" Caches of up to %s are exact.", doc.Count(c.Sample.Exact, "block"))
	}
	return text
}

// errorOf returns the standard error of the block hit rate at a capacity; absent if the
// curve is exact.
func (c *Cache) errorOf(capacity int) trace.Opt[float64] {
	if c.Sample == nil {
		return trace.Opt[float64]{}
	}
	return trace.Some(c.Sample.Error(capacity))
}

// sampleJSON describes the sample; null if the curve is exact.
func (c *Cache) sampleJSON() any {
	if c.Sample == nil {
		return nil
	}
	return object{{"share", c.Sample.Share}, {"blocks", c.Sample.Blocks}}
}
