package diff

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"moontide/analyze/run"
	"moontide/trace"
)

// largeRun returns a run as [Read] returns it.
func largeRun(seed uint64, requests, gapsEach int) *Run {
	random := rand.New(rand.NewPCG(seed, 3))
	r := &Run{Result: &run.Result{}, gapEvery: 1, values: map[string]trace.Opt[float64]{}}
	for _, m := range DefaultMetrics() {
		r.values[m.Key] = trace.Some(1.)
	}
	gaps := make([]time.Duration, gapsEach)
	end := time.Duration(requests) * time.Millisecond
	for i := range requests {
		sent := time.Duration(i) * time.Millisecond
		first := sent + time.Duration(random.ExpFloat64()*1e8)
		last := first
		for k := range gaps {
			gaps[k] = time.Duration(1e7 + random.ExpFloat64()*1e7)
			last += gaps[k]
		}
		q := request{
			Timing: run.Timing{Due: sent, Sent: sent, First: first, Last: last, Output: int32(gapsEach + 1), WasSent: true, Answered: true},
			row:    i, end: last, input: 1000,
			cached: random.IntN(1000), completed: true, ended: true, measured: true, cachedKnown: true,
		}
		r.addGaps(i, gaps)
		r.requests = append(r.requests, q)
		end = max(end, last)
	}
	r.length = end
	return r
}

func BenchmarkOf(b *testing.B) {
	for _, requests := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("requests=%d/gaps=100", requests), func(b *testing.B) {
			x, y := largeRun(1, requests, 100), largeRun(2, requests, 100)
			b.ReportAllocs()
			for b.Loop() {
				if c := Of([]*Run{x}, []*Run{y}, Options{}); !c.Differences[len(c.Differences)-1].Interval.Set {
					b.Fatal("no interval")
				}
			}
		})
	}
}
