// Package search finds the highest level, such as a request rate, at which a system meets
// its objectives.
//
// A search is a function of the trials so far, so it can be stopped and resumed.
// [Config.Next] returns the next level, [Config.Answer] the result so far:
//
//	c := search.Config{Low: 1, High: 1024, Repeats: 3}
//	var trials []search.Trial
//	for level, ok := c.Next(trials); ok; level, ok = c.Next(trials) {
//		trials = append(trials, search.Trial{Level: level, Met: measure(level)})
//	}
//	answer := c.Answer(trials)
//
// The search brackets the answer in steps of a factor of 2, bisects until the levels on
// both sides are within 5 %, and then repeats these two. A level meets the objectives if
// all of its trials do, and fails if none does. Around a level with both outcomes, the
// answer is the levels on both sides of it.
//
// The package runs no trials and reads no clock.
package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Config describes a search. Low and High are required.
type Config struct {
	Low, High float64 // range of levels, above 0
	Start     float64 // the first level to try; 0 is Low
	Whole     bool    // levels are whole numbers
	// Repeats is the number of trials at the levels of the answer. 0 is 1, for
	// deterministic trials.
	Repeats   int
	MaxTrials int // 0 is 64
}

// Trial is the outcome of a run at a level.
type Trial struct {
	Level float64
	Met   bool // the run met the objectives
}

// Answer is the result of a search: "met at Level, failed at Missed".
type Answer struct {
	// Level is the highest level that meets the objectives, of those up to the first that
	// fails. Found is false if there is none.
	Level float64
	Found bool
	// Missed is the lowest level that fails. Limited is false if there is none.
	Missed  float64
	Limited bool
	// Complete is false if more trials would narrow the interval from Level to Missed.
	Complete bool
}

const (
	defaultMaxTrials = 64
	lowest, highest  = 1e-9, 1e12
	bracketing       = 2    // factor between levels in search of a bracket
	resolution       = 0.05 // relative distance of levels that are close enough
)

// Check returns an error if c is invalid.
func (c Config) Check() error {
	whole := func(x float64) bool { return x == math.Trunc(x) }
	switch {
	case !(c.Low >= lowest && c.Low <= c.High && c.High <= highest):
		return fmt.Errorf("the range of levels from %v to %v is empty or not in %v to %v", c.Low, c.High, lowest, highest)
	case c.Start != 0 && !(c.Start >= c.Low && c.Start <= c.High):
		return fmt.Errorf("the first level %v is not from %v to %v", c.Start, c.Low, c.High)
	case c.Whole && !(whole(c.Low) && whole(c.High) && whole(c.Start)):
		return fmt.Errorf("levels must be whole numbers: %v to %v, starting at %v", c.Low, c.High, c.Start)
	case c.MaxTrials < 0 || c.Repeats < 0:
		return fmt.Errorf("the limit on trials or their repeats is negative: %d, %d", c.MaxTrials, c.Repeats)
	}
	return nil
}

// tried is a level and its trials.
type tried struct {
	level       float64
	trials, met int
}

func (t tried) meets() bool { return t.met == t.trials }
func (t tried) fails() bool { return t.met == 0 }

// levels returns the levels of trials, from low to high.
func levels(trials []Trial) (all []tried) {
	for _, t := range trials {
		i, found := slices.BinarySearchFunc(all, t.Level, func(a tried, level float64) int { return cmp.Compare(a.level, level) })
		if !found {
			all = slices.Insert(all, i, tried{level: t.Level})
		}
		if all[i].trials++; t.Met {
			all[i].met++
		}
	}
	return all
}

// bracket returns the index of the first level that fails, and of the last one before it
// that meets the objectives: len(all) and -1 if there is none.
func bracket(all []tried) (met, missed int) {
	if missed = slices.IndexFunc(all, tried.fails); missed < 0 {
		missed = len(all)
	}
	for met = missed - 1; met >= 0 && !all[met].meets(); met-- {
	}
	return met, missed
}

// Next returns the level to try after the given trials, which may be in any order. ok is
// false at the end of the search, and if c is invalid.
func (c Config) Next(trials []Trial) (level float64, ok bool) {
	if c.Check() != nil || len(trials) >= cmp.Or(c.MaxTrials, defaultMaxTrials) {
		return 0, false
	}
	return c.next(trials)
}

// next is Next without a limit on the trials.
func (c *Config) next(trials []Trial) (level float64, ok bool) {
	if len(trials) == 0 {
		return cmp.Or(c.Start, c.Low), true
	}
	all := levels(trials)
	met, missed := bracket(all)
	last := len(all) - 1
	switch {
	case missed > last && all[last].level != c.High:
		return min(c.rounded(all[last].level*bracketing), c.High), true
	case met < 0 && all[0].level != c.Low:
		return max(c.rounded(all[0].level/bracketing), c.Low), true
	}
	// The levels next to the bracket, which may have both outcomes, must be close.
	if met >= 0 && met < last {
		if level, open := c.between(all[met].level, all[met+1].level); open {
			return level, true
		}
	}
	if missed <= last && missed > 0 {
		if level, open := c.between(all[missed-1].level, all[missed].level); open {
			return level, true
		}
	}
	for _, i := range []int{met, missed} {
		if i >= 0 && i <= last && all[i].trials < c.Repeats {
			return all[i].level, true
		}
	}
	return 0, false
}

func (c *Config) rounded(level float64) float64 {
	if c.Whole {
		return max(1, math.Floor(level))
	}
	return tidy(level/1.05, level*1.05)
}

// between returns a level in the middle of two others. open is false if they are close.
func (c *Config) between(low, high float64) (level float64, open bool) {
	switch {
	case high <= low*(1+resolution)*(1+1e-9), c.Whole && high-low <= 1:
		return 0, false
	case c.Whole:
		return min(max(math.Round(math.Sqrt(low*high)), low+1), high-1), true
	}
	return tidy(low, high), true
}

// tidy returns the number with the fewest digits in the middle half of a range, on a log
// scale.
func tidy(low, high float64) float64 {
	middle := math.Sqrt(low * high)
	for digits := 0; digits < 15; digits++ {
		decimals := digits - int(math.Floor(math.Log10(low)))
		level := math.Round(middle/math.Pow10(-decimals)) * math.Pow10(-decimals)
		if decimals > 0 { // multiplying by 0.1 is not exact
			level = math.Round(middle*math.Pow10(decimals)) / math.Pow10(decimals)
		}
		if level*level >= low*middle && level*level <= high*middle {
			return level
		}
	}
	return middle
}

// Answer returns the result of the trials, during a search or after it.
func (c Config) Answer(trials []Trial) (a Answer) {
	if len(trials) == 0 {
		return a
	}
	all := levels(trials)
	met, missed := bracket(all)
	if met >= 0 {
		a.Level, a.Found = all[met].level, true
	}
	if missed < len(all) {
		a.Missed, a.Limited = all[missed].level, true
	}
	_, more := c.next(trials)
	a.Complete = !more && c.Check() == nil
	return a
}
