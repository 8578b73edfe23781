package server

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay/sim/engine"
)

func TestHistogram(t *testing.T) {
	h := newHistogram(0.001, 1, 2.5)
	h.observe(time.Millisecond, 1) // a bound is within its bucket
	h.observe(time.Millisecond+1, 2)
	h.observe(10*time.Second, 1)
	const want = `x_bucket{a="b",le="0.001"} 1
x_bucket{a="b",le="1.0"} 3
x_bucket{a="b",le="2.5"} 3
x_bucket{a="b",le="+Inf"} 4
x_sum{a="b"} 10.003000002
x_count{a="b"} 4
`
	if got := string(h.appendText(nil, "x", `a="b"`)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Latencies are those of delivery: a first token that is due at once is delivered
// in the loop's first round, whatever the time scale.
func TestLatenciesAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serverOf(t, Config{TimeScale: 2, Deployment: engine.Deployment{Engine: engine.Config{Costs: engine.Costs{Sequence: 400 * engine.Millisecond}}}})
		stream := openStream(t, s, &completionAPI, 4)
		for range 4 {
			if _, err := stream.Read(make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-stream.ended; err != nil {
			t.Fatal(err)
		}
		text := string(s.latencies.appendText(nil, s.stats(), "m", 16))
		for _, want := range []string{
			`time_to_first_token_seconds_sum{engine="0",model_name="m"} 0.0002`, `time_to_first_token_seconds_bucket{engine="0",model_name="m",le="0.001"} 1`,
			`inter_token_latency_seconds_sum{engine="0",model_name="m"} 0.5998`, `inter_token_latency_seconds_count{engine="0",model_name="m"} 3`,
			`e2e_request_latency_seconds_sum{engine="0",model_name="m"} 0.6`, `e2e_request_latency_seconds_bucket{engine="0",model_name="m",le="0.8"} 1`,
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
	})
}

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
		if zero, all := s.latencies.itl.counts[0].Load(), s.latencies.itl.sum.Load(); zero != 8 || time.Duration(all) != rest {
			t.Errorf("%d gaps of %v together", zero, time.Duration(all))
		}
	})
}
