package experiment

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"moontide/analyze/measure"
	"moontide/analyze/slo"
	"moontide/replay/experiment/search"
	"moontide/replay/runfile"
	"moontide/trace"
)

// The queue of an overloaded server grows by what it cannot serve, and that of a server
// with room to spare does not.
func TestGrowth(t *testing.T) {
	queue := func(random *rand.Rand, rate float64, requests int) (due, done []time.Duration) {
		at, free := 0.0, 0.0
		for range requests { // one server, which serves one request per second on average
			at += random.ExpFloat64() / rate
			free = max(at, free) + random.ExpFloat64()
			due, done = append(due, time.Duration(at*1e9)), append(done, time.Duration(free*1e9))
		}
		return due, done
	}
	for _, test := range []struct{ rate, low, high float64 }{{0.5, 0, 0}, {0.7, 0, 0}, {1.2, 0.12, 0.28}, {2, 0.85, 1.15}, {10, 8.2, 9.8}} {
		wrong := 0
		for seed := range uint64(20) {
			if g := growth(queue(rand.New(rand.NewPCG(seed, 1)), test.rate, 3000)); g < test.low || g > test.high {
				wrong++
			}
		}
		if wrong > 1 {
			t.Errorf("rate %v: %d of 20 are not from %v to %v", test.rate, wrong, test.low, test.high)
		}
	}
	if g := growth(queue(rand.New(rand.NewPCG(1, 1)), 10, 20)); g != 0 {
		t.Errorf("growth %v of a few requests", g)
	}
}

// A search stops where other loads would not help: without a queue, where more requests
// only wait, or where the sessions offer no more. Overload shows that lower loads may help.
func TestPointless(t *testing.T) {
	trial := func(level, ttft, growth, inFlight, sent float64) (l Trial) {
		l.Growth, l.Point = growth, Point{Values: []runfile.Value{{Setting: "rate", Text: fmt.Sprint(level)}}}
		l.Judgements = []slo.Judgement{{Passed: ttft < 1, Value: trace.Some(ttft)}}
		l.Result = &Result{Metrics: &measure.Result{RequestRate: trace.Some(1.0), AchievedRate: trace.Some(sent)}}
		l.Metrics.E2EL.Mean = inFlight * 1000
		return l
	}
	invalid := func(level float64) Trial {
		l := trial(level, 0.5, 0, 0.1, level)
		l.Metrics.Verdict = measure.Verdict{Level: measure.Invalid, Evidence: []measure.Evidence{{Level: measure.Invalid, Text: "client lag"}}}
		return l
	}
	for _, test := range []struct {
		name   string
		load   string
		trials []Trial
		want   string
	}{
		{"one run that misses", "rate", []Trial{trial(4, 2, 0, 10, 4)}, ""},
		{"no queue", "rate", []Trial{trial(4, 2, 0, 0.1, 4)}, "a lower load would not help"},
		{"no queue in one request at a time", "max-concurrency", []Trial{trial(1, 2, 0, 0.1, 4)}, ""},
		{"INVALID twice", "rate", []Trial{invalid(4), invalid(2)}, ""},
		{"INVALID three times", "rate", []Trial{invalid(4), invalid(2), invalid(1)}, "3 runs were INVALID, the last with"},
		{"INVALID above a load that meets them", "rate", []Trial{trial(1, 0.5, 0, 1, 1), invalid(4), invalid(2), invalid(1.5)}, ""},
		{"overloaded", "rate", []Trial{trial(4, 2, 3, 0.1, 4)}, ""},
		{"a lower load meets them", "rate", []Trial{trial(1, 0.5, 0, 1, 1), trial(4, 2, 0, 0.1, 4)}, ""},
		{"more in flight only wait", "max-concurrency", []Trial{trial(8, 0.5, 0, 8, 9), trial(16, 0.5, 0, 16, 9)}, "more requests would only wait"},
		{"more in flight wait longer", "max-concurrency", []Trial{trial(8, 0.5, 0, 8, 9), trial(16, 0.9, 0, 16, 9)}, ""},
		{"a higher rate", "rate", []Trial{trial(1, 0.5, 0, 1, 1), trial(8, 0.5, 0, 8, 8)}, ""},
		{"a higher rate that the sessions follow in part", "rate", []Trial{trial(1, 0.5, 0, 1, 1), trial(2, 0.5, 0, 2, 2), trial(4, 0.5, 0, 3, 3)}, ""},
		{"a higher rate that the sessions do not follow", "rate", []Trial{trial(1, 0.5, 0, 1, 1), trial(4, 0.5, 0, 4, 4), trial(8, 0.5, 0, 4, 4.1)}, "the sessions offer at most 4.1 req/s"},
	} {
		s := &Set{Goal: &Goal{Setting: test.load}}
		if why := s.pointless(test.trials); (why != "") != (test.want != "") || !strings.Contains(why, test.want) {
			t.Errorf("%s: stops because %q", test.name, why)
		}
	}
	f := Answer{Setting: "rate", Trials: []Trial{trial(4, 0.5, 0, 4, 3.9), trial(8, 0.5, 0, 4, 4.1)}}
	if l := invalid(4); l.Met() {
		t.Error("an INVALID run meets the objectives")
	}
	f.Trials = append(f.Trials, invalid(4))
	if at := f.At(4); at != &f.Trials[0] {
		t.Errorf("of two runs at a level, %+v", at)
	}
	if f.Load(4) != 4 || f.Load(8) != 4.1 || f.Load(16) != 16 {
		t.Errorf("loads %v, %v, %v", f.Load(4), f.Load(8), f.Load(16))
	}
}

// Runs are longer once the answer has a bracket, and closed loops neither measure their
// start nor their end.
func TestRequestsOfTrials(t *testing.T) {
	p90, err := slo.ParseConditions("p90_ttft<1s")
	if err != nil {
		t.Fatal(err)
	}
	bracket := search.Answer{Found: true, Limited: true}
	for _, test := range []struct {
		name    string
		load    string
		virtual bool
		level   float64
		so      search.Answer
		want    int
	}{
		{"what the percentile needs", "max-concurrency", false, 1, search.Answer{}, 100 + 3},
		{"ten for each in flight", "max-concurrency", false, 100, search.Answer{}, 1000 + 300},
		{"three times in a bracket", "max-concurrency", false, 1, bracket, 300 + 3},
		{"ten times as many in virtual time", "max-concurrency", true, 1, bracket, 3000 + 3},
		{"a minute of a rate", "rate", false, 10, search.Answer{}, 600},
	} {
		s := &Set{Goal: &Goal{Setting: test.load, Gates: []slo.Gate{{Condition: p90[0]}}}}
		s.Base.Virtual = test.virtual
		if got := s.requests(test.level, nil, test.so); got != test.want {
			t.Errorf("%s: %d requests, want %d", test.name, got, test.want)
		}
	}
}
