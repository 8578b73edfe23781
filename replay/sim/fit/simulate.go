package fit

import (
	"errors"
	"fmt"
	"time"

	"moontide/replay/sim/engine"
	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/stats"
)

// Simulate returns the metrics of a load on a deployment. The seed selects the order of
// lengths and the arrivals. Prompts share nothing but the tokens that are recorded as
// cached.
func Simulate(d engine.Deployment, l Load, seed uint64) (Values, error) {
	return prepare(l, d.Engine.WithDefaults().BlockSize, seed).simulate(d)
}

// preparedLoad holds what simulations of a load have in common. It may be simulated
// concurrently.
type preparedLoad struct {
	requests    []Request
	prompts     []*engine.Prompt
	concurrency int
}

func prepare(l Load, blockSize int, seed uint64) *preparedLoad {
	p := &preparedLoad{requests: l.requests(seed), concurrency: l.Concurrency}
	equal := map[[2]int]*engine.Prompt{}
	for i, r := range p.requests {
		key := [2]int{r.Input, r.CachedInput}
		if equal[key] == nil {
			equal[key] = engine.TracePrompt(transcript.New(trace.Request{InputLength: r.Input}, i, blockSize), 0, blockSize)
			equal[key].AssumeCached(r.CachedInput)
		}
		p.prompts = append(p.prompts, equal[key])
	}
	return p
}

// flight is a request that is simulated.
type flight struct {
	engine.Request
	sent, first, last time.Duration
}

// simulate sends the requests that are due while they have a slot, and waits for the next
// event.
func (p *preparedLoad) simulate(d engine.Deployment) (v Values, err error) {
	if len(p.requests) == 0 {
		return v, errors.New("fit: the load has no requests")
	}
	d.Engine.NoPrefixCache = true // equal prompts share nothing
	cluster, err := d.NewCoarse()
	if err != nil {
		return v, err
	}
	flights := make([]flight, len(p.requests))
	var events []engine.Event
	now, sent, ended := time.Duration(0), 0, 0
	for ended < len(flights) {
		waits := func() bool {
			return sent < len(flights) && (p.concurrency == 0 || sent-ended < p.concurrency)
		}
		for waits() && p.requests[sent].Arrival <= now {
			f := &flights[sent]
			f.Request = engine.Request{Prompt: p.prompts[sent], Output: p.requests[sent].Output, Owner: f}
			f.sent = now
			if err := cluster.Submit(now, &f.Request); err != nil {
				return v, err
			}
			sent++
		}
		next, busy := cluster.Next()
		if waits() && (!busy || p.requests[sent].Arrival < next) {
			next, busy = p.requests[sent].Arrival, true
		}
		if !busy {
			return v, fmt.Errorf("fit: simulation ended with %d of %d requests complete", ended, len(flights))
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
func valuesOf(flights []flight) (v Values) {
	var ttft, e2el, tpot []float64
	tokens, end := 0, time.Duration(0)
	for _, f := range flights {
		tokens, end = tokens+f.Output, max(end, f.last)
		ttft = append(ttft, milliseconds(f.first-f.sent))
		e2el = append(e2el, milliseconds(f.last-f.sent))
		if f.Output > 1 {
			tpot = append(tpot, milliseconds(f.last-f.first)/float64(f.Output-1))
		}
	}
	duration := (end - flights[0].sent).Seconds()
	v[RequestThroughput], v[OutputThroughput] = float64(len(flights))/duration, float64(tokens)/duration
	v[MeanE2EL], v[P99E2EL] = meanAndP99(e2el)
	v[MeanTTFT], v[P99TTFT] = meanAndP99(ttft)
	v[MeanTPOT], v[P99TPOT] = meanAndP99(tpot)
	return v
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func meanAndP99(values []float64) (mean, p99 float64) {
	sample := stats.Of(values)
	return sample.Mean, sample.Quantile(0.99)
}
