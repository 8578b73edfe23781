// Package search finds the level at which a system stops to meet its objectives: the
// fewest engines, the highest request rate or the highest concurrency.
//
// A search is a function of the trials so far, so it can be stopped and resumed.
// [Config.Next] says which level to try next, [Config.Answer] what is known:
//
//	c := search.Config{Goal: search.Largest, Low: 1, High: 1024, Whole: true}
//	var trials []search.Trial
//	for level, ok := c.Next(trials); ok; level, ok = c.Next(trials) {
//		trials = append(trials, search.Trial{Level: level, Met: measure(level)})
//	}
//	answer := c.Answer(trials)
//
// The search doubles the level until it has one that meets the objectives and one that
// does not, and bisects the range between them. Then it checks the answer: with Votes,
// it repeats the trials next to the answer, and a level meets the objectives if most of
// its trials do. It also tries the levels beyond those two. Objectives need not be met on
// one side of the answer only: see [Answer].
//
// Trials may also know by how much they meet or miss the objectives, and how exactly:
// see [Trial]. Then the search brackets the answer in larger steps, places the next
// level where a monotone fit of all trials crosses the objectives, and repeats levels
// until the confidence interval of that crossing is as narrow as the resolution.
//
// Nothing here runs trials or reads a clock.
package search

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Goal is which level a search looks for.
type Goal int

const (
	// Smallest finds the smallest level that meets the objectives: few engines are
	// hard, many are easy.
	Smallest Goal = iota
	// Largest finds the largest level that meets them: low loads are easy.
	Largest
)

// Config describes a search. Low and High are required.
type Config struct {
	Goal      Goal
	Low, High float64 // range of levels, above 0
	Start     float64 // the first level to try; 0 is Low
	Whole     bool    // levels are whole numbers
	// Resolution is the relative distance of levels at which the search ends, unless
	// they are whole numbers; 0 is 0.02.
	Resolution float64
	// Votes is the number of trials that decide a level next to the answer; 0 is 1,
	// for trials that give the same result each time.
	Votes     int
	MaxTrials int // 0 is 64
}

// Trial is the outcome of a run at a level.
type Trial struct {
	Level float64
	Met   bool // the run met the objectives
	// Known is set if Excess is known: the natural logarithm of a metric over its limit,
	// or for a lower limit of the limit over the metric, of the objective that is closest
	// to failing. It is below 0 if the objectives are met. Error is its standard error, 0
	// if it is exact.
	Known         bool
	Excess, Error float64
	// Ceiling is about the level that the system can sustain at all, such as the
	// throughput of an overloaded run; 0 is unknown.
	Ceiling float64
}

// Answer is what the trials show.
type Answer struct {
	// Level is the smallest level that meets the objectives; for [Largest], the largest
	// level up to which all that were tried meet them. Found is false if there is none.
	Level float64
	Found bool
	// Missed is the level next to it, on the hard side, that was tried and does not meet
	// the objectives. Limited is false if there is none.
	Missed  float64
	Limited bool
	// Exceptions are the levels that contradict the answer: easier ones that do not meet
	// the objectives or, for Largest, harder ones that do. The closest comes first.
	Exceptions []float64
	// Estimate is where the objectives are just met, and From to To its 95 % confidence
	// interval, of trials with a known excess that have levels on both sides. From is the
	// smaller number. Otherwise they are 0.
	Estimate, From, To float64
	// Complete is false if more trials are needed.
	Complete bool
	Trials   int
}

const (
	defaultResolution = 0.02
	defaultMaxTrials  = 64
	maxVotes          = 99
	lowest, highest   = 1e-9, 1e12
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
	case c.Goal != Smallest && c.Goal != Largest:
		return errors.New("the goal is neither the smallest nor the largest level")
	case c.Resolution != 0 && !(c.Resolution >= 1e-6 && c.Resolution <= 1):
		return fmt.Errorf("the resolution is not from 1e-6 to 1: %v", c.Resolution)
	case c.Votes < 0 || c.Votes > maxVotes:
		return fmt.Errorf("the number of votes is not from 0 to %d: %d", maxVotes, c.Votes)
	case c.MaxTrials < 0:
		return fmt.Errorf("the limit on trials is negative: %d", c.MaxTrials)
	}
	return nil
}

// tally holds the trials at one level.
type tally struct {
	level       float64
	met, missed int
}

// meets reports the majority; a tie does not meet the objectives.
func (t tally) meets() bool { return t.met > t.missed }

// decided reports whether further votes cannot change the majority.
func (c *Config) decided(t tally) bool { return 2*max(t.met, t.missed) > max(c.Votes, 1) }

// harder returns 1 if a is harder than b, -1 if it is easier.
func (c *Config) harder(a, b float64) int {
	if c.Goal == Largest {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}

// tallies returns the trials by level, the easiest first, and how many of them are up to
// the answer.
func (c *Config) tallies(trials []Trial) (all []tally, upTo int) {
	for _, t := range trials {
		i, found := slices.BinarySearchFunc(all, t.Level, func(of tally, level float64) int { return c.harder(of.level, level) })
		if !found {
			all = slices.Insert(all, i, tally{level: t.Level})
		}
		if t.Met {
			all[i].met++
		} else {
			all[i].missed++
		}
	}
	if c.Goal == Largest {
		for upTo < len(all) && all[upTo].meets() {
			upTo++
		}
		return all, upTo
	}
	for upTo = len(all); upTo > 0 && !all[upTo-1].meets(); {
		upTo--
	}
	return all, upTo
}

// exceptions returns the tallies that contradict the answer, the closest first.
func (c *Config) exceptions(all []tally, upTo int) (found []tally) {
	for _, t := range all[upTo:] {
		if t.meets() {
			found = append(found, t)
		}
	}
	for _, t := range slices.Backward(all[:upTo]) {
		if !t.meets() {
			found = append(found, t)
		}
	}
	return found
}

// Next returns the level to try after the given trials, in any order. ok is false at
// the end of the search, and if c is invalid.
func (c Config) Next(trials []Trial) (level float64, ok bool) {
	if c.Check() != nil || len(trials) >= cmp.Or(c.MaxTrials, defaultMaxTrials) {
		return 0, false
	}
	return c.next(trials)
}

func (c *Config) next(trials []Trial) (level float64, ok bool) {
	if isFitted(trials) {
		return c.nextFitted(trials)
	}
	all, upTo := c.tallies(trials)
	switch {
	case len(all) == 0:
		return cmp.Or(c.Start, c.Low), true
	case upTo == 0: // even the easiest level fails
		return c.extend(all[0], c.easiest())
	case upTo == len(all):
		return c.extend(all[upTo-1], c.hardest())
	}
	pass, miss := all[upTo-1], all[upTo]
	if level, open := c.between(pass.level, miss.level); open {
		return level, true
	}
	for _, t := range append([]tally{pass, miss}, c.exceptions(all, upTo)...) {
		if !c.decided(t) {
			return t.level, true
		}
	}
	if level, untried := c.beyond(pass.level, c.easiest(), all); untried {
		return level, true
	}
	return c.beyond(miss.level, c.hardest(), all)
}

func (c *Config) easiest() float64 {
	if c.Goal == Largest {
		return c.Low
	}
	return c.High
}

func (c *Config) hardest() float64 {
	if c.Goal == Largest {
		return c.High
	}
	return c.Low
}

// extend doubles or halves the level towards the end of the range. At the end, it
// repeats the trial until the level is decided.
func (c *Config) extend(from tally, end float64) (level float64, ok bool) {
	switch {
	case from.level == end:
		return end, !c.decided(from)
	case from.level < end:
		return min(2*from.level, end), true
	case c.Whole:
		return max(math.Floor(from.level/2), end), true
	}
	return max(from.level/2, end), true
}

// between returns a level between two; open is false if they are next to each other.
func (c *Config) between(a, b float64) (level float64, open bool) {
	low, high := min(a, b), max(a, b)
	if c.Whole {
		return min(max(math.Round(math.Sqrt(low*high)), low+1), high-1), high-low > 1
	}
	if high <= low*(1+c.resolution())*(1+1e-9) {
		return 0, false
	}
	return tidy(low, high), true
}

func (c *Config) resolution() float64 { return cmp.Or(c.Resolution, defaultResolution) }

// beyond returns the level next to another one, towards an end of the range, unless a
// level there was tried or is outside the range.
func (c *Config) beyond(level, end float64, all []tally) (next float64, untried bool) {
	near, far := level+1, level+1
	step := 1 + c.resolution()
	if level > end {
		near, far, step = level-1, level-1, 1/step
	}
	if !c.Whole {
		near, far = level*step, level*math.Pow(step, 4)
	}
	low, high := min(near, far), max(near, far)
	switch tried := func(t tally) bool { return low <= t.level && t.level <= high }; {
	case low < c.Low || high > c.High || slices.ContainsFunc(all, tried):
		return 0, false
	case c.Whole:
		return near, true
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

func isFitted(trials []Trial) bool {
	return slices.ContainsFunc(trials, func(t Trial) bool { return t.Known })
}

// Answer returns what the trials show, during a search or after it.
func (c Config) Answer(trials []Trial) Answer {
	if isFitted(trials) {
		return c.answerFitted(trials)
	}
	all, upTo := c.tallies(trials)
	a := Answer{Trials: len(trials)}
	if upTo > 0 {
		a.Level, a.Found = all[upTo-1].level, true
	}
	if upTo < len(all) {
		a.Missed, a.Limited = all[upTo].level, true
	}
	for _, t := range c.exceptions(all, upTo) {
		a.Exceptions = append(a.Exceptions, t.level)
	}
	_, more := c.next(trials)
	a.Complete = !more && c.Check() == nil
	return a
}
