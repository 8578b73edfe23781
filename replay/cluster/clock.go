package cluster

import (
	"errors"
	"time"

	"moontide/replay/runfile"
	"moontide/trace"
)

// Numbers of exchanges of a clock measurement. It ends after vainExchanges in a row that
// were not a tenth shorter than the shortest.
const (
	mostExchanges = 64
	vainExchanges = 12
)

// exchange holds the four timestamps of an exchange: sent and back by the clock of
// the part, received and answered by that of the leader.
type exchange struct{ sent, received, answered, back time.Time }

// roundTrip returns the time on the network.
func (e exchange) roundTrip() time.Duration { return e.back.Sub(e.sent) - e.answered.Sub(e.received) }

// offset returns the leader's clock minus that of the part. The error is at most half the
// round trip, even if one way takes longer than the other.
func (e exchange) offset() runfile.ClockOffset {
	offset := (e.received.Sub(e.sent) + e.answered.Sub(e.back)) / 2
	return runfile.ClockOffset{At: e.back, OffsetMS: trace.MS(offset), BoundMS: trace.MS(max(e.roundTrip(), 0)) / 2}
}

// best returns the offset of the exchange with the shortest round trip.
func best(all []exchange) (runfile.ClockOffset, error) {
	if len(all) == 0 {
		return runfile.ClockOffset{}, errors.New("comparing clocks: no exchange of timestamps succeeded")
	}
	shortest := all[0]
	for _, e := range all[1:] {
		if e.roundTrip() < shortest.roundTrip() {
			shortest = e
		}
	}
	return shortest.offset(), nil
}

// steadyClock returns a clock of the time of day that does not step.
func steadyClock() func() time.Time {
	begun := time.Now()
	day := begun.Round(0)
	return func() time.Time { return day.Add(time.Since(begun)) }
}
