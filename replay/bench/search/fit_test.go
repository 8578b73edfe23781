package search_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"moontide/replay/bench/search"
)

// curve is the latency of a system by its load: flat, then growing without limit towards
// the capacity, and limited by the length of the run beyond.
type curve struct{ capacity, steepness, limit, floor float64 }

func (c curve) excess(level float64) float64 {
	u := level / c.capacity
	value := 1e9
	if u < 1 {
		value = 1 + c.steepness*u/(1-u)
	}
	if u > 0.9 { // a run of limited length
		value = min(value, c.floor*(1+20*max(u-1, 0)))
	}
	return math.Log(value / c.limit)
}

// threshold returns where the excess is 0, by bisection.
func (c curve) threshold() float64 {
	low, high := 0.0, 4*c.capacity
	for range 100 {
		if middle := (low + high) / 2; c.excess(middle) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

func drawCurve(random *rand.Rand) curve {
	c := curve{capacity: math.Exp(random.Float64()*6 - 1), steepness: math.Exp(random.Float64()*4 - 3), floor: 30}
	c.limit = 1 + c.steepness + random.Float64()*8
	return c
}

// search12 searches with at most 12 trials.
func search12(c search.Config, trial func(level float64) search.Trial) (search.Answer, []search.Trial) {
	c.MaxTrials = 12
	var trials []search.Trial
	for level, ok := c.Next(trials); ok; level, ok = c.Next(trials) {
		trials = append(trials, trial(level))
	}
	return c.Answer(trials), trials
}

// With a known excess, the answer is within the resolution of the truth in at most 12
// trials, with and without errors of a few percent.
func TestKnownExcess(t *testing.T) {
	const searches = 100
	for _, test := range []struct{ noise, within, share float64 }{{0, 0.02, 1}, {0.03, 0.03, 0.97}, {0.1, 0.05, 0.95}} {
		good, inside, trialsOfAll := 0, 0, 0
		for seed := range uint64(searches) {
			random := rand.New(rand.NewPCG(seed, 2))
			curve := drawCurve(random)
			c := search.Config{Goal: search.Largest, Low: 1e-3, High: 1e6, Start: 1}
			a, trials := search12(c, func(level float64) search.Trial {
				y := curve.excess(level) + test.noise*random.NormFloat64()
				trial := search.Trial{Level: level, Met: y < 0, Known: true, Excess: y, Error: test.noise}
				if level > curve.capacity {
					trial.Ceiling, trial.CeilingError = curve.capacity*(1+0.02*random.NormFloat64()), 0.02
				}
				return trial
			})
			truth := curve.threshold()
			off := math.Abs(a.Estimate/truth - 1)
			if off <= test.within {
				good++
			} else if testing.Verbose() {
				t.Logf("noise %v, seed %d: %v in place of %v (%.1f %%): %+v", test.noise, seed, a.Estimate, truth, 100*off, trials)
			}
			if a.From <= truth && truth <= a.To {
				inside++
			}
			trialsOfAll += len(trials)
		}
		t.Logf("errors of %v: %d of %d within %v, %d in the interval, %.1f trials", test.noise, good, searches, test.within, inside, float64(trialsOfAll)/searches)
		if share := float64(good) / searches; share < test.share {
			t.Errorf("noise %v: %.3f of the answers are within %v", test.noise, share, test.within)
		}
		if share := float64(inside) / searches; share < 0.93 {
			t.Errorf("noise %v: %.3f of the intervals cover the truth", test.noise, share)
		}
	}
}

// An estimate of the largest sustainable level that is far too low, as of a run that ended
// before its first answers, does not keep the search from loads that it sees sustained.
func TestWrongCeiling(t *testing.T) {
	curve := curve{capacity: 100, steepness: 1, limit: 5, floor: 30}
	c := search.Config{Goal: search.Largest, Low: 1e-3, High: 1e6, Start: 1}
	a, trials := search12(c, func(level float64) search.Trial {
		y := curve.excess(level)
		trial := search.Trial{Level: level, Met: y < 0, Known: true, Excess: y, Error: 0.03}
		if level > curve.capacity {
			trial.Ceiling, trial.CeilingError = curve.capacity/4, 0.3
		}
		return trial
	})
	if off := math.Abs(a.Estimate/curve.threshold() - 1); off > 0.03 {
		t.Errorf("%+v in place of %v: %+v", a, curve.threshold(), trials)
	}
}

// Trials with small values have small errors where rare events decide; they do not pull the
// answer to their side.
func TestErrorsThatGrowWithValues(t *testing.T) {
	const searches = 100
	sum := 0.0
	for seed := range uint64(searches) {
		random := rand.New(rand.NewPCG(seed, 4))
		a, _ := search12(search.Config{Goal: search.Largest, Low: 1, High: 1000, Start: 10}, func(level float64) search.Trial {
			rare := random.ExpFloat64() - 1 // mean 0
			y := 3*math.Log(level/100) + 0.1*rare
			return search.Trial{Level: level, Met: y < 0, Known: true, Excess: y, Error: 0.02 + 0.1*(rare+1)}
		})
		sum += math.Log(a.Estimate / 100)
	}
	if bias := sum / searches; math.Abs(bias) > 0.012 {
		t.Errorf("the answers are off by %+.4f on average", bias)
	}
}
