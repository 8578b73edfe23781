package run

import (
	"sync"
	"time"

	"moontide/trace"
	"moontide/trace/stats"
)

// finish makes the result of what was collected.
func (c *collector) finish() *Result {
	r := c.result
	var predicting sync.WaitGroup // takes as long as the rest
	predicting.Go(func() {
		r.Cache.Prediction = c.prompts.predict(c.opts.Observed.Server.BlockSize, c.opts.EachPrediction || c.opts.Detail)
	})
	c.distributions()
	c.rates()
	if r.Cache.Requests > 0 {
		r.Cached = trace.Some(c.cached)
	}
	r.Cache.Explained = c.explained.tokens()
	predicting.Wait()
	c.prompts, c.explained = prompts{}, explainer{} // are much, and done with
	if c.detail != nil {
		r.Detail = c.detail.finish(r, &c.tokens)
	}
	r.Verdict = judge(r)
	return r
}

func (c *collector) distributions() {
	r := c.result
	for l := range c.latencies {
		if l := Latency(l); l != NoLatency && l != ITL {
			*latencies[l].distribution(r) = stats.Of(c.latencies[l])
		}
	}
	r.ITL = c.gaps.Sample(float64(time.Millisecond))
	if len(c.opts.Gaps) > 0 {
		for _, gaps := range c.opts.Gaps {
			c.counted = append(c.counted, stats.Counted{Value: ms(time.Duration(gaps.NS)), Count: int(gaps.Count)})
			r.GapsCounted += int(gaps.Count)
		}
		r.ITL = stats.OfCounts(c.counted)
	}
}

func (c *collector) rates() {
	r := c.result
	r.PeakConcurrency = c.spans.most()
	r.PeakOutputRate, r.PeakEventRate, r.PeakSendRate = c.tokens.mostTokens(), c.tokens.mostEvents(), c.sent.mostEvents()
	r.OfferedRate, r.AchievedRate = c.dues.rate(), c.sends.rate()
	r.Duration = c.spans.length()
	if w := c.opts.Window; !w.whole() {
		r.Duration = w.To - w.From
		r.Output = tokensOf(c.tokensInside)
	}
	if s := r.Duration.Seconds(); s > 0 {
		r.RequestRate = trace.Some(float64(r.Ended) / s)
		r.OutputRate = trace.Some(float64(r.Output) / s)
		r.TotalRate = trace.Some(float64(r.Input+r.Output) / s)
		if r.Goodput != nil {
			r.Goodput.Rate = trace.Some(float64(r.Goodput.Good) / s)
		}
	}
}
