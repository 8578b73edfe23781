package openai

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"moontide/replay"
)

// probeTimeout limits the first requests. A server may take a while to load its
// model, but a server that is down should fail soon.
const probeTimeout = 60 * time.Second

// Probe checks that the servers answer and stream, and negotiates the contents of
// requests: the model, if not configured, and everything that servers may refuse,
// such as ignore_eos, token ids or the completions API. It measures how the servers
// count prompt tokens. To a server that refuses nothing it sends three requests,
// else one more for each refusal, eight at most, and one for each of several models
// that the first server does not list, eight at most. With live answers it sends each
// server one more, and the first another with an answer in the prompt. The notes, for
// the user, tell what was left out and what that costs.
func (c *Client) Probe(ctx context.Context) (notes []string, err error) {
	c.beginNegotiation()
	if notes, err = c.settleModel(ctx); err != nil {
		return nil, err
	}
	c.setLayout()
	switch {
	case c.cfg.StopAtEOS || c.caps.ignoreEOS:
	case !c.api.ignoreEOS:
		notes = append(notes, fmt.Sprintf("the %s API has no ignore_eos: %s", c.api.name, lengthsLost))
	default:
		notes = append(notes, fmt.Sprintf("%s has no ignore_eos: %s", presetOf(c.cfg.Server).title, lengthsLost))
	}
	for i := 0; i < len(c.servers); i++ {
		more, changed, err := c.probeServer(ctx, c.servers[i])
		if err != nil {
			return nil, err
		}
		for _, note := range more {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
		if changed && i > 0 {
			i = -1 // the servers before count other prompts now
		}
	}
	more, err := c.probeUnlisted(ctx)
	if err != nil {
		return nil, err
	}
	answers, err := c.settleAnswers(ctx)
	return slices.Concat(c.networkNotes(), notes, more, answers), err
}

// probeServer sends a short request and, to learn how the server counts tokens, a
// longer one. changed means that the API or the form of prompts has changed; unless
// the server is the first, its longer request is still to be sent then.
func (c *Client) probeServer(ctx context.Context, s *server) (notes []string, changed bool, err error) {
	endpoint, form := c.cfg.Endpoint, c.cfg.Prompt
	o, told, failed := c.probe(ctx, s, probeTokens)
	for range maxRefusals {
		note, again := c.concede(o)
		if !again {
			break
		}
		if note != "" {
			notes = append(notes, note)
		}
		c.setLayout()
		o, told, failed = c.probe(ctx, s, probeTokens)
	}
	if failed != nil {
		return nil, false, failed
	}
	if changed = c.cfg.Endpoint != endpoint || c.cfg.Prompt != form; changed && s != c.servers[0] {
		return notes, true, nil
	}
	if !o.Counts.Output.Set {
		notes = append(notes, "the endpoint reports no usage: output tokens are estimated by the number of chunks")
	}
	// Ask for one kind of evidence at most.
	c.caps.chunkTokens &= told
	switch {
	case c.live != nil && c.cfg.Prompt == Tokens && c.caps.chunkTokens&inTokenIDs != 0:
		c.caps.chunkTokens = inTokenIDs
	case c.caps.chunkTokens&inUsage != 0:
		c.caps.chunkTokens = inUsage
	}
	c.setLayout()
	more, err := c.learnTokenCount(ctx, s, o.Counts.Input)
	return append(notes, more...), changed, err
}

// probe requests one token for a prompt of n tokens.
func (c *Client) probe(ctx context.Context, s *server, n int) (o replay.Outcome, told tokenEvidence, failed error) {
	call := c.newCall(s, "", c.probeBody(n), 1)
	o, failed = c.sendProbe(ctx, call)
	return o, call.told, failed
}

// sendProbe sends a probe. It fails if the context ends or the server refuses; an answer
// may be empty, as its only token may have no text.
func (c *Client) sendProbe(ctx context.Context, probe *call) (o replay.Outcome, failed error) {
	probe.timeout = min(probeTimeout, c.cfg.Timeout)
	switch o = probe.Send(ctx); o.Class {
	case replay.OK, replay.Empty:
		return o, nil
	case replay.Canceled:
		return o, ctx.Err()
	}
	return o, fmt.Errorf("probing %s: %w", probe.server.shown(probe.server.base.requestPath(c.cfg.Endpoint)), c.refusal(o))
}

// probeBody returns a prompt of n tokens. The last of token ids is the largest, so
// that a server with a smaller vocabulary refuses it.
func (c *Client) probeBody(n int) []byte {
	name := "probe-" + strconv.Itoa(n)
	if c.cfg.Prompt != Tokens {
		body, err := c.fillerBody(name, n, 1)
		if err != nil {
			panic(err) // not possible without a text
		}
		return body
	}
	_, high := c.TokenRange()
	body := c.cfg.Source.Filler(name, n-1).AppendJSONTokens(append(c.startBody(c.layout.head, n), c.api.ids...))
	body = strconv.AppendUint(append(body[:len(body)-1], ','), uint64(high-1), 10)
	return c.finishBody(append(append(body, ']'), c.api.after...), 1)
}
