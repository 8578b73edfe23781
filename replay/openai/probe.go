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
	c.chunkTokens = inUsage | inTokenIDs
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
	o, told := c.probe(ctx, s, probeTokens)
	for note, again := c.dropRefused(o); again; note, again = c.dropRefused(o) {
		if note != "" {
			notes = append(notes, note)
		}
		o, told = c.probe(ctx, s, probeTokens)
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
	// Ask for one kind of evidence at most.
	if c.chunkTokens &= told; c.chunkTokens&inUsage != 0 {
		c.chunkTokens = inUsage
	}
	c.setCommon()
	more, err := c.learnTokenCount(ctx, s, o.Counts.Input)
	return append(notes, more...), err
}

// dropRefused omits what the endpoint refused, or may have refused, and reports
// whether to try again. The note is for the user; it may be "".
func (c *Client) dropRefused(o replay.Outcome) (note string, again bool) {
	if o.Class != replay.HTTPError {
		return "", false
	}
	named := func(member string) bool { return strings.Contains(o.Error, member) }
	switch {
	case c.chunkTokens != 0 && (named("stream_options") || named("continuous_usage_stats") || named("return_token_ids")):
		c.chunkTokens = 0
	case c.ignoreEOS && named("ignore_eos"):
		c.ignoreEOS, note = false, "the endpoint refuses ignore_eos, so answers may be shorter than in the trace"
	case c.minTokens && named("min_tokens"):
		c.minTokens, note = false, "the endpoint refuses min_tokens, so it is not sent"
	case c.chunkTokens != 0 && (o.Status == 400 || o.Status == 422): // it does not say what is wrong
		c.chunkTokens = 0
	default:
		return "", false
	}
	c.setCommon()
	return note, true
}

// probe requests one token for a prompt of n tokens.
func (c *Client) probe(ctx context.Context, s *server, n int) (replay.Outcome, tokenEvidence) {
	body, err := c.fillerBody("probe-"+strconv.Itoa(n), n, 1)
	if err != nil {
		panic(err) // not possible without a text
	}
	call := c.newCall(s, "", body, 1)
	call.timeout = min(probeTimeout, c.cfg.Timeout)
	o := call.Send(ctx)
	return o, call.told
}
