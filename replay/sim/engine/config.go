package engine

import (
	"fmt"
	"math"
	"time"
)

// Config is what one engine is like. The zero value works: it takes no time,
// and its limits are far.
type Config struct {
	Costs Costs
	// MaxSeqs is the most sequences that run at once; 0 is 1<<20.
	MaxSeqs int
	// MaxBatchedTokens is the most tokens that one step computes, at least
	// MaxSeqs, so that every running sequence has one; 0 is 1<<20.
	MaxBatchedTokens int
	// BlockSize is the number of tokens in a block of the KV cache; 0 is 16.
	BlockSize int
	// KVBlocks is the number of blocks of the KV cache; 0 is 1<<20. A cached
	// block takes about 10 bytes of memory.
	KVBlocks int
	// MaxModelLen is the most tokens that a prompt and its answer may have
	// together; 0 is 1<<20.
	MaxModelLen int
	// PhasedTPOT, where it is above 0, takes decoding out of the steps: each
	// sequence gets a token every PhasedTPOT, at a phase of its own, and the
	// phases are spread evenly. No engine does that. It is for the calibration
	// of clients, which lock-step would give all their work at once. A
	// sequence then holds the room for its whole answer from the beginning, so
	// none is preempted.
	PhasedTPOT time.Duration
}

// Costs says how long a step takes: the sum of its parts.
type Costs struct {
	Step         time.Duration // whatever is in it: weights are read, kernels launched
	PrefillToken time.Duration // for each prompt token that is computed
	Sequence     time.Duration // for each decoding sequence
	ContextToken time.Duration // for each token of the decoding sequences' contexts, whose keys and values are read
}

// The defaults of limits, and the most that they may be.
const (
	DefaultBlockSize = 16
	manyTokens       = 1 << 20
	mostBlocks       = math.MaxInt32 - 1
	mostTokens       = math.MaxInt32
	mostCost         = time.Hour
)

// WithDefaults is c with what it leaves out.
func (c Config) WithDefaults() Config {
	for _, limit := range []struct {
		field     *int
		otherwise int
	}{
		{&c.MaxSeqs, manyTokens}, {&c.MaxBatchedTokens, max(manyTokens, c.MaxSeqs)}, {&c.BlockSize, DefaultBlockSize},
		{&c.KVBlocks, manyTokens}, {&c.MaxModelLen, manyTokens},
	} {
		if *limit.field == 0 {
			*limit.field = limit.otherwise
		}
	}
	return c
}

// Validate says what is wrong with c, if anything.
func (c Config) Validate() error {
	c = c.WithDefaults()
	for _, limit := range []struct {
		name        string
		value, most int
	}{
		{"max seqs", c.MaxSeqs, mostTokens}, {"max batched tokens", c.MaxBatchedTokens, mostTokens}, {"block size", c.BlockSize, mostTokens},
		{"KV blocks", c.KVBlocks, mostBlocks}, {"max model length", c.MaxModelLen, mostTokens},
	} {
		if limit.value < 1 || limit.value > limit.most {
			return fmt.Errorf("engine: %s is not from 1 to %d: %d", limit.name, limit.most, limit.value)
		}
	}
	for _, cost := range []struct {
		name  string
		value time.Duration
	}{
		{"cost of a step", c.Costs.Step}, {"cost of a prefill token", c.Costs.PrefillToken}, {"cost of a sequence", c.Costs.Sequence},
		{"cost of a context token", c.Costs.ContextToken}, {"phased TPOT", c.PhasedTPOT},
	} {
		if cost.value < 0 || cost.value > mostCost {
			return fmt.Errorf("engine: %s is not from 0 to %v: %v", cost.name, mostCost, cost.value)
		}
	}
	if c.MaxBatchedTokens < c.MaxSeqs {
		return fmt.Errorf("engine: max batched tokens %d is below max seqs %d: a step could not hold a token of each sequence", c.MaxBatchedTokens, c.MaxSeqs)
	}
	return nil
}

// batch is what a step computes.
type batch struct{ prefill, sequences, context int }

// of is the duration of a step.
func (c Costs) of(b batch) time.Duration {
	return c.Step + times(b.prefill, c.PrefillToken) + times(b.sequences, c.Sequence) + times(b.context, c.ContextToken)
}

// times is n*d, or a month where that is less: time must not overflow,
// whatever a step is said to cost.
func times(n int, d time.Duration) time.Duration {
	const month = 30 * 24 * time.Hour
	if d > 0 && n > int(month/d) {
		return month
	}
	return time.Duration(n) * d
}
