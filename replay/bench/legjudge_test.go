package bench

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"moontide/analyze/run"
	"moontide/replay"
	"moontide/replay/bench/search"
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
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
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
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
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

// A closed loop that is slow to settle has a larger error than its batches show.
func TestDriftOf(t *testing.T) {
	p90 := run.MustMetric("p90_e2el_ms")
	for _, test := range []struct{ factor, low, high float64 }{{1, 0, 0.03}, {2, 0.3, 0.4}, {0.5, 0.3, 0.4}} {
		random := rand.New(rand.NewPCG(1, 3))
		var records []replay.Record
		for i := range 4000 {
			ms := 100 + 10*random.NormFloat64()
			if i >= 2000 {
				ms *= test.factor
			}
			first := trace.Some(time.Duration(1))
			records = append(records, replay.Record{Class: replay.OK, Sent: first, First: first, Done: time.Duration(ms * 1e6), Last: trace.Some(time.Duration(ms * 1e6))})
		}
		if got := driftOf(p90, records); got < test.low || got > test.high {
			t.Errorf("values times %v: %v is not from %v to %v", test.factor, got, test.low, test.high)
		}
	}
	if got := driftOf(run.MustMetric("request_throughput"), nil); got != 0 {
		t.Errorf("no latency: %v", got)
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

// A search stops where other loads would not help: without a queue, or if a quarter of the
// load misses an objective by as much. In overload the excess does not depend on the load,
// and a lower one that meets the objectives shows that lower loads help.
func TestPointless(t *testing.T) {
	leg := func(level, excess, growth, inFlight float64) (l LoadLeg) {
		l.Level, l.Excess, l.Growth = level, excess, growth
		l.Tightest.Passed = excess < 0
		l.Judgements = []run.Judgement{l.Tightest}
		l.LegResult.Result = &Result{Metrics: &run.Result{}}
		l.Metrics.RequestRate = trace.Some(1.0)
		l.Metrics.E2EL.Mean = inFlight * 1000
		return l
	}
	for _, test := range []struct {
		name string
		axis Axis
		legs []LoadLeg
		want bool
	}{
		{"one run that misses", Rate, []LoadLeg{leg(4, 0.5, 0, 10)}, false},
		{"no queue", Rate, []LoadLeg{leg(4, 0.5, 0, 0.1)}, true},
		{"as bad at a quarter of the load", Rate, []LoadLeg{leg(4, 0.5, 0, 10), leg(1, 0.5, 0, 8)}, true},
		{"better at a quarter of the load", Rate, []LoadLeg{leg(4, 0.5, 0, 10), leg(1, 0.4, 0, 8)}, false},
		{"overloaded at both loads", Rate, []LoadLeg{leg(4, 0.5, 3, 10), leg(1, 0.5, 0.5, 8)}, false},
		{"a lower load meets them", Rate, []LoadLeg{leg(1, -0.5, 0, 1), leg(1040, 0.5, 650, 90), leg(371, 0.5, 0, 80)}, false},
		{"more in flight only wait", Concurrency, []LoadLeg{leg(16, -0.9, 0, 16), leg(64, -0.9, 0, 64)}, true},
		{"as met at a higher rate", Rate, []LoadLeg{leg(16, -0.9, 0, 16), leg(64, -0.9, 0, 64)}, false},
	} {
		c := &LoadSearchConfig{SweepConfig: SweepConfig{Sweep: Sweep{Axis: test.axis}}}
		if why := c.pointless(test.legs); (why != "") != test.want {
			t.Errorf("%s: stops because %q", test.name, why)
		}
	}
}

// Runs are longer where the answer is uncertain, in proportion to the square of the
// interval's width, and closed loops neither measure their start nor their end.
func TestRequestsOfLegs(t *testing.T) {
	p90, err := run.ParseConditions("p90_ttft<1s")
	if err != nil {
		t.Fatal(err)
	}
	answer := func(from, to float64) search.Answer {
		return search.Answer{Found: true, Limited: true, From: from, To: to}
	}
	for _, test := range []struct {
		name    string
		axis    Axis
		virtual bool
		level   float64
		so      search.Answer
		want    int
	}{
		{"what the percentile needs", Concurrency, false, 1, search.Answer{}, 100 + 3},
		{"ten for each in flight", Concurrency, false, 100, search.Answer{}, 1000 + 300},
		{"twice the width", Concurrency, false, 1, answer(1, math.Exp(2*aimedWidth/math.Sqrt2)), 200 + 3},
		{"at most three times", Concurrency, false, 1, answer(1, 2), 300 + 3},
		{"at most ten times in virtual time", Concurrency, true, 1, answer(1, 2), 30_000 + 3},
		{"a minute of a rate", Rate, false, 10, search.Answer{}, 600},
	} {
		c := &LoadSearchConfig{SweepConfig: SweepConfig{Sweep: Sweep{Axis: test.axis}}, Gates: []run.Gate{{Condition: p90[0]}}}
		c.Run.Virtual = test.virtual
		if got := c.requests(test.level, nil, test.so); math.Abs(float64(got-test.want)) > 1 {
			t.Errorf("%s: %d requests, want %d", test.name, got, test.want)
		}
	}
}
