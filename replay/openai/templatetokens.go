package openai

import (
	"context"
	"fmt"

	"moontide/trace"
)

// Lengths of the two probes, in tokens. The first is too short to fill a cache
// block on any server; the second is long enough to reveal one word in a hundred
// that is not one token.
const (
	probeTokens  = 8
	longerTokens = 256
)

// learnTokenCount measures how many tokens a server adds to each prompt, from its
// counts for a short and a longer probe.
func (c *Client) learnTokenCount(ctx context.Context, s *server, short trace.Opt[int]) (notes []string, err error) {
	// unknown returns an error if lengths must be exact, else a note.
	unknown := func(format string, args ...any) ([]string, error) {
		why := fmt.Sprintf(format, args...)
		if c.cfg.ExactISL {
			return nil, fmt.Errorf("prompts cannot be made to have exactly the length that %s counts: %s", s.base, why)
		}
		return []string{why}, nil
	}
	if !short.Set {
		return unknown("the endpoint does not report prompt tokens")
	}
	o, _, failed := c.probe(ctx, s, probeTokens+longerTokens)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case failed != nil:
		return unknown("a probe of %d tokens failed, so it is unknown how prompts are counted: %s", probeTokens+longerTokens, o.Error)
	case !o.Counts.Input.Set:
		return unknown("the endpoint does not report prompt tokens")
	}
	long := o.Counts.Input.Value
	added := short.Value - probeTokens
	if long-short.Value != longerTokens || added < 0 {
		return unknown("PROMPTS DO NOT HAVE THE LENGTHS OF THE TRACE: the endpoint counts %d tokens for a prompt of %d and %d for one of %d, %.2f per token; %s",
			short.Value, probeTokens, long, probeTokens+longerTokens, float64(long-short.Value)/longerTokens, c.lengthAdvice())
	}
	if s != c.servers[0] {
		if known := c.template; known.Set && known.Value != added {
			c.template = trace.Opt[int]{}
			return unknown("the endpoints add different numbers of tokens to each prompt: %d, but %s %d", known.Value, s.base, added)
		}
		return nil, nil
	}
	c.template = trace.Some(added)
	if added == 0 {
		return nil, nil
	}
	note := fmt.Sprintf("the endpoint adds %d tokens to each prompt, as a chat template does", added)
	if c.cfg.ExactISL {
		note += fmt.Sprintf("; prompts are made that much shorter, those of up to %d tokens one token long", added)
	}
	return []string{note}, nil
}

// lengthAdvice suggests how to get prompts of the right length.
func (c *Client) lengthAdvice() string {
	if c.cfg.Prompt == Tokens {
		return "it does not take token ids as given"
	}
	if c.api.ids == "" || c.asked.Prompt != c.cfg.Prompt { // they were refused
		return "its vocabulary differs: give the tokenizer of its model"
	}
	return "its vocabulary differs: give the tokenizer of its model, or send token ids"
}

// exactLength returns the prompt length for which the endpoint counts isl tokens.
func (c *Client) exactLength(isl int) int {
	if !c.cfg.ExactISL || isl <= 0 {
		return isl
	}
	return max(isl-c.template.Value, 1)
}
