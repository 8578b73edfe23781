package format

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// The errors of this file begin with a verb: see keyed.

// parseNumber parses a decimal number and returns 10^exponent times its value,
// correctly rounded. Unlike JSON, CSV files may have leading zeros and a bare point.
func parseNumber(b []byte, exponent int) (float64, error) {
	whole, fraction, _ := strings.Cut(string(b), ".")
	if n, err := strconv.ParseUint(whole+fraction, 10, 53); err == nil && len(b) <= 16 { // exact, and faster
		if places := len(fraction) - exponent; places > 0 {
			return float64(n) / jsonscan.Pow10[places], nil
		}
		return float64(n) * jsonscan.Pow10[exponent-len(fraction)], nil
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, fmt.Errorf("is not a number: %s", Quote(b))
		}
	}
	value, err := strconv.ParseFloat(string(b)+"e"+strconv.Itoa(exponent), 64)
	if err != nil { // the text has an exponent, or is out of range
		if value, err = strconv.ParseFloat(string(b), 64); err == nil {
			value *= jsonscan.Pow10[exponent]
		}
	}
	switch {
	case err == nil && !math.IsInf(value, 0):
		return value + 0, nil // -0 is 0
	case len(b) == 0:
		return 0, errors.New("is empty")
	case math.IsInf(value, 0):
		return 0, fmt.Errorf("is out of range: %s", Quote(b))
	}
	return 0, fmt.Errorf("is not a number: %s", Quote(b))
}

// parseSeconds parses a time or duration in seconds and returns milliseconds.
func parseSeconds(b []byte) (float64, error) { return parseTime(b, 3, "s") }

// parseMilliseconds parses a time or duration in milliseconds.
func parseMilliseconds(b []byte) (float64, error) { return parseTime(b, 0, "ms") }

func parseTime(b []byte, exponent int, unit string) (float64, error) {
	ms, err := parseNumber(b, exponent)
	if err == nil && (ms < 0 || ms > trace.MaxMS) {
		err = fmt.Errorf("is out of range: %s %s", Quote(b), unit)
	}
	return ms, err
}

// parseLength parses a number of tokens. It accepts 12.0, which Python writes for
// a count in a float column.
func parseLength(b []byte) (int, error) {
	if n, err := strconv.Atoi(string(b)); err == nil && n >= 0 && n <= trace.MaxLength {
		return n, nil
	}
	n, err := parseNumber(b, 0)
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

// parseBlockSize parses the tokens of a block.
func parseBlockSize(b []byte) (int, error) {
	size, err := parseLength(b)
	if err == nil && size == 0 {
		err = fmt.Errorf("is out of range: %s", Quote(b))
	}
	return size, err
}

// set parses a value that may be absent.
func set[T any](to *trace.Opt[T], raw []byte, parse func([]byte) (T, error)) (err error) {
	to.Set = true
	to.Value, err = parse(raw)
	return err
}

// spareIDs is the number of ids a row may have beyond one per token: lengths and
// ids are not always counted from the same text.
const spareIDs = 64

// maxIDs returns the maximum number of ids of a row: a block has at least one
// token.
func maxIDs(inputLength int) int { return inputLength + spareIDs }

// parseIDs parses the block ids of a prompt from a valid JSON value into dst,
// whose array it reuses.
func parseIDs(raw []byte, dst []uint64, inputLength int) ([]uint64, error) {
	c := jsonscan.New(raw)
	ids := c.Uints(dst, maxIDs(inputLength))
	if c.Done() {
		return ids, nil
	}
	if _, err := parseArray(raw); err != nil {
		return nil, err
	}
	n := 0
	var wrong error
	jsonscan.Elements(raw, func(_ int, id []byte) error {
		n++
		if _, err := strconv.ParseUint(string(id), 10, 64); err != nil && wrong == nil {
			wrong = fmt.Errorf("has an id that is not an unsigned 64-bit integer: %s", Quote(id))
		}
		return nil
	})
	if n > maxIDs(inputLength) {
		return nil, fmt.Errorf("has %d ids for an input_length of %d: a block has at least one token", n, inputLength)
	}
	return nil, wrong
}
