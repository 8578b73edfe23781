package openai

import (
	"context"
	"fmt"

	"moontide/trace"
)

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
