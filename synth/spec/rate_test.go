package spec

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// anyRate draws a rate, including phases at 0.
func anyRate(t *rapid.T) rate {
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return steady(rapid.Float64Range(0.1, 100).Draw(t, "rate"))
	case 1:
		return cycle{
			mean:      rapid.Float64Range(0.1, 100).Draw(t, "mean"),
			amplitude: rapid.Float64Range(0, 1).Draw(t, "amplitude"),
			period:    rapid.Float64Range(0.1, 1000).Draw(t, "period"),
			peakTime:  rapid.Float64Range(0, 1000).Draw(t, "peak"),
		}
	}
	rate := rapid.OneOf(rapid.Just(0.), rapid.Float64Range(0.01, 100))
	parts := []phase{{length: 1, from: 1, to: 1}}
	for range rapid.IntRange(0, 4).Draw(t, "phases") {
		parts = append(parts, phase{
			length: rapid.Float64Range(0.1, 100).Draw(t, "length"),
			from:   rate.Draw(t, "from"), to: rate.Draw(t, "to"),
		})
	}
	return newPhases(parts)
}

// TestAfterInvertsIntegral: after returns the time at which the integral is
// reached, and no earlier one.
func TestAfterInvertsIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyRate(t)
		a := rapid.Float64Range(0, 500).Draw(t, "a")
		amount := rapid.OneOf(rapid.Just(0.), rapid.Float64Range(1e-6, 500)).Draw(t, "amount")
		b := p.after(a, amount)
		if math.IsInf(b, 1) {
			if far := p.integral(a, 1e9); far >= amount {
				t.Fatalf("never, but the integral comes to %v", far)
			}
			return
		}
		slack := 1e-7 * (1 + amount + p.integral(0, a))
		if got := p.integral(a, b); b < a || math.Abs(got-amount) > slack {
			t.Fatalf("from %v to %v it is %v, want %v", a, b, got, amount)
		}
	})
}

func times(t *testing.T, text string) []float64 {
	t.Helper()
	var at []float64
	for _, r := range draw(t, text) {
		at = append(at, math.Round(r.Timestamp.Value*1000)/1e6)
	}
	return at
}

// windows counts arrivals in equal windows from 0.
func windows(at []float64, length float64, n int) []float64 {
	counts := make([]float64, n)
	for _, a := range at {
		if i := int(a / length); i < n {
			counts[i]++
		}
	}
	return counts
}

// TestCountsFollowTheRate compares counts in windows with the integral of the
// rate: for Poisson arrivals each is a Poisson number, and their sum of squares
// a chi-square one, neither too large nor too small.
func TestCountsFollowTheRate(t *testing.T) {
	const sized = "isl: 1\nosl: 1\nseed: 3\n"
	for name, tc := range map[string]struct {
		text           string
		length, amount float64 // of the windows, and of time
		rate           func(t float64) float64
	}{
		"steady": {"rate: 20\nduration: 1000", 20, 1000, func(float64) float64 { return 20 }},
		"ramp": {"rate: [{for: 500, from: 0, to: 40}, {for: 200, at: 10}, {for: 300, to: 1}]", 20, 1000, func(s float64) float64 {
			switch {
			case s < 500:
				return 0.08 * s
			case s < 700:
				return 10
			}
			return 10 - 0.03*(s-700)
		}},
		"daily": {"rate: 0.5\narrival: {cycle: {amplitude: 0.9, peak: 14h}}\nduration: 48h", 3600, 48 * 3600, func(s float64) float64 {
			return 0.5 * (1 + 0.9*math.Cos(2*math.Pi*(s-14*3600)/86400))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n := int(tc.amount / tc.length)
			var chi, cells float64
			for i, got := range windows(times(t, sized+tc.text), tc.length, n) {
				var want float64
				for k := range 100 {
					want += tc.rate((float64(i)+(float64(k)+0.5)/100)*tc.length) * tc.length / 100
				}
				if want == 0 {
					if got > 0 {
						t.Errorf("%v arrivals in window %d, at a rate of 0", got, i)
					}
					continue
				}
				chi, cells = chi+(got-want)*(got-want)/want, cells+1
			}
			// Chi-square has this mean and standard deviation.
			if off := (chi - cells) / math.Sqrt(2*cells); math.Abs(off) > 3.5 {
				t.Errorf("chi-square of %v windows is %.1f", cells, chi)
			}
		})
	}
}

// TestCountsVary: nothing is rescaled to hit the rate, so counts over seeds
// have the variance of the process: the mean times cv^2 for a renewal process.
func TestCountsVary(t *testing.T) {
	for arrival, cv := range map[string]float64{"poisson": 1, "{process: gamma, cv: 2}": 2, "{cv: 0.5}": 0.5, "constant": 0} {
		const seeds, mean = 60, 500.
		var sum, squares float64
		for seed := range seeds {
			n := float64(len(draw(t, fmt.Sprintf("isl: 1\nosl: 1\nrate: 5\nduration: 100\nseed: %d\narrival: %s", seed, arrival))))
			sum, squares = sum+n, squares+n*n
		}
		got := sum / seeds
		variance := squares/seeds - got*got
		if slack := 4*cv*math.Sqrt(mean/seeds) + cv*cv + 1e-9; math.Abs(got-mean) > slack {
			t.Errorf("%s: %v requests on average, want %v", arrival, got, mean)
		}
		if want := cv * cv * mean; math.Abs(variance-want) > 0.6*want {
			t.Errorf("%s: the variance of the count is %.1f, want %.1f", arrival, variance, want)
		}
	}
}

// TestBursts: the mean rate stays, the states have their rates and their share
// of the time, and requests come in bursts.
func TestBursts(t *testing.T) {
	at := times(t, "isl: 1\nosl: 1\nrate: 10\nduration: 20000\narrival: {bursts: {on: 10, off: 30, ratio: 0.1}}")
	const mean = 10.
	// The index of dispersion of counts in long windows is 1 + 2 V tau / mean,
	// with V the variance of the rate and tau 1/(1/on + 1/off).
	high := mean / (0.25 + 0.1*0.75)
	v, tau := 0.25*0.75*(0.9*high)*(0.9*high), 7.5
	want := 1 + 2*v*tau/mean
	counts := windows(at, 500, 40)
	var sum, squares float64
	for _, c := range counts {
		sum, squares = sum+c/40, squares+c*c/40
	}
	if got := sum / 500; math.Abs(got-mean) > 0.8 {
		t.Errorf("rate is %.2f, want %v", got, mean)
	}
	if got := (squares - sum*sum) / sum; math.Abs(got-want) > 0.5*want {
		t.Errorf("index of dispersion is %.0f, want %.0f", got, want)
	}
	if silent := times(t, "isl: 1\nosl: 1\nrate: 10\nduration: 2000\narrival: {bursts: {on: 1, off: 9}}"); len(silent) < 14000 || len(silent) > 26000 {
		t.Errorf("%d requests of bursts between silence, want about 20000", len(silent))
	}
}

func TestConstantArrivals(t *testing.T) {
	if got := fmt.Sprint(times(t, "isl: 1\nosl: 1\nrate: 4\narrival: constant\nnum_requests: 4")); got != "[0 0.25 0.5 0.75]" {
		t.Errorf("at 4 a second: %s", got)
	}
	// At 2 t requests a second the k-th comes at sqrt(k).
	if got := fmt.Sprint(times(t, "isl: 1\nosl: 1\nrate: [{for: 3, from: 0, to: 6}]\narrival: constant\nnum_requests: 5")); got != "[0 1 1.414214 1.732051 2]" {
		t.Errorf("on a ramp: %s", got)
	}
}
