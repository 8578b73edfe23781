package doc

import (
	"strconv"
	"strings"

	"moontide/analyze/report/figure"
	"moontide/trace"
)

// Plural returns the noun for n things.
func Plural(n int, thing string) string {
	if n == 1 {
		return thing
	}
	return thing + "s"
}

// Count formats a number of things with their noun: "1,200 requests".
func Count(n int, thing string) string { return Int(n) + " " + Plural(n, thing) }

// Int formats an integer with thousands separators.
func Int(n int) string { return separated(strconv.Itoa(n)) }

// Fixed formats a number with thousands separators.
func Fixed(v float64, decimals int) string {
	return separated(strconv.FormatFloat(v, 'f', decimals, 64))
}

// Duration formats milliseconds in a suitable unit: "1.26 s", "45.6 ms".
func Duration(ms float64) string {
	return figure.Axis{Quantity: figure.Duration}.Text(ms / 1000)
}

// FixedOr is Fixed, or [Absent] if the number is unknown.
func FixedOr(v trace.Opt[float64], decimals int) string {
	if !v.Set {
		return Absent
	}
	return Fixed(v.Value, decimals)
}

// Percent formats a share of 1 in percent, without the sign.
func Percent(share float64) string { return Fixed(100*share, 2) }

// PercentOr is Percent, or [Absent] if the share is unknown.
func PercentOr(share trace.Opt[float64]) string {
	share.Value *= 100
	return FixedOr(share, 2)
}

// Share formats part of whole in percent, with the sign.
func Share(part, whole int) string { return Percent(float64(part)/float64(whole)) + " %" }

func separated(number string) string {
	digits, negative := strings.CutPrefix(number, "-")
	whole, fraction, hasFraction := strings.Cut(digits, ".")
	if strings.Trim(whole, "0123456789") != "" {
		return number // an infinity
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if hasFraction {
		whole += "." + fraction
	}
	if negative {
		return "-" + whole
	}
	return whole
}
