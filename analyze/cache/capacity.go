package cache

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"moontide/trace/stats"
)

// Capacity is the size of a cache with its unit.
type Capacity struct {
	Amount float64 // at least 0
	Unit   Unit
}

// Unit is the unit of a [Capacity].
type Unit string

// The units of a capacity.
const (
	Blocks Unit = "blocks"
	Tokens Unit = "tokens"
	Bytes  Unit = "bytes"
)

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
	capacityForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) *([kmgtpe]i?)?(blocks?|tok|tokens?|b|bytes?)?$`)
	})
)

// ParseCapacity reads a number of blocks ("10000", "10kblocks"), tokens
// ("5000000tokens", "5Mtok") or bytes ("64GiB", "80GB"), in any case. K, M, G, T, P
// and E are powers of 1000, Ki, Mi and so on of 1024; they need a unit, because "64G"
// might be blocks or bytes.
func ParseCapacity(text string) (Capacity, error) {
	parts := capacityForm().FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
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

// maxTokens is the largest cache: a million GiB at one byte per token. Thousands of
// them can be added without overflow.
const maxTokens = 1 << 50

// ErrCapacity reports a capacity that cannot be converted to blocks.
var ErrCapacity = errors.New("converting a capacity")

// Blocks returns the number of whole blocks that fit. blockSize is in tokens, at
// least 1; bytesPerToken is used for bytes only, and 0 means unknown. More than 2^50
// tokens is an [ErrCapacity].
func (c Capacity) Blocks(blockSize int, bytesPerToken float64) (int, error) {
	if blockSize < 1 {
		return 0, fmt.Errorf("%w: block size %d is below 1 token", ErrCapacity, blockSize)
	}
	blocks := c.Amount
	switch c.Unit {
	case Blocks:
	case Tokens:
		blocks /= float64(blockSize)
	case Bytes:
		if bytesPerToken <= 0 {
			return 0, fmt.Errorf("%w: %s needs the bytes per token of the KV cache", ErrCapacity, c)
		}
		blocks /= float64(blockSize) * bytesPerToken
	default:
		return 0, fmt.Errorf("%w: unknown unit %q", ErrCapacity, c.Unit)
	}
	if !(blocks*float64(blockSize) <= maxTokens) { // NaN, too
		return 0, fmt.Errorf("%w: %s hold more tokens than any cache", ErrCapacity, c)
	}
	return int(blocks), nil
}

// String returns the amount and unit, such as "5000000 tokens", which ParseCapacity
// reads.
func (c Capacity) String() string {
	return stats.Plain(c.Amount) + " " + string(c.Unit)
}
