package engine

import (
	"time"
)

// Costs determines the time of a step, which is the sum of its parts.
type Costs struct {
	Step         time.Duration // per step: reading weights, launching kernels
	PrefillToken time.Duration // per prompt token computed
	Sequence     time.Duration // per decoding sequence
	ContextToken time.Duration // per token in the contexts of decoding sequences, whose KV is read
}

// of returns the time of a step that computes b.
func (c Costs) of(b batch) time.Duration {
	return c.Step + times(b.prefill, c.PrefillToken) + times(b.sequences, c.Sequence) + times(b.context, c.ContextToken)
}
