package check_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/trace/check"
)

// arriving makes rows of 64 to 2,000 tokens with a mean gap in ms. Their ids lead
// to no findings.
func arriving(n int, gap func(i int) float64) (all []trace.Request) {
	at := 0.0
	for i := range n {
		isl := 64 + i*7919%1936
		switch i {
		case 1:
			isl = 2*blockSize + 1
		case 2:
			isl = 4 * blockSize
		}
		all = append(all, trace.Request{Timestamp: trace.Some(at), InputLength: isl, OutputLength: 1 + i%300, HashIDs: chain(isl, 1, i+1)})
		at += gap(i)
	}
	return all
}

func TestUnits(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	poisson := func(mean float64) func(int) float64 {
		return func(int) float64 { return mean * random.ExpFloat64() }
	}
	const hour = 3_600_000
	// A few people over weeks: a request every few minutes at work, none at night.
	people := func(i int) float64 {
		if i%50 == 49 {
			return 14 * hour
		}
		return 150_000 * random.ExpFloat64()
	}
	// One of 500 gaps is some times as long as the others. The mean of 499 is 30 of
	// these where it is 31.9 of the others.
	pause := func(times float64) func(int) float64 {
		return func(i int) float64 {
			if i == 250 {
				return times * 290e3
			}
			return 290e3 + 5e3*math.Sin(float64(i))
		}
	}
	for _, test := range []struct {
		name string
		all  []trace.Request
		want check.Kind // "" is none
		says string
	}{
		{"a service", arriving(500, poisson(290)), "", ""},
		{"a stress test of short prompts", arriving(5000, poisson(1.2)), check.TimeUnit, "in seconds they would be 0.8"},
		{"a quiet service in seconds", arriving(2000, poisson(5)), check.TimeUnit, "in seconds they would be 0.209 requests/s and 247 tokens/s over 2h39m"},
		{"a request in 18 s, long prompts, in seconds", huge(arriving(2000, poisson(18))), check.TimeUnit, "and 592 tokens/s over 9h"},
		{"a quiet service", arriving(2000, poisson(5000)), "", ""},
		{"a service in seconds", arriving(500, poisson(0.29)), check.TimeUnit, "in seconds they would be 3."},
		{"too few rows to tell", arriving(19, poisson(0.29)), "", ""},
		{"a few people over weeks", arriving(2000, people), "", ""},
		{"a service in microseconds", arriving(500, poisson(290e3)), check.TimeUnit, "in microseconds they would be 3."},
		{"a service in nanoseconds", arriving(500, poisson(290e6)), check.TimeUnit, "in nanoseconds they would be 3."},
		{"a pause of less than 30 mean gaps", arriving(500, pause(31.5)), check.TimeUnit, "without a pause"},
		{"a pause of more than 30 mean gaps", arriving(500, pause(32.3)), "", ""},
		{"slow, and too few rows to tell", arriving(99, poisson(290e3)), "", ""},
		{"later turns are not at once", turns(arriving(400, poisson(2))), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := run(t, test.all, check.Options{})
			var wants []want
			for _, f := range report.Findings {
				if f.Kind == test.want && strings.Contains(f.Evidence, test.says) && f.Severity == check.Warning {
					wants = append(wants, want{f.Kind, f.Severity, f.Count, f.Evidence, nil})
				}
			}
			if test.want != "" && wants == nil {
				wants = []want{{kind: test.want, evidence: test.says}}
			}
			compare(t, report, wants...)
		})
	}
}

// huge multiplies prompts by ten.
func huge(all []trace.Request) []trace.Request {
	for i := range all {
		all[i].InputLength *= 10
		all[i].HashIDs = chain(all[i].InputLength, 1, 100+i)
	}
	all[1].InputLength, all[1].HashIDs = 2*blockSize+1, chain(2*blockSize+1, 1, 99)
	return all
}

// turns makes all rows except every tenth a later turn of a session. These take as
// long as their responses, whatever the rate of the first turns.
func turns(all []trace.Request) []trace.Request {
	for i := range all {
		all[i].SessionID = string(rune('a'+i/10%26)) + string(rune('a'+i/260))
		if i%10 > 0 {
			before := all[i-1]
			all[i].Timestamp, all[i].Delay = never, trace.Some(900.0)
			all[i].InputLength = before.InputLength + 1000
			shared := before.InputLength / blockSize
			all[i].HashIDs = append(append([]uint64{}, before.HashIDs[:shared]...), chain(all[i].InputLength, 0, i+1)[shared:]...)
		}
	}
	return all
}

// jittered moves the second and third of three rows by a few milliseconds.
func jittered(all []trace.Request) []trace.Request {
	for i := range all {
		all[i].Timestamp.Value += float64(i % 3)
	}
	return all
}

func TestGridSeverity(t *testing.T) {
	paced := func(step float64, perTick, ticks int, every func(i int) bool) (all []trace.Request) {
		for i := range ticks {
			for range perTick {
				if every(i) {
					all = append(all, trace.Request{Timestamp: trace.Some(float64(i) * step), InputLength: 65 + len(all), OutputLength: 1 + len(all)%7})
				}
			}
		}
		return all
	}
	always := func(int) bool { return true }
	noIDs := func(n int) want { return want{check.NoIDs, check.Note, n, "", nil} }
	for _, test := range []struct {
		name     string
		all      []trace.Request
		severity check.Severity // "" is no finding
	}{
		{"bursts", paced(1000, 3, 40, always), check.Warning},
		{"a constant rate", paced(1000, 1, 40, always), ""},
		{"bursts with a jitter", jittered(paced(1000, 3, 40, always)), check.Warning},
		{"known to the second", paced(1000, 1, 90, func(i int) bool { return i*i%7 < 3 }), check.Note},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := run(t, test.all, check.Options{})
			if report.Grid == nil || report.Grid.Step != 1000 {
				t.Errorf("grid %+v", report.Grid)
			}
			for i := range report.Findings {
				report.Findings[i].Evidence = ""
			}
			n := len(test.all)
			wants := []want{noIDs(n)}
			if test.severity != "" {
				wants = []want{{check.TimeGrid, test.severity, n, "", nil}, noIDs(n)}
			}
			compare(t, report, wants...)
		})
	}
}

// talking makes sessions of ten turns, the later ones after delays in ms.
func talking(n int, delay func() float64) []trace.Request {
	random := rand.New(rand.NewPCG(4, 4))
	all := turns(arriving(n, func(int) float64 { return 2000 * random.ExpFloat64() }))
	for i := range all {
		if all[i].Delay.Set {
			all[i].Delay.Value = delay()
		}
	}
	return all
}

func TestDelayUnits(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	// Delays of people and tools are spread like this around a median.
	around := func(median, spread float64) func() float64 {
		return func() float64 { return median * math.Exp(spread*random.NormFloat64()) }
	}
	sometimes := func(share float64, delay func() float64) func() float64 {
		return func() float64 {
			if random.Float64() < share {
				return delay()
			}
			return 0
		}
	}
	// Many tools take milliseconds.
	tools := talking(400, func() float64 { return 8 })
	for i := range tools {
		if tools[i].Delay.Set {
			tools[i].DelayKind = trace.Tool
		}
	}
	// A capture writes milliseconds: short pauses are those of programs, such as a replay.
	capture := talking(500, func() float64 { return 1.5 })
	for i := range capture {
		capture[i].Extra = []byte(`{"recorded": {"outcome": "ok"}}`)
	}
	for _, test := range []struct {
		name string
		all  []trace.Request
		want check.Kind // "" is none
	}{
		{"tools of milliseconds", tools, ""},
		{"a capture", capture, ""},
		{"people", talking(500, around(20_000, 1.2)), ""},
		{"people, in seconds", talking(500, around(20, 1.2)), check.DelayUnit},
		{"people, in nanoseconds", talking(500, around(20e9, 1.2)), check.DelayUnit},
		{"people who come back after days", talking(500, around(3_600_000, 2)), ""},
		{"an agent's tools", talking(500, around(1500, 1.5)), ""},
		{"few delays that are not 0, in seconds", talking(1000, sometimes(0.1, around(20, 1))), check.DelayUnit},
		{"no delays", talking(500, around(0, 0)), ""},
		{"too few to tell", talking(20, around(20, 1)), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var wants []want
			report := run(t, test.all, check.Options{})
			if test.want != "" && len(report.Findings) > 0 {
				f := report.Findings[0]
				wants = append(wants, want{test.want, check.Warning, f.Count, f.Evidence, nil})
			}
			compare(t, report, wants...)
		})
	}
}
