package engine

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Config configures one engine. The zero value is valid: it has high limits and
// takes no time.
type Config struct {
	Costs Costs
	// MaxSeqs limits the sequences running at once; 0 is 1<<20.
	MaxSeqs int
	// MaxBatchedTokens limits the tokens computed in a step; 0 is 1<<20. It
	// must be at least MaxSeqs, so that every running sequence gets a token.
	MaxBatchedTokens int
	// BlockSize is the number of tokens in a KV cache block; 0 is 16.
	BlockSize int
	// KVBlocks is the number of KV cache blocks; 0 is 1<<20. A cached block takes about
	// 10 bytes of memory.
	KVBlocks int
	// MaxModelLen limits the tokens of a prompt and its answer together; 0 is 1<<20.
	MaxModelLen int
	// Ranks is the number of data-parallel ranks of the engine; 0 is 1. Each has
	// the limits above and a KV cache of its own, and the router sees each as a
	// target. They step together: a step takes as long as its slowest rank, as
	// with experts spread over the ranks.
	Ranks int
	// NoPrefixCache computes every prompt in full: no block is found by a later
	// prompt.
	NoPrefixCache bool
	// AsyncScheduling schedules each step when the step before it begins, as vLLM
	// does by default: a request that arrives during a step is at the earliest in
	// the step after the next one. On an idle engine it makes no difference.
	AsyncScheduling bool
	// PhasedTPOT, if above 0, decodes outside the steps: each sequence gets a
	// token every PhasedTPOT, with evenly spread phases. No real engine does
	// this. It is meant for calibrating clients, which would get all their work
	// at once in lock-step. A sequence then reserves space for its whole answer
	// at admission and is never preempted.
	PhasedTPOT time.Duration
}

// DefaultBlockSize is the default of [Config].BlockSize.
const DefaultBlockSize = 16

const (
	defaultLimit = 1 << 20
	maxRanks     = 64
	maxBlocks    = math.MaxInt32 - 1
	maxTokens    = math.MaxInt32
	maxCost      = Hour
)

// limits lists the limits with their defaults and maxima.
func (c *Config) limits() []limit {
	return []limit{
		{"max seqs", &c.MaxSeqs, defaultLimit, maxTokens},
		{"max batched tokens", &c.MaxBatchedTokens, max(defaultLimit, c.MaxSeqs), maxTokens},
		{"block size", &c.BlockSize, DefaultBlockSize, maxTokens},
		{"KV blocks", &c.KVBlocks, defaultLimit, maxBlocks},
		{"max model length", &c.MaxModelLen, defaultLimit, maxTokens},
		{"ranks", &c.Ranks, 1, maxRanks},
	}
}

type limit struct {
	name              string
	value             *int
	defaultValue, max int
}

// WithDefaults returns c with the defaults for zero limits.
func (c Config) WithDefaults() Config {
	for _, limit := range c.limits() {
		*limit.value = cmp.Or(*limit.value, limit.defaultValue)
	}
	return c
}

// Validate returns the first error in c.
func (c Config) Validate() error {
	c = c.WithDefaults()
	for _, limit := range c.limits() {
		if *limit.value < 1 || *limit.value > limit.max {
			return fmt.Errorf("engine: %s is not from 1 to %d: %d", limit.name, limit.max, *limit.value)
		}
	}
	if c.PhasedTPOT < 0 || c.PhasedTPOT > maxCost.Duration() {
		return fmt.Errorf("engine: phased TPOT is not from 0 to %v: %v", maxCost, c.PhasedTPOT)
	}
	if err := c.Costs.validate(); err != nil {
		return err
	}
	if c.MaxBatchedTokens < c.MaxSeqs {
		return fmt.Errorf("engine: max batched tokens %d is below max seqs %d: a step could not hold a token of each sequence", c.MaxBatchedTokens, c.MaxSeqs)
	}
	return nil
}
