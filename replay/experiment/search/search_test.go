package search_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/replay/experiment/search"
)

func Example() {
	// A queue with one server answers 12 requests per second on average, and a mean
	// response time of at most half a second is wanted.
	c := search.Config{Low: 0.01, High: 1000, Start: 1}
	responseTime := func(rate float64) float64 {
		if rate >= 12 {
			return math.Inf(1)
		}
		return 1 / (12 - rate)
	}
	var trials []search.Trial
	for rate, ok := c.Next(trials); ok; rate, ok = c.Next(trials) {
		trials = append(trials, search.Trial{Level: rate, Met: responseTime(rate) <= 0.5})
	}
	a := c.Answer(trials)
	fmt.Printf("met at %v req/s, failed at %v, after %d trials\n", a.Level, a.Missed, len(trials))
	// Output: met at 10 req/s, failed at 10.5, after 9 trials
}

// run searches with outcomes from a function of the level.
func run(c search.Config, meets func(level float64) bool) (a search.Answer, trials []search.Trial) {
	for level, ok := c.Next(trials); ok; level, ok = c.Next(trials) {
		trials = append(trials, search.Trial{Level: level, Met: meets(level)})
	}
	return c.Answer(trials), trials
}

func drawConfig(t *rapid.T) search.Config {
	c := search.Config{
		Whole:   rapid.Bool().Draw(t, "whole"),
		Repeats: rapid.IntRange(0, 3).Draw(t, "repeats"),
	}
	if c.Whole {
		c.Low = float64(rapid.IntRange(1, 20).Draw(t, "low"))
		c.High = c.Low + float64(rapid.IntRange(0, 5000).Draw(t, "width"))
		c.Start = float64(rapid.IntRange(int(c.Low), int(c.High)).Draw(t, "start"))
		return c
	}
	c.Low = rapid.Float64Range(0.001, 10).Draw(t, "low")
	c.High = c.Low * rapid.Float64Range(1, 10_000).Draw(t, "ratio")
	return c
}

// With a threshold and no noise, the answer has the threshold between levels as close as
// the resolution. Objectives that all levels meet, or none, have an answer with one side.
func TestFindsThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		threshold := c.Low * math.Pow(c.High/c.Low, rapid.Float64Range(-0.1, 1.1).Draw(t, "place"))
		meets := func(level float64) bool { return level <= threshold }
		a, trials := run(c, meets)
		switch {
		case !a.Complete:
			t.Fatalf("answer %+v after %v", a, trials)
		case !meets(c.Low):
			if a.Found || a.Missed != c.Low {
				t.Fatalf("no level meets them, and the answer is %+v", a)
			}
		case meets(c.High):
			if !a.Found || a.Level != c.High || a.Limited {
				t.Fatalf("all levels meet them, and the answer is %+v", a)
			}
		case !meets(a.Level) || meets(a.Missed) || !a.Found || !a.Limited:
			t.Fatalf("threshold %v, answer %+v", threshold, a)
		case a.Missed/a.Level > 1.05+1e-6 && !(c.Whole && a.Missed-a.Level == 1):
			t.Fatalf("answer %+v leaves a gap", a)
		}
		if most := 2*math.Log2(c.High/c.Low) + 20; float64(len(trials)) > most {
			t.Fatalf("%d trials: more than %v: %v", len(trials), most, trials)
		}
	})
}

// Whatever the outcomes, a search ends within its range and its limit, continues from its
// trials in any order as if it had not been interrupted, and has an answer that all trials
// at its levels agree with.
func TestAnswerAgreesWithTrials(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		a, trials := run(c, func(float64) bool { return random.Float64() < share })
		if len(trials) > 64 {
			t.Fatalf("%d trials, answer %+v", len(trials), a)
		}
		for _, trial := range trials {
			if trial.Level < c.Low || trial.Level > c.High || c.Whole && trial.Level != math.Trunc(trial.Level) {
				t.Fatalf("level %v is not in the range of %+v", trial.Level, c)
			}
			if a.Found && trial.Level == a.Level && !trial.Met || a.Limited && trial.Level == a.Missed && trial.Met {
				t.Fatalf("%+v is against the answer %+v", trial, a)
			}
		}
		cut := rapid.IntRange(0, len(trials)).Draw(t, "cut")
		before := slices.Clone(trials[:cut])
		random.Shuffle(cut, func(i, j int) { before[i], before[j] = before[j], before[i] })
		for _, trial := range trials[cut:] {
			if level, ok := c.Next(before); !ok || level != trial.Level {
				t.Fatalf("continues with %v, %v in place of %v", level, ok, trial)
			}
			before = append(before, trial)
		}
		if again := c.Answer(before); fmt.Sprint(a) != fmt.Sprint(again) {
			t.Fatalf("answer %+v, then %+v", a, again)
		}
	})
}

// Objectives may be met beyond the first level that fails: the answer is up to that.
func TestNotMonotone(t *testing.T) {
	c := search.Config{Low: 1, High: 64, Whole: true}
	a, trials := run(c, func(level float64) bool { return level <= 4 || level == 6 })
	if a.Level != 6 || a.Missed != 7 || !a.Complete { // 5 was not tried
		t.Errorf("answer %+v after %v", a, trials)
	}
	trials = append(trials, search.Trial{Level: 5})
	if a := c.Answer(trials); a.Level != 4 || a.Missed != 5 || !a.Complete {
		t.Errorf("answer %+v after %v", a, trials)
	}
}

// Of systems whose runs have errors, the interval contains the truth, or the truth is as
// close to it as the resolution.
func TestErrors(t *testing.T) {
	const searches = 100
	for _, noise := range []float64{0, 0.01, 0.03} { // of the largest load, from run to run
		good := 0
		for seed := range uint64(searches) {
			random := rand.New(rand.NewPCG(seed, 2))
			truth := math.Exp(random.Float64()*6 - 1)
			c := search.Config{Low: 1e-3, High: 1e6, Start: 1, Repeats: 3, MaxTrials: 40}
			a, _ := run(c, func(level float64) bool { return level < truth*math.Exp(noise*random.NormFloat64()) })
			if a.Level <= truth*1.05 && truth <= a.Missed*1.05 {
				good++
			} else {
				t.Logf("errors of %v, seed %d: %v to %v in place of %v", noise, seed, a.Level, a.Missed, truth)
			}
		}
		if good < 95 {
			t.Errorf("errors of %v: %d of %d intervals contain or border the truth", noise, good, searches)
		}
	}
}

func TestCheck(t *testing.T) {
	good := search.Config{Low: 1, High: 8}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*search.Config){
		"no range": func(c *search.Config) { c.Low = 0 }, "empty": func(c *search.Config) { c.Low = 9 }, "NaN": func(c *search.Config) { c.High = math.NaN() },
		"infinite": func(c *search.Config) { c.High = math.Inf(1) }, "start": func(c *search.Config) { c.Start = 9 }, "no whole number": func(c *search.Config) { c.Whole, c.Low = true, 1.5 },
		"trials": func(c *search.Config) { c.MaxTrials = -1 }, "repeats": func(c *search.Config) { c.Repeats = -1 },
	} {
		c := good
		if change(&c); c.Check() == nil {
			t.Errorf("%s: no error", name)
		}
		if level, ok := c.Next(nil); ok {
			t.Errorf("%s: an invalid search begins at %v", name, level)
		}
		if c.Answer(nil).Complete {
			t.Errorf("%s: an invalid search is complete", name)
		}
	}
	if a := good.Answer(nil); a.Found || a.Limited || a.Complete {
		t.Errorf("without trials: %+v", a)
	}
}
