package openai

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay"
	"moontide/trace/jsonscan"
)

// probeTimeout bounds the first answer: a server that is loading a model may
// take its time, one that is not there should not keep anybody waiting.
const probeTimeout = 60 * time.Second

// Probe asks the servers, before a run, whether they are there, which model
// they serve and whether they stream an answer, and settles what the requests
// say: the model where the configuration left it open, ignore_eos and min_tokens
// unless they are refused. It learns how the servers count prompts. It returns
// what the user should know.
func (c *Client) Probe(ctx context.Context) (notes []string, err error) {
	if notes, err = c.settleModel(ctx); err != nil {
		return nil, err
	}
	c.fillBody()
	for _, s := range c.servers {
		more, err := c.try(ctx, s)
		if err != nil {
			return nil, err
		}
		notes = append(notes, more...)
	}
	return notes, nil
}

// settleModel asks the first server for its models. Whether the others serve
// the same, they will tell.
func (c *Client) settleModel(ctx context.Context) (notes []string, err error) {
	s := c.servers[0]
	models, err := c.models(ctx, s)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && c.cfg.Model == "":
		return nil, fmt.Errorf("asking %s for its models: %s", s.base, c.legible(err.Error()))
	case err != nil:
		notes = append(notes, "the endpoint does not list its models: "+c.legible(err.Error()))
	case c.cfg.Model == "" && len(models) == 1 && oneLine(models[0]) != models[0]:
		return nil, fmt.Errorf("%s serves a model whose name cannot be printed: name the model to ask for", s.base)
	case c.cfg.Model == "" && len(models) == 1:
		c.cfg.Model = models[0]
	case c.cfg.Model == "":
		return nil, fmt.Errorf("%s serves %d models: name one of %s", s.base, len(models), c.legible(strings.Join(models, ", ")))
	}
	return notes, nil
}

// try sends a server a short request and, to learn how it counts, a longer one.
func (c *Client) try(ctx context.Context, s *server) (notes []string, err error) {
	o := c.probe(ctx, s, probeTokens)
	for note := c.yield(o); note != ""; note = c.yield(o) {
		notes = append(notes, note)
		o = c.probe(ctx, s, probeTokens)
	}
	if o.Class == replay.Canceled {
		return nil, ctx.Err()
	}
	// One token of an answer may well carry no text.
	if o.Class != replay.OK && o.Class != replay.Empty {
		return nil, fmt.Errorf("probing %s: %s", s.base.String()+c.cfg.path(), o.Error)
	}
	if !o.Counts.Output.Set {
		notes = append(notes, "the endpoint reports no usage: tokens are counted by chunks, an estimate")
	}
	more, err := c.learnCounting(ctx, s, o.Counts.Input)
	return append(notes, more...), err
}

// yield leaves out a member that the endpoint refused, and says so. It returns
// "" where there is none.
func (c *Client) yield(o replay.Outcome) (note string) {
	refused := func(sent *bool, member string) bool {
		if !*sent || o.Class != replay.HTTPError || !strings.Contains(o.Error, member) {
			return false
		}
		*sent = false
		c.fillBody()
		return true
	}
	switch {
	case refused(&c.ignoreEOS, "ignore_eos"):
		return "the endpoint refuses ignore_eos: answers may be shorter than the trace says"
	case refused(&c.minTokens, "min_tokens"):
		return "the endpoint refuses min_tokens: it is left out"
	}
	return ""
}

// probe sends one request of n tokens that belongs to no trace.
func (c *Client) probe(ctx context.Context, s *server, n int) replay.Outcome {
	filler := c.cfg.Source.Filler("probe-"+strconv.Itoa(n), n)
	body := append([]byte(nil), c.before...)
	switch {
	case c.cfg.Endpoint == Chat:
		body = append(body, `,"messages":[{"role":"user","content":"`...)
		body = append(filler.AppendText(body), `"}]`...)
	case c.cfg.Prompt == Words:
		body = append(filler.AppendText(append(body, `,"prompt":"`...)), '"')
	default:
		body = filler.AppendJSONTokens(append(body, `,"prompt":`...))
	}
	call := c.newCall(s, "", c.appendRest(body, 1))
	call.timeout = min(probeTimeout, c.cfg.Timeout)
	return call.Send(ctx)
}

// maxModels bounds the list of models in bytes.
const maxModels = 4 << 20

// models returns the names that /v1/models lists. Its errors are foreign text.
func (c *Client) models(ctx context.Context, s *server) ([]string, error) {
	var head fasthttp.RequestHeader
	s.head.CopyTo(&head)
	head.SetMethod(fasthttp.MethodGet)
	head.SetRequestURI(s.base.EscapedPath() + "/v1/models")
	head.Set("Accept", "application/json")
	call := &call{client: c, server: s, head: head.Header(), timeout: min(probeTimeout, c.cfg.Timeout), plain: maxModels}
	_, a, _, err := call.do(ctx)
	switch {
	case err != nil && a.head.status != fasthttp.StatusOK:
		return nil, err
	case a.cause != nil && a.cause != io.EOF:
		return nil, fmt.Errorf("reading the answer: %w", a.cause)
	}
	text := a.text
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := jsonscan.Strict.Unmarshal(text, &list); err != nil || len(list.Data) == 0 {
		return nil, fmt.Errorf("not a list of models: %s", text)
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, nil
}
