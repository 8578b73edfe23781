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
		"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
	}
	capacityForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) *([kmgt]i?)?(blocks?|tok|tokens?|b|bytes?)?$`)
)

// ParseCapacity reads a capacity: a number of blocks ("10000", "10kblocks"),
// tokens ("5000000tokens", "5Mtok") or bytes ("64GiB", "80GB"). K, M, G and T
// are powers of 1000, Ki, Mi, Gi and Ti of 1024; they need a unit after them,
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

// Blocks is the number of whole blocks that fit. blockSize is in tokens, at
// least 1; bytesPerToken matters to bytes only, and 0 is not known.
func (c Capacity) Blocks(blockSize int, bytesPerToken float64) (int, error) {
	if blockSize < 1 {
		return 0, fmt.Errorf("converting a capacity: block size %d is below 1 token", blockSize)
	}
	switch c.Unit {
	case Blocks:
		return int(c.Amount), nil
	case Tokens:
		return int(c.Amount / float64(blockSize)), nil
	case Bytes:
		if bytesPerToken <= 0 {
			return 0, fmt.Errorf("converting a capacity: %s needs the bytes of a token in the KV cache", c)
		}
		return int(c.Amount / (float64(blockSize) * bytesPerToken)), nil
	}
	return 0, fmt.Errorf("converting a capacity: unknown unit %q", c.Unit)
}

// String is the amount in units, such as "5000000 tokens"; ParseCapacity reads
// it.
func (c Capacity) String() string {
	return strconv.FormatFloat(c.Amount, 'f', -1, 64) + " " + string(c.Unit)
}
