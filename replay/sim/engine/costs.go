package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Costs determines the time of a step, which is the sum of its parts:
//
//	Step + PrefillStep (if prompt tokens are computed) + PrefillToken x prompt tokens
//	     + Attention x pairs + Sequence x sequences (or Decode) + ContextToken x context
//
// The part of a step below a nanosecond is carried over to the next step.
type Costs struct {
	Step         Cost // per step: reading weights, launching kernels
	PrefillStep  Cost // per step that computes prompt tokens, which for example no CUDA graph covers
	PrefillToken Cost // per prompt token computed
	// Attention is the cost per pair of a prompt token computed and a token
	// before it, which makes the prefill of a prompt quadratic in its length.
	Attention Cost
	Sequence  Cost // per decoding sequence; not used if Decode is not empty
	// Decode is the cost of decoding by the number of sequences: linear between
	// its entries, proportional to the number below the first, with the slope of
	// the last two beyond the last. Mixtures of experts grow concavely, engines
	// short of memory bandwidth convexly.
	Decode       DecodeTable
	ContextToken Cost // per token in the contexts of decoding sequences, whose KV is read
}

func (c *Costs) validate() error {
	for _, cost := range []struct {
		name  string
		value Cost
	}{
		{"a step", c.Step}, {"a step with prompt tokens", c.PrefillStep}, {"a prefill token", c.PrefillToken}, {"a pair of prompt tokens", c.Attention},
		{"a sequence", c.Sequence}, {"a context token", c.ContextToken},
	} {
		if cost.value < 0 || cost.value > maxCost {
			return fmt.Errorf("engine: cost of %s is not from 0 to %v: %v", cost.name, maxCost, cost.value)
		}
	}
	if err := c.Decode.validate(); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	return nil
}

// batch counts the work of a step: prompt tokens, their pairs with the tokens
// before them, decoding sequences, and the tokens of their contexts.
type batch struct{ prefill, pairs, sequences, context int }

// of returns the cost of a step that computes b.
func (c *Costs) of(b batch) Cost {
	cost := c.Step + times(b.context, c.ContextToken)
	if b.prefill > 0 {
		cost += c.PrefillStep + times(b.prefill, c.PrefillToken) + times(b.pairs, c.Attention)
	}
	if len(c.Decode) > 0 {
		return cost + c.Decode.of(b.sequences)
	}
	return cost + times(b.sequences, c.Sequence)
}

// times returns n times a cost, at most ten days to prevent overflow.
func times(n int, c Cost) Cost {
	const most = 10 * 24 * Hour
	if c > 0 && n > int(most/c) {
		return most
	}
	return Cost(n) * c
}

// Cost is a time in picoseconds: what a token costs can be far less than the
// nanosecond of a [time.Duration].
type Cost int64

// Units of [Cost].
const (
	Picosecond  Cost = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
	Minute           = 60 * Second
	Hour             = 60 * Minute
)

// CostOf returns a duration as a cost, at most the largest possible.
func CostOf(d time.Duration) Cost {
	if most := time.Duration(math.MaxInt64 / Nanosecond); d > most || d < -most {
		return math.MaxInt64
	}
	return Cost(d) * Nanosecond
}

// Duration returns the cost in whole nanoseconds, rounded down.
func (c Cost) Duration() time.Duration { return time.Duration(c / Nanosecond) }

// In returns the cost as a number of units.
func (c Cost) In(unit Cost) float64 { return float64(c) / float64(unit) }

// String returns the cost like [time.Duration.String], with a fraction of
// nanoseconds if there is one: "46.7ns".
func (c Cost) String() string {
	if c%Nanosecond == 0 {
		return c.Duration().String()
	}
	unit, name := Nanosecond, "ns"
	switch {
	case c >= Millisecond || c <= -Millisecond:
		unit, name = Millisecond, "ms"
	case c >= Microsecond || c <= -Microsecond:
		unit, name = Microsecond, "µs"
	}
	return strconv.FormatFloat(c.In(unit), 'f', -1, 64) + name
}

// ParseCost parses a duration such as 46.7ns, 15us, 1m3s or 20ps.
func ParseCost(s string) (Cost, error) {
	for _, unit := range []struct {
		name string
		cost Cost
	}{{"ps", Picosecond}, {"ns", Nanosecond}, {"us", Microsecond}, {"µs", Microsecond}, {"ms", Millisecond}} {
		number, found := strings.CutSuffix(s, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			break
		}
		if c := math.Round(n * float64(unit.cost)); math.Abs(c) < math.MaxInt64 {
			return Cost(c), nil
		}
		return 0, fmt.Errorf("time %q is too large", s)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("time %q: want a number with a unit such as 46.7ns, 15us or 4ms", s)
	}
	return CostOf(d), nil
}
