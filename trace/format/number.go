package format

import (
	"fmt"
	"math"
	"strconv"

	"moontide/trace"
)

// latest is the largest time in milliseconds that a trace can have.
const latest = 1e15

// powers are the powers of ten that are exact in a float64.
var powers = [23]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// decimal is a number of at most 15 digits: n / 10^places, both exact.
func decimal(b []byte) (n uint64, places int, ok bool) {
	digits, point := 0, -1
	for i, c := range b {
		switch d := c - '0'; {
		case d <= 9:
			n = n*10 + uint64(d)
			digits++
		case c == '.' && point < 0:
			point = i
		default:
			return 0, 0, false
		}
	}
	if point >= 0 {
		places = len(b) - 1 - point
	}
	return n, places, digits > 0 && digits <= 15
}

// number reads a decimal number, of which it takes scale times the value. The
// scale is a power of ten, so that the result is the correctly rounded one.
func number(b []byte, scale int) (float64, error) {
	if n, places, ok := decimal(b); ok {
		if places -= scale; places <= 0 {
			return float64(n) * powers[-places], nil
		}
		return float64(n) / powers[places], nil
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, fmt.Errorf("is not a number: %s", Quote(b))
		}
	}
	value, err := strconv.ParseFloat(string(b)+"e"+strconv.Itoa(scale), 64)
	if err != nil { // it had an exponent of its own, or is out of range
		if value, err = strconv.ParseFloat(string(b), 64); err == nil {
			value *= powers[scale]
		}
	}
	switch {
	case err == nil && !math.IsInf(value, 0):
		return value + 0, nil // -0 is 0
	case len(b) == 0:
		return 0, fmt.Errorf("is empty")
	case math.IsInf(value, 0):
		return 0, fmt.Errorf("is out of range: %s", Quote(b))
	}
	return 0, fmt.Errorf("is not a number: %s", Quote(b))
}

// seconds reads a time or a pause in seconds as milliseconds.
func seconds(b []byte) (float64, error) { return milli(b, 3) }

// millis reads a time or a pause in milliseconds.
func millis(b []byte) (float64, error) { return milli(b, 0) }

func milli(b []byte, scale int) (float64, error) {
	ms, err := number(b, scale)
	if err == nil && (ms < 0 || ms > latest) {
		unit := "ms"
		if scale == 3 {
			unit = "s"
		}
		err = fmt.Errorf("is out of range: %s %s", Quote(b), unit)
	}
	return ms, err
}

// length reads a number of tokens.
func length(b []byte) (int, error) {
	if n, places, ok := decimal(b); ok && places == 0 && n <= trace.MaxLength {
		return int(n), nil
	}
	n, err := number(b, 0)
	switch {
	case err != nil:
		return 0, err
	case n < 0 || n > trace.MaxLength:
		return 0, fmt.Errorf("is out of range: %s tokens", Quote(b))
	case n != math.Trunc(n):
		return 0, fmt.Errorf("is not a whole number: %s", Quote(b))
	}
	return int(n), nil
}

// keyed puts the name of a key or column before what is wrong with its value.
func keyed(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", key, err)
}
