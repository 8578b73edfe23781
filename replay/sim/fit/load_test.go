package fit

import (
	"math"
	"slices"
	"testing"
	"time"

	"moontide/replay/sim/engine"
)

// One slot, so every request has the engine for itself.
func TestSimulateByHand(t *testing.T) {
	d := engine.Deployment{
		Engine: engine.Config{Costs: engine.Costs{
			Step: 10 * engine.Millisecond, PrefillToken: engine.Millisecond, Decode: engine.DecodeTable{{Sequences: 1, Cost: 0}, {Sequences: 2, Cost: 5 * engine.Millisecond}},
		}},
		Latency: 7 * time.Millisecond,
	}
	for _, tt := range []struct {
		load Load
		want Values
	}{
		// 117 ms to the first of 11 tokens, and 10 ms for each other.
		{Load{ISL: 100, OSL: 11, Concurrency: 1}, Values{
			RequestThroughput: 1 / 0.217, OutputThroughput: 11 / 0.217, MeanE2EL: 217, P99E2EL: 217, MeanTTFT: 117, P99TTFT: 117, MeanTPOT: 10, P99TPOT: 10,
		}},
		// Cached tokens are not computed: 57 ms.
		{Load{Concurrency: 1, Requests: []Request{{Input: 100, Output: 1, CachedInput: 50}}}, Values{
			RequestThroughput: 1 / 0.067, OutputThroughput: 1 / 0.067, MeanE2EL: 67, P99E2EL: 67, MeanTTFT: 67, P99TTFT: 67,
		}},
		// Both in one step, from 7 to 217 ms, then two steps of 15 ms.
		{Load{Concurrency: 2, Requests: []Request{{Input: 100, Output: 3}, {Input: 100, Output: 3}}}, Values{
			RequestThroughput: 2 / 0.247, OutputThroughput: 6 / 0.247, MeanE2EL: 247, P99E2EL: 247, MeanTTFT: 217, P99TTFT: 217, MeanTPOT: 15, P99TPOT: 15,
		}},
		// The second arrives while the first computes, from 7 to 117 ms; its prefill
		// delays the first's second token to 227 ms.
		{Load{Requests: []Request{{Input: 100, Output: 2}, {Arrival: 50 * time.Millisecond, Input: 100, Output: 2}}}, Values{
			RequestThroughput: 2 / 0.237, OutputThroughput: 4 / 0.237, MeanE2EL: (227 + 187) / 2.0, P99E2EL: 187 + 0.99*40, MeanTTFT: (117 + 177) / 2.0, P99TTFT: 117 + 0.99*60,
			MeanTPOT: 60, P99TPOT: 10 + 0.99*100,
		}},
	} {
		got, err := Simulate(d, tt.load, 1)
		if err != nil {
			t.Fatal(err)
		}
		for m, want := range tt.want {
			if math.Abs(got[m]-want) > 1e-6*want {
				t.Errorf("%+v: %v is %v, want %v", tt.load, Metric(m), got[m], want)
			}
		}
	}
}

// Answers have the mean asked for and never exceed the limit.
func TestAnswerLengths(t *testing.T) {
	for _, tt := range []struct {
		n, limit int
		mean     float64
	}{{10, 1000, 842}, {1280, 1000, 824.5}, {7, 150, 0}, {20, 100, 3}, {1, 100, 50}, {11, 1000, 500}, {40, 1000, 120}, {3, 10, 9.5}} {
		lengths := answerLengths(tt.n, tt.limit, tt.mean)
		sum := 0
		for _, l := range lengths {
			sum += l
		}
		want := tt.mean
		if want == 0 {
			want = float64(tt.limit)
		}
		if got := float64(sum) / float64(tt.n); math.Abs(got-want) > 0.51/float64(tt.n)+1e-9 || slices.Max(lengths) > tt.limit || slices.Min(lengths) < 1 {
			t.Errorf("%+v: mean %v, from %d to %d", tt, got, slices.Min(lengths), slices.Max(lengths))
		}
	}
}
