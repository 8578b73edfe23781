package figure

import (
	"math"
	"strconv"
	"strings"

	"moontide/trace/stats"
)

// Text formats a value as in ticks and tooltips, with three significant digits in a
// suitable unit: 1.25 s, 80 GiB, 36.6 %, 12.3k.
func (a Axis) Text(v float64) string { return a.Quantity.text(v) }

type unit struct {
	size float64
	name string
}

const (
	second = 1.0
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// units are in ascending order.
var units = map[Quantity][]unit{
	Number:   {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}},
	Bytes:    {{1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}, {1 << 30, " GiB"}, {1 << 40, " TiB"}, {1 << 50, " PiB"}},
	Percent:  {{0.01, " %"}},
	Duration: {{1e-9, " ns"}, {1e-6, " µs"}, {1e-3, " ms"}, {second, " s"}, {minute, " min"}, {hour, " h"}, {day, " d"}},
}

var one = unit{1, ""}

// unitFor returns the largest unit up to v.
func (q Quantity) unitFor(v float64) unit {
	v = math.Abs(v)
	if units[q] == nil || q == Number && v >= 1e15 {
		return one // written with an exponent
	}
	best := units[q][0]
	for _, u := range units[q] {
		// The tolerance keeps 0.1 + 0.2 style errors from writing 1000 ms.
		if v*(1+1e-9) >= u.size {
			best = u
		}
	}
	return best
}

func (q Quantity) text(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "−∞"
	case v == 0:
		return "0"
	}
	// Up to four digits are easier to read as they are: 1536, not 1.54k.
	if q == Number && math.Abs(v) < 10_000 && v == math.Trunc(v) {
		return written(v, 'f', 0)
	}
	u := q.unitFor(v)
	return significant(v/u.size) + u.name
}

// significant formats v with three significant digits or all before the point.
func significant(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 1e5 || abs < 1e-3:
		return written(v, 'g', 3)
	case abs >= 100:
		return written(v, 'f', 0)
	}
	return written(stats.Significant(v, 3), 'f', -1)
}

// exactly formats v with the number of decimals that its step requires.
func exactly(v, step float64) string {
	if v == 0 {
		return "0"
	}
	decimals := 0
	if step < 1 {
		decimals = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	if decimals > 9 || math.Abs(v) >= 1e9 {
		return written(v, 'g', 12)
	}
	return written(v, 'f', decimals)
}

// written formats a number with a true minus sign and a short exponent: 1e−7.
func written(v float64, format byte, digits int) string {
	s := strconv.FormatFloat(v, format, digits, 64)
	if !strings.ContainsAny(s, "e-") {
		return s
	}
	return shorter.Replace(s)
}

var shorter = strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e−", "-", "−")
