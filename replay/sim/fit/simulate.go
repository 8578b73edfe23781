package fit

import (
	"fmt"
	"time"

	"moontide/replay/sim/engine"
	"moontide/trace/stats"
)

// flight is a request that is simulated.
type flight struct {
	engine.Request
	sent, first, last time.Duration
}

// Simulate returns the metrics of a load on a deployment. The seed selects the order of
// lengths and the arrivals. Prompts share nothing but the tokens that are recorded as
// cached.
func Simulate(d engine.Deployment, l Load, seed uint64) (Values, error) {
	requests := l.requests(seed)
	cluster, err := d.NewCoarse()
	if err != nil {
		return nil, err
	}
	flights := make([]flight, len(requests))
	var events []engine.Event
	for now, sent, ended := time.Duration(0), 0, 0; ended < len(flights); {
		waits := sent < len(flights) && (l.Concurrency == 0 || sent-ended < l.Concurrency)
		if waits && requests[sent].Arrival <= now {
			f := &flights[sent]
			prompt := engine.UniquePrompt(requests[sent].Input, requests[sent].CachedInput, cluster.BlockSize())
			f.sent, f.Request = now, engine.Request{Prompt: prompt, Output: requests[sent].Output, Owner: f}
			if err := cluster.Submit(now, &f.Request); err != nil {
				return nil, err
			}
			sent++
			continue
		}
		next, busy := cluster.Next()
		if waits && (!busy || requests[sent].Arrival < next) {
			next, busy = requests[sent].Arrival, true
		}
		if !busy {
			return nil, fmt.Errorf("the simulation ended with %d of %d requests complete", ended, len(flights))
		}
		now = next
		events = cluster.Advance(now, events[:0])
		for _, e := range events {
			switch f := e.Request.Owner.(*flight); e.Kind {
			case engine.First:
				f.first = e.At
			case engine.Finished:
				f.last = e.At
				ended++
			}
		}
	}
	return valuesOf(flights), nil
}

// valuesOf computes the metrics.
func valuesOf(flights []flight) Values {
	var ttft, e2el, tpot []float64 // ms
	tokens, end := 0, time.Duration(0)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, f := range flights {
		tokens, end = tokens+f.Output, max(end, f.last)
		ttft, e2el = append(ttft, ms(f.first-f.sent)), append(e2el, ms(f.last-f.sent))
		if f.Output > 1 {
			tpot = append(tpot, ms(f.last-f.first)/float64(f.Output-1))
		}
	}
	seconds := (end - flights[0].sent).Seconds()
	first, all, each := stats.Of(ttft), stats.Of(e2el), stats.Of(tpot)
	return Values{
		RequestThroughput: float64(len(flights)) / seconds, OutputThroughput: float64(tokens) / seconds,
		MeanE2EL: all.Mean, P99E2EL: all.Quantile(0.99), MeanTTFT: first.Mean, P99TTFT: first.Quantile(0.99), MeanTPOT: each.Mean, P99TPOT: each.Quantile(0.99),
	}
}
