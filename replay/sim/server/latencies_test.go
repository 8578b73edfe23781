package server

import (
	"math"
	"testing"
	"testing/synctest"

	"moontide/replay/sim/engine"
)

// The summary has the latencies of all tokens as written, and its percentiles are
// not those of the buckets.
func TestSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{Costs: engine.Costs{Sequence: 120 * engine.Millisecond}})
		for range 2 {
			stream := openStream(t, s, &completionAPI, 4)
			for range 4 {
				if _, err := stream.Read(make([]byte, 4096)); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-stream.ended; err != nil {
				t.Fatal(err)
			}
		}
		got := s.Summary()
		if got.Completed != 2 || got.Aborted != 0 || got.OutputTokens != 8 || got.TTFT.Count != 2 || got.ITL.Count != 6 || got.E2EL.Count != 2 {
			t.Errorf("counts of %+v", got)
		}
		for _, x := range []float64{got.ITL.MeanMS, got.ITL.MedianMS, got.ITL.P99MS, got.ITL.MaxMS, got.E2EL.MeanMS / 3} {
			if math.Abs(x-120) > 0.5 {
				t.Errorf("%v ms between tokens: %+v", x, got)
			}
		}
		if got.TTFT.MaxMS > 1 {
			t.Errorf("TTFT of %+v", got.TTFT)
		}
	})
}

// A loop that is late delivers several tokens in one write.
func TestTokensOfOneRoundAreOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{Costs: engine.Costs{Sequence: engine.CostOf(rest / 4)}})
		stream := openStream(t, s, &completionAPI, 9)
		stream.read(t, s, rest, 5)
		stream.read(t, s, 2*rest, 4)
		if err := <-stream.ended; err != nil {
			t.Fatal(err)
		}
		if got := s.Summary().ITL; got.Count != 8 || got.MedianMS != 0 || got.MaxMS != 0.2 {
			t.Errorf("gaps of %+v", got)
		}
	})
}
