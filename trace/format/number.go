package format

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"moontide/trace"
	"moontide/trace/jsonscan"
	"moontide/trace/log"
)

// The errors of this file begin with a verb: see keyed.

// parseNumber parses a decimal number and returns 10^exponent times its value,
// correctly rounded. Unlike JSON, CSV files may have leading zeros and a bare point.
func parseNumber(b []byte, exponent int) (float64, error) {
	text := string(b)
	if value, err := strconv.ParseFloat(text+"e"+strconv.Itoa(exponent), 64); err == nil { // no text with an exponent
		return value + 0, nil // -0 is 0
	}
	value, err := strconv.ParseFloat(text, 64)
	value *= jsonscan.Pow10[exponent]
	switch {
	case text == "":
		return 0, errors.New("is empty")
	case strings.ContainsAny(text, "nNxX"), err != nil && value == 0: // NaN, Inf and hexadecimal numbers are none, either
		return 0, fmt.Errorf("is not a number: %s", quoteNumber(b))
	case math.IsInf(value, 0):
		return 0, fmt.Errorf("is out of range: %s", quoteNumber(b))
	}
	return value + 0, nil
}

// parseSeconds parses a time or duration in seconds and returns milliseconds.
func parseSeconds(b []byte) (float64, error) { return parseTime(b, 3, "s") }

// parseMilliseconds parses a time or duration in milliseconds.
func parseMilliseconds(b []byte) (float64, error) { return parseTime(b, 0, "ms") }

func parseTime(b []byte, exponent int, unit string) (float64, error) {
	ms, err := parseNumber(b, exponent)
	if err == nil && (ms < 0 || ms > trace.MaxMS) {
		err = fmt.Errorf("is out of range: %s %s", quoteNumber(b), unit)
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
		return 0, fmt.Errorf("is out of range: %s tokens", quoteNumber(b))
	case n != math.Trunc(n):
		return 0, fmt.Errorf("is not a whole number: %s", quoteNumber(b))
	}
	return int(n), nil
}

// parseBlockSize parses the tokens of a block.
func parseBlockSize(b []byte) (int, error) {
	size, err := parseLength(b)
	if err == nil && size == 0 {
		err = fmt.Errorf("is out of range: %s", quoteNumber(b))
	}
	return size, err
}

// parseDate returns a date in nanoseconds since 1970.
func parseDate(b []byte) (int64, error) {
	at, err := log.ParseDate(b)
	if err != nil || at.Unix() < 0 || at.Unix() >= 7_289_654_400 { // 1970 to 2200
		return 0, fmt.Errorf("is not a date like 2023-11-16 18:15:46.6805900: %s", quoteNumber(b))
	}
	return at.UnixNano(), nil
}

// some returns a parser of a value that may be absent.
func some[T any](parse func([]byte) (T, error)) func([]byte) (trace.Opt[T], error) {
	return func(raw []byte) (trace.Opt[T], error) {
		value, err := parse(raw)
		return trace.Some(value), err
	}
}

// maxIDs returns the maximum number of ids of a row: a block has at least one token, but
// lengths and ids are not always counted from the same text.
func maxIDs(inputLength int) int { return inputLength + 64 }

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
			wrong = fmt.Errorf("has an id that is not an unsigned 64-bit integer: %s", quoteNumber(id))
		}
		return nil
	})
	if n > maxIDs(inputLength) {
		return nil, fmt.Errorf("has %d ids for an input_length of %d: a block has at least one token", n, inputLength)
	}
	return nil, wrong
}
