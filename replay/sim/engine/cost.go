package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

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
