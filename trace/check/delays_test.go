package check_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"moontide/trace"
	"moontide/trace/check"
)

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
		{"people, in microseconds", talking(500, around(20e6, 1.2)), check.DelayUnit},
		{"people, in nanoseconds", talking(500, around(20e9, 1.2)), check.DelayUnit},
		{"people who come back after days", talking(500, around(3_600_000, 2)), ""},
		{"an agent's tools", talking(500, around(1500, 1.5)), ""},
		{"tools that are quick, and a build", talking(500, around(40, 3)), ""},
		{"an agent's tools, in seconds", talking(500, around(1.5, 1.5)), check.DelayUnit},
		{"few delays that are not 0, in seconds", talking(1000, sometimes(0.1, around(20, 1))), check.DelayUnit},
		{"no delays", talking(500, around(0, 0)), ""},
		{"hardly any delay", talking(500, around(0.05, 0.5)), ""},
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
