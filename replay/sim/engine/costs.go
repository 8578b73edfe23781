package engine

import "fmt"

// Costs determines the time of a step, which is the sum of its parts:
//
//	Step + PrefillStep (if prompt tokens are computed) + PrefillToken x prompt tokens
//	     + Attention x pairs + Sequence x sequences (or Decode) + ContextToken x context
//
// The part of a step below a nanosecond is carried over to the next step.
type Costs struct {
	Step         Cost // per step: reading weights, launching kernels
	PrefillStep  Cost // per step that computes prompt tokens, which for example no CUDA graph covers
	PrefillToken Cost // per prompt token computed
	// Attention is the cost per pair of a prompt token computed and a token
	// before it, which makes the prefill of a prompt quadratic in its length.
	Attention Cost
	Sequence  Cost // per decoding sequence; not used if Decode is not empty
	// Decode is the cost of decoding by the number of sequences: linear between
	// its entries, proportional to the number below the first, with the slope of
	// the last two beyond the last. Mixtures of experts grow concavely, engines
	// short of memory bandwidth convexly.
	Decode       DecodeTable
	ContextToken Cost // per token in the contexts of decoding sequences, whose KV is read
}

func (c *Costs) validate() error {
	for _, cost := range []struct {
		name  string
		value Cost
	}{
		{"a step", c.Step}, {"a step with prompt tokens", c.PrefillStep}, {"a prefill token", c.PrefillToken}, {"a pair of prompt tokens", c.Attention},
		{"a sequence", c.Sequence}, {"a context token", c.ContextToken},
	} {
		if cost.value < 0 || cost.value > maxCost {
			return fmt.Errorf("engine: cost of %s is not from 0 to %v: %v", cost.name, maxCost, cost.value)
		}
	}
	if err := c.Decode.validate(); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	return nil
}

// batch counts the work of a step: prompt tokens, their pairs with the tokens
// before them, decoding sequences, and the tokens of their contexts.
type batch struct{ prefill, pairs, sequences, context int }

// of returns the cost of a step that computes b.
func (c *Costs) of(b batch) Cost {
	cost := c.Step + times(b.context, c.ContextToken)
	if b.prefill > 0 {
		cost += c.PrefillStep + times(b.prefill, c.PrefillToken) + times(b.pairs, c.Attention)
	}
	if len(c.Decode) > 0 {
		return cost + c.Decode.of(b.sequences)
	}
	return cost + times(b.sequences, c.Sequence)
}

// times returns n times a cost, at most ten days to prevent overflow.
func times(n int, c Cost) Cost {
	const most = 10 * 24 * Hour
	if c > 0 && n > int(most/c) {
		return most
	}
	return Cost(n) * c
}
