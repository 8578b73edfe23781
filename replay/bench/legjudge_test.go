package bench

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// queue returns the records of a queue with one server, which serves one request per
// second on average.
func queue(random *rand.Rand, rate float64, requests int, service func() float64) []replay.Record {
	var records []replay.Record
	at, free := 0.0, 0.0
	for range requests {
		at += random.ExpFloat64() / rate
		begin := max(at, free)
		free = begin + service()
		seconds := func(s float64) time.Duration { return time.Duration(s * 1e9) }
		rec := replay.Record{Due: seconds(at), Ready: seconds(at), Done: seconds(free), Class: replay.OK}
		rec.Sent, rec.First, rec.Last = trace.Some(seconds(at)), trace.Some(seconds(begin)), trace.Some(seconds(free))
		records = append(records, rec)
	}
	return records
}

// The queue of an overloaded server grows by what it cannot serve, and that of a server
// with room to spare does not.
func TestGrowth(t *testing.T) {
	for _, test := range []struct{ rate, low, high float64 }{{0.5, 0, 0}, {0.7, 0, 0}, {1.2, 0.12, 0.28}, {2, 0.85, 1.15}, {10, 8.2, 9.8}} {
		wrong := 0
		for seed := range uint64(50) {
			random := rand.New(rand.NewPCG(seed, 1))
			if g, _, _ := growth(queue(random, test.rate, 3000, random.ExpFloat64)); g < test.low || g > test.high {
				wrong++
			}
		}
		if wrong > 2 {
			t.Errorf("rate %v: %d of 50 are not from %v to %v", test.rate, wrong, test.low, test.high)
		}
	}
	if g, _, _ := growth(queue(rand.New(rand.NewPCG(1, 1)), 10, 20, func() float64 { return 1 })); g != 0 {
		t.Errorf("growth %v of a few requests", g)
	}
}

// The error of a mean and of a percentile is about the variation between runs.
func TestErrorOf(t *testing.T) {
	const runs = 200
	metrics := []run.Metric{run.MustMetric("mean_e2el_ms"), run.MustMetric("p90_e2el_ms"), run.MustMetric("p99_e2el_ms")}
	errors, logs, squares := make([]float64, len(metrics)), make([]float64, len(metrics)), make([]float64, len(metrics))
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 2))
		records := queue(random, 0.5, 4000, random.ExpFloat64)
		var latencies []float64
		for i := range records {
			latencies = append(latencies, run.E2EL.Of(&records[i]).Value)
		}
		sample := stats.Of(latencies)
		for i, m := range metrics {
			value := math.Log(m.Statistic.Of(sample))
			errors[i], logs[i], squares[i] = errors[i]+errorOf(m, records)/runs, logs[i]+value/runs, squares[i]+value*value/runs
		}
	}
	for i, m := range metrics {
		if actual := math.Sqrt(squares[i] - logs[i]*logs[i]); errors[i] < 0.7*actual || errors[i] > 1.4*actual {
			t.Errorf("%s: errors of %.4f, where runs vary by %.4f", m.Key, errors[i], actual)
		}
	}
}

// An upper limit of 2 s is exceeded by the logarithm of the value over it, and a lower one
// by that of the limit over the value.
func TestExcessOf(t *testing.T) {
	for _, test := range []struct {
		condition string
		forbidden bool
		value     float64
		want      float64
	}{
		{"p99_ttft<2s", false, 4000, math.Ln2}, {"p99_ttft<2s", false, 1000, -math.Ln2}, {"p99_ttft>2s", true, 4000, math.Ln2},
		{"output_throughput>100", false, 50, math.Ln2}, {"output_throughput<100", true, 50, math.Ln2},
		{"failed<1%", false, 0, -noExcess}, {"failed<=0%", false, 0.5, noExcess},
	} {
		c, err := run.ParseCondition(test.condition)
		if err != nil {
			t.Fatal(err)
		}
		g := run.Gate{Condition: c, Forbidden: test.forbidden}
		if got := excessOf(g.JudgeValue(test.value, test.value, 1e6, "")); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s at %v: %v, want %v", test.condition, test.value, got, test.want)
		}
	}
	g := run.Gate{Condition: run.Condition{Limit: 1, Op: run.Less}}
	if got := excessOf(g.Unmet("not measured")); got != noExcess {
		t.Errorf("not measured: %v", got)
	}
}
