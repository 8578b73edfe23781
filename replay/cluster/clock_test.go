package cluster

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/trace"
)

// Whatever the ways there and back, the true offset is within the bound.
func TestOffsetIsWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "offset"))
		var all []exchange
		best := time.Duration(math.MaxInt64)
		for range rapid.IntRange(1, 10).Draw(t, "exchanges") {
			draw := func(name string) time.Duration { return time.Duration(rapid.Int64Range(0, 1e9).Draw(t, name)) }
			there, work, back := draw("there"), draw("work"), draw("back")
			e := exchange{sent: day}
			e.received = e.sent.Add(there + offset)
			e.responded = e.received.Add(work)
			e.returned = e.sent.Add(there + work + back)
			all, best = append(all, e), min(best, there+back)
		}
		next := 0
		measured, err := shortest(func() (exchange, error) {
			if next == len(all) {
				return exchange{}, errors.New("part 1 is gone")
			}
			next++
			return all[next-1], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := measured.offset()
		if off := math.Abs(got.OffsetMS - trace.MS(offset)); off > got.BoundMS+1e-5 || math.Abs(got.BoundMS-trace.MS(best)/2) > 1e-5 {
			t.Fatalf("offset %v ms +- %v, true %v ms, shortest round trip %v", got.OffsetMS, got.BoundMS, trace.MS(offset), best)
		}
	})
}
