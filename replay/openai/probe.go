package openai

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"moontide/replay"
)

// probeTimeout limits the first requests. A server may take a while to load its
// model, but a server that is down should fail soon.
const probeTimeout = 60 * time.Second

// Probe checks that the servers answer and stream, and determines the contents of
// requests: the model, if not configured, and ignore_eos and min_tokens, unless
// they are refused. It measures how the servers count prompt tokens. The notes are
// for the user.
func (c *Client) Probe(ctx context.Context) (notes []string, err error) {
	if notes, err = c.settleModel(ctx); err != nil {
		return nil, err
	}
	c.setCommon()
	for _, s := range c.servers {
		more, err := c.probeServer(ctx, s)
		if err != nil {
			return nil, err
		}
		notes = append(notes, more...)
	}
	return notes, nil
}

// probeServer sends a short request and, to learn how the server counts tokens, a
// longer one.
func (c *Client) probeServer(ctx context.Context, s *server) (notes []string, err error) {
	o := c.probe(ctx, s, probeTokens)
	for note := c.dropRefused(o); note != ""; note = c.dropRefused(o) {
		notes = append(notes, note)
		o = c.probe(ctx, s, probeTokens)
	}
	if o.Class == replay.Canceled {
		return nil, ctx.Err()
	}
	// The answer's only token may have no text.
	if o.Class != replay.OK && o.Class != replay.Empty {
		return nil, fmt.Errorf("probing %s: %s", s.base.String()+c.cfg.path(), o.Error)
	}
	if !o.Counts.Output.Set {
		notes = append(notes, "the endpoint reports no usage: output tokens are estimated by the number of chunks")
	}
	more, err := c.learnTokenCount(ctx, s, o.Counts.Input)
	return append(notes, more...), err
}

// dropRefused omits a member that the endpoint refused and returns a note about
// it, or "".
func (c *Client) dropRefused(o replay.Outcome) (note string) {
	refused := func(sent *bool, member string) bool {
		if !*sent || o.Class != replay.HTTPError || !strings.Contains(o.Error, member) {
			return false
		}
		*sent = false
		c.setCommon()
		return true
	}
	switch {
	case refused(&c.ignoreEOS, "ignore_eos"):
		return "the endpoint refuses ignore_eos, so answers may be shorter than in the trace"
	case refused(&c.minTokens, "min_tokens"):
		return "the endpoint refuses min_tokens, so it is not sent"
	}
	return ""
}

// probe requests one token for a prompt of n tokens.
func (c *Client) probe(ctx context.Context, s *server, n int) replay.Outcome {
	body, err := c.fillerBody("probe-"+strconv.Itoa(n), n, 1)
	if err != nil {
		panic(err) // not possible without a text
	}
	call := c.newCall(s, "", body)
	call.timeout = min(probeTimeout, c.cfg.Timeout)
	return call.Send(ctx)
}
