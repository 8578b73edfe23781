package stats

import "strconv"

// Plain formats a number in full precision, without an exponent and separators.
func Plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// Significant rounds a number to significant digits.
func Significant(x float64, digits int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	return rounded
}
