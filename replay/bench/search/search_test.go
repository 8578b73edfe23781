package search_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/replay/bench/search"
)

func Example() {
	// A queue with one server answers 12 requests per second on average, and a mean
	// response time of at most half a second is wanted.
	c := search.Config{Goal: search.Largest, Low: 0.01, High: 1000, Start: 1}
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
	fmt.Println(a.Level, "req/s; at", a.Missed, "not any more;", a.Trials, "trials")
	// Output: 10 req/s; at 10.2 not any more; 11 trials
}

// run searches with outcomes from a function of the level and the number of trials.
func run(c search.Config, meets func(level float64, trial int) bool) (a search.Answer, trials []search.Trial) {
	for level, ok := c.Next(trials); ok; level, ok = c.Next(trials) {
		trials = append(trials, search.Trial{Level: level, Met: meets(level, len(trials))})
	}
	return c.Answer(trials), trials
}

func drawConfig(t *rapid.T) search.Config {
	c := search.Config{
		Goal:  rapid.SampledFrom([]search.Goal{search.Smallest, search.Largest}).Draw(t, "goal"),
		Whole: rapid.Bool().Draw(t, "whole"),
	}
	if c.Whole {
		c.Low = float64(rapid.IntRange(1, 20).Draw(t, "low"))
		c.High = c.Low + float64(rapid.IntRange(0, 5000).Draw(t, "width"))
		c.Start = float64(rapid.IntRange(int(c.Low), int(c.High)).Draw(t, "start"))
		return c
	}
	c.Low = rapid.Float64Range(0.001, 10).Draw(t, "low")
	c.High = c.Low * rapid.Float64Range(1, 10_000).Draw(t, "ratio")
	c.Resolution = rapid.SampledFrom([]float64{0, 0.001, 0.1, 1}).Draw(t, "resolution")
	return c
}

// With a threshold and no noise, the answer is the last level before the threshold: exactly
// for whole numbers, else within the resolution.
func TestFindsThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		threshold := c.Low * math.Pow(c.High/c.Low, rapid.Float64Range(-0.1, 1.1).Draw(t, "place"))
		meets := func(level float64) bool {
			if c.Goal == search.Smallest {
				return level >= threshold
			}
			return level <= threshold
		}
		a, trials := run(c, func(level float64, _ int) bool { return meets(level) })
		if !a.Complete || len(a.Exceptions) > 0 {
			t.Fatalf("answer %+v after %v", a, trials)
		}
		easiest, hardest, step := c.Low, c.High, 1.0
		if c.Goal == search.Smallest {
			easiest, hardest, step = c.High, c.Low, -1
		}
		switch {
		case !meets(easiest):
			if a.Found || a.Missed != easiest {
				t.Fatalf("no level meets them, and the answer is %+v", a)
			}
		case meets(hardest):
			if !a.Found || a.Level != hardest || a.Limited {
				t.Fatalf("all levels meet them, and the answer is %+v", a)
			}
		case !meets(a.Level) || meets(a.Missed) || !a.Found || !a.Limited:
			t.Fatalf("threshold %v, answer %+v", threshold, a)
		case c.Whole && a.Missed != a.Level+step:
			t.Fatalf("answer %+v leaves a gap", a)
		case !c.Whole:
			resolution := c.Resolution
			if resolution == 0 {
				resolution = 0.02
			}
			if ratio := max(a.Missed, a.Level) / min(a.Missed, a.Level); ratio > 1+resolution+1e-6 {
				t.Fatalf("answer %+v leaves a gap of %v", a, ratio)
			}
		}
		most := 2*math.Log2(c.High/c.Low) + 14 + 6
		if float64(len(trials)) > most {
			t.Fatalf("%d trials: more than %v: %v", len(trials), most, trials)
		}
	})
}

// Whatever the outcomes, a search ends, and its answer agrees with its trials, of which
// the majority at each level counts.
func TestAnswerAgreesWithTrials(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		seed := rapid.Uint64().Draw(t, "seed")
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		random := rand.New(rand.NewPCG(seed, 0))
		a, trials := run(c, func(float64, int) bool { return random.Float64() < share })
		if len(trials) > 64 || a.Trials != len(trials) {
			t.Fatalf("%d trials, answer %+v", len(trials), a)
		}
		votes := map[float64]int{}
		for _, trial := range trials {
			if trial.Level < c.Low || trial.Level > c.High || c.Whole && trial.Level != math.Trunc(trial.Level) {
				t.Fatalf("level %v is not in the range of %+v", trial.Level, c)
			}
			if votes[trial.Level]--; trial.Met {
				votes[trial.Level] += 2
			}
		}
		easier := func(a, b float64) bool { return a < b == (c.Goal == search.Largest) && a != b }
		for level, lead := range votes {
			meets, easierThanAnswer := lead > 0, a.Found && easier(level, a.Level)
			switch exception := slices.Contains(a.Exceptions, level); {
			case a.Found && level == a.Level:
				if !meets || exception {
					t.Fatalf("the answer is %+v: %v", a, trials)
				}
			case a.Limited && level == a.Missed:
				if meets || exception {
					t.Fatalf("%v limits the answer %+v: %v", level, a, trials)
				}
			case a.Found && a.Limited && easierThanAnswer != easier(level, a.Missed):
				t.Fatalf("%v is between the levels of %+v", level, a)
			case meets == easierThanAnswer == exception:
				t.Fatalf("%v meets them %v, and the answer is %+v: %v", level, meets, a, trials)
			case exception && easierThanAnswer != (c.Goal == search.Smallest):
				t.Fatalf("%v is on the wrong side of the answer %+v", level, a)
			}
		}
	})
}

// A search that is resumed with its trials, in any order, continues as if it had not been
// interrupted.
func TestResumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		a, trials := run(c, func(float64, int) bool { return random.IntN(3) > 0 })
		cut := rapid.IntRange(0, len(trials)).Draw(t, "cut")
		before := slices.Clone(trials[:cut])
		random.Shuffle(cut, func(i, j int) { before[i], before[j] = before[j], before[i] })
		for _, trial := range trials[cut:] {
			if level, ok := c.Next(before); !ok || level != trial.Level {
				t.Fatalf("continues with %v, %v in place of %v", level, ok, trial)
			}
			before = append(before, trial)
		}
		if again := c.Answer(before); !equal(a, again) {
			t.Fatalf("answer %+v, then %+v", a, again)
		}
	})
}

func equal(a, b search.Answer) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// Objectives may be met at some levels on the wrong side of the answer. The largest load
// is one up to which all loads meet them; the smallest deployment may be alone. Either
// way the exception is named.
func TestNotMonotone(t *testing.T) {
	c := search.Config{Goal: search.Largest, Low: 1, High: 64, Whole: true}
	a, trials := run(c, func(level float64, _ int) bool { return level <= 4 || level == 6 })
	if a.Level != 4 || a.Missed != 5 || !slices.Equal(a.Exceptions, []float64{6}) || !a.Complete {
		t.Errorf("largest: answer %+v after %v", a, trials)
	}
	c.Goal = search.Smallest
	a, trials = run(c, func(level float64, _ int) bool { return level == 2 })
	if a.Level != 2 || a.Missed != 1 || !slices.Equal(a.Exceptions, []float64{3}) || !a.Complete {
		t.Errorf("smallest: answer %+v after %v", a, trials)
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
		"goal": func(c *search.Config) { c.Goal = 2 }, "resolution": func(c *search.Config) { c.Resolution = -1 }, "trials": func(c *search.Config) { c.MaxTrials = -1 },
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
