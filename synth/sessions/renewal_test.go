package sessions

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"moontide/trace/stats"
)

// The distribution with the larger likelihood is the one that gaps were drawn
// from, and its shape is found.
func TestGapDistribution(t *testing.T) {
	for _, c := range []struct {
		distribution string
		shape        float64
	}{
		{gammaGaps, .2}, {gammaGaps, .6}, {gammaGaps, 4}, {weibullGaps, .4}, {weibullGaps, .7}, {weibullGaps, 3},
	} {
		random := stats.NewStream(1, "gaps")
		gap := distuv.Gamma{Alpha: c.shape, Beta: 1, Src: random}.Rand
		if c.distribution == weibullGaps {
			gap = distuv.Weibull{K: c.shape, Lambda: 1, Src: random}.Rand
		}
		times := []float64{0}
		for range 4000 {
			times = append(times, times[len(times)-1]+1000*gap())
		}
		r := fitRenewal(times, 0, 0)
		if r.Distribution != c.distribution || math.Abs(r.Shape/c.shape-1) > .15 {
			t.Errorf("gaps of %+v: %s with shape %v", c, r.Distribution, r.Shape)
		}
	}
}

// A clock keeps the rate of each window, and the burstiness of the gaps.
func TestRenewalClock(t *testing.T) {
	for _, r := range []renewal{
		{[][2]float64{{0, 100e3}, {500, 100e3}, {0, 200e3}, {2000, 100e3}, {100, 500e3}}, gammaGaps, .5},
		{[][2]float64{{3000, 1e6}}, weibullGaps, .6},
		{[][2]float64{{7, 1e3}, {0, 5e3}}, gammaGaps, 20},
	} {
		a := arrivals{Renewal: &r}
		c := a.newClock(stats.NewStream(2, "clock"), 1, false)
		begin := 0.0
		at, _ := c.next()
		for round := range 3 {
			for i, w := range r.Windows {
				n := 0.0
				for ; at < begin+w[1]; at, _ = c.next() {
					n++
				}
				if begin += w[1]; math.Abs(n-w[0]) > 6*math.Sqrt(w[0])*r.cv() {
					t.Errorf("round %d: window %d of %+v has %v arrivals", round, i, r, n)
				}
			}
		}
	}
}

// Windows cover the source and have at least five arrivals or, where there are
// fewer, none.
func TestWindows(t *testing.T) {
	var times []float64
	for i := range 300 {
		times = append(times, 40_000+float64(i)*100)
	}
	for i := range 3 {
		times = append(times, 500_000+float64(i)*10_000)
	}
	windows := windowsOf(times, 1e6)
	arrivals, length := 0.0, 0.0
	for _, w := range windows {
		arrivals += w[0]
		length += w[1]
		if w[0] > 0 && w[0] < minRequests {
			t.Errorf("window %v", w)
		}
	}
	if arrivals != 300 || math.Abs(length-1e6) > 100 || windows[0][0] != 0 || windows[len(windows)-1][0] != 0 {
		t.Errorf("windows %v", windows)
	}
}

// A clock that holds the last regime repeats its windows; if there are no arrivals
// in them, none come.
func TestRenewalHeld(t *testing.T) {
	for _, r := range []renewal{
		{[][2]float64{{100, 8e3}, {0, 1e3}, {400, 1e3}}, gammaGaps, 1},
		{[][2]float64{{100, 8e3}, {400, 1e3}, {0, 1e3}}, gammaGaps, 1},
	} {
		a := arrivals{Renewal: &r, LastMs: 9e3}
		c := a.newClock(stats.NewStream(2, "clock"), 1, true)
		n := 0
		for at, _ := c.next(); at < 20e3; at, _ = c.next() {
			n++
		}
		if last := r.Windows[len(r.Windows)-1][0]; math.Abs(float64(n)-500-10*last) > 300 {
			t.Errorf("%+v: %d arrivals in twice the source's time", r, n)
		}
	}
}
