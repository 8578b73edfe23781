package stats

import (
	"math"
	"strconv"
)

// Plain formats a number in full precision, without an exponent and separators.
func Plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// Significant rounds a number to significant digits.
func Significant(x float64, digits int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return rounded
}

// Sum is a sum of floats that keeps the rounding error of each addition, so that it
// returns to its value when the same numbers are added and later subtracted (A.
// Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen",
// ZAMM 54, 1974). The zero value is 0.
type Sum struct{ sum, lost float64 }

// Add adds a number.
func (s *Sum) Add(x float64) {
	sum := s.sum + x
	if math.Abs(s.sum) >= math.Abs(x) {
		s.lost += s.sum - sum + x
	} else {
		s.lost += x - sum + s.sum
	}
	s.sum = sum
}

// AddSum adds another sum.
func (s *Sum) AddSum(other Sum) {
	s.Add(other.sum)
	s.Add(other.lost)
}

// Value returns the sum.
func (s *Sum) Value() float64 { return s.sum + s.lost }
