package simserver

import (
	"math"
	"time"
)

// Config says what the simulated server is. The zero value works: it serves
// the model "sim" as fast as the machine can.
type Config struct {
	// Model is the one model that is served; "" is "sim".
	Model string
	// PrefillPerToken is the time to compute one prompt token that is not in
	// the prefix cache; 0 or less takes no time.
	PrefillPerToken time.Duration
	// DecodeStep is the time between two tokens of one answer; 0 or less takes
	// no time.
	DecodeStep time.Duration
	// BlockSize is the number of tokens in a block of the prefix cache; 0 or
	// less is 16.
	BlockSize int
	// KVBlocks is the capacity of the prefix cache in blocks; 0 or less is
	// 1<<20. A block takes about 50 bytes of memory once it is used.
	KVBlocks int
	// MaxModelLen is the most tokens that a prompt and its answer may have
	// together; 0 or less is 1<<20. A request for more is refused.
	MaxModelLen int
	// MaxBody is the largest body of a request in bytes; 0 or less is 64 MiB.
	MaxBody int
}

func (c Config) withDefaults() Config {
	if c.Model == "" {
		c.Model = "sim"
	}
	c.PrefillPerToken = max(c.PrefillPerToken, 0)
	c.DecodeStep = max(c.DecodeStep, 0)
	c.BlockSize = positive(c.BlockSize, 16)
	c.KVBlocks = min(positive(c.KVBlocks, 1<<20), math.MaxInt32-1)
	c.MaxModelLen = positive(c.MaxModelLen, 1<<20)
	c.MaxBody = positive(c.MaxBody, 64<<20)
	return c
}

func positive(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
