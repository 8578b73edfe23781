package bench

import (
	"context"
	"math"
	"strconv"

	"moontide/replay/sim/engine"
)

// TTFTs simulates the trace on a deployment. It returns the time to first token of each
// request in milliseconds, in the order in which they are sent and NaN for one without a
// first token, and the share of the time from the first to the last of them being sent that
// the engines are busy, which is above 1 if they fall behind.
func (p *Planner) TTFTs(ctx context.Context, d engine.Deployment) (ttfts []float64, busy float64, err error) {
	records, _, state, err := p.records(ctx, d, p.base)
	if err != nil {
		return nil, 0, err
	}
	ttfts = make([]float64, p.in.plan.Rows)
	for i := range ttfts {
		ttfts[i] = math.NaN()
	}
	first, last := math.Inf(1), math.Inf(-1)
	for _, r := range records {
		if !r.Sent.Set || r.Row >= len(ttfts) {
			continue
		}
		first, last = min(first, ms(r.Sent.Value)), max(last, ms(r.Sent.Value))
		if r.First.Set {
			ttfts[r.Row] = ms(r.First.Value - r.Sent.Value)
		}
	}
	return ttfts, ms(state.Busy) / (last - first), nil
}

const (
	halfBusy = 0.5
	// busyWithin is how far, as a factor, the engine may be from half busy.
	busyWithin   = 1.2
	busyAttempts = 4

	minSpeed, maxSpeed = 0.1, 1000
)

// HalfBusy returns an engine that the trace loads but does not overload: one like
// [engine.Default], but speed times as fast, 0.1 to 1,000, which is about half busy. If that is faster
// than the default, its KV cache and its limit on sequences grow as much; its limit on
// the length of a prompt fits the trace.
func (p *Planner) HalfBusy(ctx context.Context) (d engine.Deployment, speed float64, err error) {
	longest := 0
	for r, err := range p.in.Requests {
		if err != nil {
			return d, 0, err
		}
		longest = max(longest, r.InputLength+max(r.OutputLength, 1))
	}
	speed = 1
	for range busyAttempts {
		d = engineOfSpeed(speed, longest)
		_, busy, err := p.TTFTs(ctx, d)
		if err != nil {
			return d, 0, err
		}
		factor := busy / halfBusy
		next := min(max(twoDigits(speed*factor), minSpeed), maxSpeed)
		if math.IsNaN(factor) || math.IsInf(factor, 0) || factor > 1/busyWithin && factor < busyWithin || next == speed {
			break
		}
		speed = next
	}
	return engineOfSpeed(speed, longest), speed, nil
}

// engineOfSpeed returns an engine whose context holds longest tokens.
func engineOfSpeed(speed float64, longest int) engine.Deployment {
	d := engine.Default()
	e := &d.Engine
	for _, cost := range []*engine.Cost{&e.Costs.Step, &e.Costs.PrefillToken, &e.Costs.Sequence, &e.Costs.ContextToken} {
		*cost = engine.Cost(math.Round(float64(*cost) / speed))
	}
	larger := max(speed, 1)
	e.KVBlocks = max(int(larger*float64(e.KVBlocks)), 2*(longest/e.BlockSize+1))
	e.MaxSeqs = int(larger * float64(e.MaxSeqs))
	e.MaxBatchedTokens = max(e.MaxBatchedTokens, e.MaxSeqs)
	e.MaxModelLen = max(e.MaxModelLen, longest+1)
	return d
}

// twoDigits rounds to two significant digits.
func twoDigits(x float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
	return rounded
}
