package cache

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Capacity is the size of a cache in the unit in which somebody named it.
type Capacity struct {
	Amount float64 // at least 0
	Unit   Unit
}

// Unit is what a [Capacity] counts.
type Unit string

// The units of a capacity.
const (
	Blocks Unit = "blocks"
	Tokens Unit = "tokens"
	Bytes  Unit = "bytes"
)

// units are the names of units, in lower case, and multiples those that may
// stand before them.
var (
	units = map[string]Unit{
		"": Blocks, "block": Blocks, "blocks": Blocks,
		"tok": Tokens, "token": Tokens, "tokens": Tokens,
		"b": Bytes, "byte": Bytes, "bytes": Bytes,
	}
	multiples = map[string]float64{
		"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12,
		"p": 1e15, "e": 1e18,
		"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40, "pi": 1 << 50, "ei": 1 << 60,
	}
	capacityForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) *([kmgtpe]i?)?(blocks?|tok|tokens?|b|bytes?)?$`)
)

// ParseCapacity reads a capacity: a number of blocks ("10000", "10kblocks"),
// tokens ("5000000tokens", "5Mtok") or bytes ("64GiB", "80GB"). K, M, G, T, P and
// E are powers of 1000, Ki, Mi and so on of 1024; they need a unit after them,
// for "64G" might be blocks or bytes. Upper and lower case are the same.
func ParseCapacity(text string) (Capacity, error) {
	parts := capacityForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	switch {
	case parts == nil:
		return Capacity{}, fmt.Errorf(`capacity %q is not a number of blocks ("10000"), tokens ("5Mtok") or bytes ("64GiB")`, text)
	case parts[2] != "" && parts[3] == "":
		return Capacity{}, fmt.Errorf("capacity %q has no unit: %sblocks, %stok or %sB", text, text, text, text)
	}
	amount, err := strconv.ParseFloat(parts[1], 64)
	amount *= multiples[parts[2]]
	if err != nil || amount > math.MaxInt32*float64(1<<30) {
		return Capacity{}, fmt.Errorf("capacity %q is larger than any cache", text)
	}
	return Capacity{amount, units[parts[3]]}, nil
}

// mostTokens is what the largest cache holds: a million GiB at one byte a token.
// Tokens of thousands of such caches can be added up.
const mostTokens = 1 << 50

// Blocks is the number of whole blocks that fit. blockSize is in tokens, at
// least 1; bytesPerToken matters to bytes only, and 0 is not known. More than
// 2^50 tokens is an error.
func (c Capacity) Blocks(blockSize int, bytesPerToken float64) (int, error) {
	if blockSize < 1 {
		return 0, fmt.Errorf("converting a capacity: block size %d is below 1 token", blockSize)
	}
	blocks := c.Amount
	switch c.Unit {
	case Blocks:
	case Tokens:
		blocks /= float64(blockSize)
	case Bytes:
		if bytesPerToken <= 0 {
			return 0, fmt.Errorf("converting a capacity: %s needs the bytes of a token in the KV cache", c)
		}
		blocks /= float64(blockSize) * bytesPerToken
	default:
		return 0, fmt.Errorf("converting a capacity: unknown unit %q", c.Unit)
	}
	if !(blocks*float64(blockSize) <= mostTokens) { // NaN, too
		return 0, fmt.Errorf("converting a capacity: %s hold more tokens than any cache", c)
	}
	return int(blocks), nil
}

// String is the amount in units, such as "5000000 tokens"; ParseCapacity reads
// it.
func (c Capacity) String() string {
	return strconv.FormatFloat(c.Amount, 'f', -1, 64) + " " + string(c.Unit)
}
