package engine

import (
	"time"
)

type Costs struct {
	Step         time.Duration // per step: reading weights, launching kernels
	PrefillToken time.Duration // per prompt token computed
	Sequence     time.Duration // per decoding sequence
	ContextToken time.Duration // per token of the decoding sequences' contexts, whose KV is read
}

func (c Costs) of(b batch) time.Duration {
	return c.Step + times(b.prefill, c.PrefillToken) + times(b.sequences, c.Sequence) + times(b.context, c.ContextToken)
}
