package openai

import (
	"context"
	"fmt"

	"moontide/replay"
	"moontide/trace"
)

// The prompts that tell how a server counts: the first is too short to fill a
// block of any server's cache, the second longer by so much that one word in a
// hundred shows that is not one token.
const (
	probeTokens  = 8
	longerTokens = 256
)

// counting is how a server counts prompts: so many tokens more than were meant,
// whatever the length, if it is exact.
type counting struct {
	short, long int // its counts of the two probes
}

// exact reports whether the count grows by one with each token.
func (n counting) exact() bool { return n.long-n.short == longerTokens && n.short >= probeTokens }

// template is what is added to each prompt, where the count is exact.
func (n counting) template() int { return n.short - probeTokens }

// factor is how much the count grows with each token.
func (n counting) factor() float64 { return float64(n.long-n.short) / longerTokens }

// learnCounting measures what a server adds to each prompt, by the count of a
// short prompt and that of a longer one.
func (c *Client) learnCounting(ctx context.Context, s *server, short trace.Opt[int]) (notes []string, err error) {
	unknown := func(format string, args ...any) ([]string, error) {
		why := fmt.Sprintf(format, args...)
		if c.cfg.ExactISL {
			return nil, fmt.Errorf("prompts cannot be made of exactly the length that %s counts: %s", s.base, why)
		}
		return []string{why}, nil
	}
	if !short.Set {
		return unknown("the endpoint does not count the tokens of prompts")
	}
	o := c.probe(ctx, s, probeTokens+longerTokens)
	switch {
	case o.Class == replay.Canceled:
		return nil, ctx.Err()
	case o.Class != replay.OK && o.Class != replay.Empty:
		return unknown("a probe of %d tokens failed, so how prompts are counted is not known: %s", probeTokens+longerTokens, o.Error)
	case !o.Counts.Input.Set:
		return unknown("the endpoint does not count the tokens of prompts")
	}
	n := counting{short.Value, o.Counts.Input.Value}
	if !n.exact() {
		return unknown("PROMPTS DO NOT HAVE THE LENGTHS OF THE TRACE: the endpoint counts %d tokens where %d are meant and %d where %d are, %.2f for each more; %s",
			n.short, probeTokens, n.long, probeTokens+longerTokens, n.factor(), c.advice())
	}
	if s != c.servers[0] {
		if known := c.template; known.Set && known.Value != n.template() {
			c.template = trace.Opt[int]{}
			return unknown("the endpoints do not add equally many tokens to each prompt: %d, and %s %d", known.Value, s.base, n.template())
		}
		return nil, nil
	}
	c.template = trace.Some(n.template())
	if n.template() == 0 {
		return nil, nil
	}
	note := fmt.Sprintf("the endpoint adds %d tokens to each prompt, as a chat template does", n.template())
	if c.cfg.ExactISL {
		note += fmt.Sprintf("; prompts are shorter by as many, and those of %d tokens or fewer are of one token", n.template())
	}
	return []string{note}, nil
}

// advice is how prompts could be made of the right length.
func (c *Client) advice() string {
	if c.cfg.Prompt == Tokens {
		return "it does not take token ids for what they are"
	}
	return "its vocabulary is another: give the tokenizer of its model, or send token ids"
}

// exactLength is how long a prompt has to be for the endpoint to count isl
// tokens.
func (c *Client) exactLength(isl int) int {
	if !c.cfg.ExactISL || isl <= 0 {
		return isl
	}
	return max(isl-c.template.Value, 1)
}
