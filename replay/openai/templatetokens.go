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

// settleAnswers checks that answers can be part of later prompts, and measures what the
// template adds for each of them.
func (c *Client) settleAnswers(ctx context.Context) (notes []string, err error) {
	if c.live == nil {
		return nil, nil
	}
	for _, s := range c.servers {
		call := c.newCall(s, "", c.probeBody(probeTokens), 1)
		call.kept = &kept{wantIDs: c.cfg.Prompt == Tokens}
		o, err := c.sendProbe(ctx, call)
		missing := ""
		switch {
		case err != nil:
			return nil, err
		case c.cfg.Prompt != Tokens && c.api.messages == "":
			missing = fmt.Sprintf("prompts are text on the %s endpoint", c.api.name)
		case c.cfg.Prompt != Tokens && !o.Counts.Output.Set:
			missing = "it does not report the number of output tokens"
		case c.cfg.Prompt == Tokens && len(call.kept.ids) == 0:
			missing = "it returns no token ids for its answers"
		}
		if missing != "" {
			return nil, fmt.Errorf("answers of %s cannot be part of later prompts: %w", s.base, &RefusedError{Status: o.Status, Text: missing, Remedy: UseOtherAnswers})
		}
	}
	if c.api.messages == "" || !c.template.Set {
		return nil, nil
	}
	return c.learnMore(ctx)
}

// learnMore measures how many tokens the template adds for an answer and the message
// after it.
func (c *Client) learnMore(ctx context.Context) (notes []string, err error) {
	body := fmt.Appendf(c.startBody(c.layout.head, 3*probeTokens), `,%q:[`, c.api.messages)
	for i, role := range []string{"user", "assistant", "user"} {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"role":%q,"content":"`, role)
		body = append(c.cfg.Source.Filler(fmt.Sprint("turn ", i), probeTokens).AppendText(body), `"}`...)
	}
	call := c.newCall(c.servers[0], "", c.finishBody(append(body, ']'), 1), 1)
	o, _ := c.sendProbe(ctx, call)
	added := o.Counts.Input.Value - 3*probeTokens - c.template.Value
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case o.Counts.Input.Set && added >= 0:
		c.live.more = trace.Some(added)
		return nil, nil
	}
	why := "a probe of three messages failed: " + o.Error
	if o.Error == "" {
		why = fmt.Sprintf("the endpoint counts %d tokens for three messages of %d tokens each and a template of %d", o.Counts.Input.Value, probeTokens, c.template.Value)
	}
	if c.cfg.ExactISL {
		return nil, fmt.Errorf("prompts with answers cannot be made to have exactly the length that %s counts: %s", c.servers[0].base, why)
	}
	return []string{"the length of prompts with answers is approximate: " + why}, nil
}
