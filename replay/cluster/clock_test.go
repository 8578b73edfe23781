package cluster

import (
	"math"
	"testing"
	"time"

	"moontide/trace"

	"pgregory.net/rapid"
)

// Whatever the ways there and back, the true offset is within the bound.
func TestOffsetIsWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "offset"))
		var all []exchange
		shortest := time.Duration(math.MaxInt64)
		for range rapid.IntRange(1, 10).Draw(t, "exchanges") {
			draw := func(name string) time.Duration { return time.Duration(rapid.Int64Range(0, 1e9).Draw(t, name)) }
			there, work, back := draw("there"), draw("work"), draw("back")
			e := exchange{sent: day}
			e.received = e.sent.Add(there + offset)
			e.answered = e.received.Add(work)
			e.back = e.sent.Add(there + work + back)
			all, shortest = append(all, e), min(shortest, there+back)
		}
		got, err := best(all)
		if err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(got.OffsetMS - trace.MS(offset)); off > got.BoundMS+1e-5 || math.Abs(got.BoundMS-trace.MS(shortest)/2) > 1e-5 {
			t.Fatalf("offset %v ms +- %v, true %v ms, shortest round trip %v", got.OffsetMS, got.BoundMS, trace.MS(offset), shortest)
		}
	})
}
