// Package search finds the limit up to which a system meets its objectives: the smallest
// number of engines, the highest request rate or the highest concurrency.
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
// The search first brackets the answer, in steps of a factor of 2 or 4, and then tries levels
// where a monotone fit of all trials crosses the objectives. The fit knows trials by
// whether they met the objectives or, better, by how much: see [Trial]. If trials are
// exact, the search ends when the levels on both sides of the answer are as close as the
// resolution, and tries the levels next to them: objectives need not be met on one side
// of the answer only, see [Answer]. If trials have errors, it ends when the confidence
// interval of the crossing is about as narrow as the resolution.
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
	MaxTrials  int // 0 is 64
}

// Trial is the outcome of a run at a level.
type Trial struct {
	Level float64
	// Load is what the system got at the level, such as the rate that was really sent; 0
	// is the level.
	Load float64
	Met  bool // the run met the objectives
	// Known is set if Excess is known: the natural logarithm of a metric over its limit,
	// or for a lower limit of the limit over the metric, of the objective that is closest
	// to failing. It is below 0 if the objectives are met. Error is its standard error, 0
	// if it is exact.
	Known         bool
	Excess, Error float64
	// Ceiling is an estimate of the largest level that the system can sustain, of a run
	// that was above it, and CeilingError its relative standard error. 0 is unknown.
	Ceiling, CeilingError float64
}

// Answer is what the trials show.
type Answer struct {
	// Level is the smallest level that meets the objectives; for [Largest], the largest
	// level up to which all that were tried meet them. Of trials with errors it is the
	// one that is next to the estimate. Found is false if there is none.
	Level float64
	Found bool
	// Missed is the level next to it, on the hard side, that was tried and does not meet
	// the objectives. Limited is false if there is none.
	Missed  float64
	Limited bool
	// Exceptions are the levels that contradict the answer: easier ones that do not meet
	// the objectives or, for Largest, harder ones that do. The closest comes first.
	// Trials with errors have none.
	Exceptions []float64
	// Estimate is where the objectives are just met, and From to To its 95 % confidence
	// interval, of trials that have levels on both sides. From is the smaller number.
	// Otherwise they are 0. Of exact trials, the interval is from level to level.
	Estimate, From, To float64
	// Complete is false if more trials are needed.
	Complete bool
	Trials   int
}

const (
	defaultResolution = 0.02
	defaultMaxTrials  = 64
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
	case c.MaxTrials < 0:
		return fmt.Errorf("the limit on trials is negative: %d", c.MaxTrials)
	}
	return nil
}

// Next returns the level to try after the given trials, in any order. ok is false at
// the end of the search, and if c is invalid.
func (c Config) Next(trials []Trial) (level float64, ok bool) {
	if c.Check() != nil || len(trials) >= cmp.Or(c.MaxTrials, defaultMaxTrials) {
		return 0, false
	}
	return c.next(c.pooled(trials))
}

// next returns the level to try after trials whose errors are pooled.
func (c *Config) next(trials []Trial) (level float64, ok bool) {
	if len(trials) == 0 {
		return cmp.Or(c.Start, c.Low), true
	}
	f := c.fit(trials, nil)
	switch {
	case f.upTo == 0:
		return c.easier(f)
	case f.upTo == len(f.points):
		return c.harder(f)
	}
	if f.exact {
		return c.nextExact(f)
	}
	return c.nextNear(trials, f)
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

// easier returns a level to try if the easiest one tried does not meet the objectives.
func (c *Config) easier(f fitted) (level float64, ok bool) {
	from, end := f.points[0].level, c.easiest()
	if from == end {
		return 0, false
	}
	if c.Goal == Smallest {
		return min(c.rounded(from*f.step()), end), true
	}
	target := from / f.step()
	if hint := 0.9 * math.Exp(f.ceiling.x); f.ceiling.known() && hint < 0.9*from {
		target = max(hint, target/16)
	}
	return max(c.rounded(target), end), true
}

// harder returns a level to try if the hardest one tried meets the objectives.
func (c *Config) harder(f fitted) (level float64, ok bool) {
	from, end := f.points[len(f.points)-1], c.hardest()
	if from.level == end {
		return 0, false
	}
	factor := f.step()
	if from.y > -0.3 {
		factor = 1.5
	}
	if c.Goal == Smallest {
		return max(c.rounded(from.level/factor), end), true
	}
	next := c.rounded(from.level * factor)
	if c.Whole {
		next = max(next, from.level+1)
	}
	return min(next, end), true
}

func (c *Config) rounded(level float64) float64 {
	if c.Whole {
		return max(1, math.Floor(level))
	}
	return tidy(level/1.05, level*1.05)
}

// nextExact returns a level between the two next to the answer until they are close, and
// then one beyond each.
func (c *Config) nextExact(f fitted) (level float64, ok bool) {
	a, b := f.points[f.upTo-1], f.points[f.upTo]
	distance := math.Log1p(c.resolution())
	if c.Whole {
		distance = 0
	}
	if level, open := c.between(a, b, distance, f.known); open {
		return level, true
	}
	if level, untried := c.beyond(a.level, c.easiest(), f); untried {
		return level, true
	}
	return c.beyond(b.level, c.hardest(), f)
}

// beyond returns the level next to another one, towards an end of the range, unless a
// level there was tried or is outside the range.
func (c *Config) beyond(level, end float64, f fitted) (next float64, untried bool) {
	near, far := level+1, level+1
	step := 1 + c.resolution()
	if level > end {
		near, far, step = level-1, level-1, 1/step
	}
	if !c.Whole {
		near, far = level*step, level*math.Pow(step, 4)
	}
	low, high := min(near, far), max(near, far)
	switch tried := func(p point) bool { return low <= p.level && p.level <= high }; {
	case low < c.Low || high > c.High || slices.ContainsFunc(f.points, tried):
		return 0, false
	case c.Whole:
		return near, true
	}
	return tidy(low, high), true
}

// These limit the range in which trials with errors are placed and fitted, as logarithms
// of a ratio of levels.
const (
	closeBy = 0.12 // the bracket is narrow enough for a fit of the trials around it
	nearby  = 0.2  // trials further from the crossing have no part in its place
	offset  = 0.03 // trials are placed this far from the crossing, on both sides
)

// nextNear returns a level close to the crossing of trials with errors.
func (c *Config) nextNear(trials []Trial, f fitted) (level float64, ok bool) {
	a, b := f.points[f.upTo-1], f.points[f.upTo]
	if level, open := c.between(a, b, closeBy, f.known); open {
		return level, true
	}
	at, from, to := c.interval(trials, f)
	if to-from <= 2*math.Log1p(c.resolution()) {
		return 0, false
	}
	x := at - offset
	if f.weightNear(at, -1) > f.weightNear(at, 1) {
		x = at + offset
	}
	return c.place(x, c.easiest(), c.hardest(), true), true
}

// between returns a level between two that are next to each other in the fit: near the
// crossing if excesses are known, else in the middle. open is false if they are as close as
// a distance.
func (c *Config) between(a, b point, distance float64, known bool) (level float64, open bool) {
	gap, resolution := b.x-a.x, math.Log1p(c.resolution())
	if gap <= distance*(1+1e-6) || c.Whole && math.Abs(b.level-a.level) <= 1 {
		return 0, false
	}
	if !known {
		low, high := min(a.level, b.level), max(a.level, b.level)
		if c.Whole {
			return min(max(math.Round(math.Sqrt(low*high)), low+1), high-1), true
		}
		return tidy(low, high), true
	}
	x := a.x + gap*a.y/(a.y-b.y)
	// Beyond the crossing, on the side of the wider part, so that both parts shrink.
	if x-a.x < b.x-x {
		x += 0.4 * resolution
	} else {
		x -= 0.4 * resolution
	}
	edge := 0.15 * gap
	if gap < 4*resolution {
		edge = min(0.3*resolution, 0.5*gap)
	}
	return c.place(min(max(x, a.x+edge), b.x-edge), a.level, b.level, false), true
}

// place returns the level at x from one level to another, or between them.
func (c *Config) place(x, one, other float64, inclusive bool) float64 {
	if c.Goal == Smallest {
		x = -x
	}
	level := math.Exp(x)
	low, high := min(one, other), max(one, other)
	switch {
	case c.Whole && inclusive:
		return min(max(math.Round(level), low), high)
	case c.Whole:
		return min(max(math.Round(level), low+1), high-1)
	}
	step := math.Sqrt(1 + c.resolution()/4)
	level = tidy(level/step, level*step)
	switch {
	case inclusive:
		return min(max(level, low), high)
	case level <= low || level >= high:
		return math.Sqrt(low * high)
	}
	return level
}

func (c *Config) resolution() float64 { return cmp.Or(c.Resolution, defaultResolution) }

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

// Answer returns what the trials show, during a search or after it.
func (c Config) Answer(trials []Trial) Answer {
	a := Answer{Trials: len(trials)}
	if len(trials) == 0 {
		return a
	}
	trials = c.pooled(trials)
	f := c.fit(trials, nil)
	if f.upTo > 0 {
		a.Level, a.Found = f.points[f.upTo-1].level, true
	}
	if f.upTo < len(f.points) {
		a.Missed, a.Limited = f.points[f.upTo].level, true
	}
	if a.Found && a.Limited {
		estimate, from, to := c.interval(trials, f)
		if c.Goal == Smallest {
			from, estimate, to = -to, -estimate, -from
		}
		a.From, a.Estimate, a.To = math.Exp(from), math.Exp(estimate), math.Exp(to)
	}
	if f.exact {
		a.Exceptions = f.exceptions()
	}
	_, more := c.next(trials)
	a.Complete = !more && c.Check() == nil
	return a
}
