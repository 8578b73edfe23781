package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"moontide/replay/runfile"
	"moontide/trace"
)

// A clock is measured in at most maxExchanges. The measurement ends after stableExchanges
// in a row that were not a tenth shorter than the shortest before.
const (
	maxExchanges    = 64
	stableExchanges = 12
)

// exchange holds the timestamps of a request to part 1: sent and returned by the clock of
// this part, received and responded by that of part 1.
type exchange struct{ sent, received, responded, returned time.Time }

// clockResponse is the response of part 1.
type clockResponse struct {
	Received time.Time `json:"received"`
	Sent     time.Time `json:"sent"`
}

// roundTrip returns the time on the network.
func (e exchange) roundTrip() time.Duration {
	return e.returned.Sub(e.sent) - e.responded.Sub(e.received)
}

// offset returns the clock of part 1 minus that of this part. The error is at most half the
// round trip, even if one way takes longer than the other.
func (e exchange) offset() runfile.ClockOffset {
	offset := (e.received.Sub(e.sent) + e.responded.Sub(e.returned)) / 2
	return runfile.ClockOffset{At: e.returned, OffsetMS: trace.MS(offset), BoundMS: trace.MS(max(e.roundTrip(), 0)) / 2}
}

// shortest makes exchanges until they get no shorter or one fails, and returns the
// shortest. It fails if the first one does.
func shortest(next func() (exchange, error)) (best exchange, err error) {
	if best, err = next(); err != nil {
		return best, fmt.Errorf("comparing clocks: %w", err)
	}
	for n, stable := 1, 0; n < maxExchanges && stable < stableExchanges; n++ {
		e, err := next()
		if err != nil {
			break
		}
		if stable++; e.roundTrip() < best.roundTrip()*9/10 {
			stable = 0
		}
		if e.roundTrip() < best.roundTrip() {
			best = e
		}
	}
	return best, nil
}

// compareClocks measures the offset of part 1's clock from that of this part.
func (p *Part) compareClocks(ctx context.Context) (runfile.ClockOffset, error) {
	if p.Leads() {
		return runfile.ClockOffset{At: p.Clock()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	best, err := shortest(func() (exchange, error) {
		var r clockResponse
		sent := p.Clock()
		err := p.request(ctx, http.MethodPost, "/v1/clock", struct{}{}, &r)
		return exchange{sent, r.Received, r.Sent, p.Clock()}, err
	})
	return best.offset(), err
}

// steadyClock returns a clock of the time of day that does not step.
func steadyClock() func() time.Time {
	begun := time.Now()
	return func() time.Time { return begun.Add(time.Since(begun)) }
}
