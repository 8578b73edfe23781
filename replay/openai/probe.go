package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"moontide/replay"
)

// probeTimeout bounds the first answer: a server that is loading a model may
// take its time, one that is not there should not keep anybody waiting.
const probeTimeout = 60 * time.Second

// probeTokens are too few to fill a block of any server's cache.
const probeTokens = 8

// Probe asks the endpoint, before a run, whether it is there, which model it
// serves and whether it streams an answer, and settles what the requests say:
// the model where the configuration left it open, ignore_eos unless it is
// refused. It returns what the user should know.
func (c *Client) Probe(ctx context.Context) (notes []string, err error) {
	models, err := c.models(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && c.cfg.Model == "":
		return nil, fmt.Errorf("asking %s for its models: %s", c.base, c.legible(err.Error()))
	case err != nil:
		notes = append(notes, "the endpoint does not list its models: "+c.legible(err.Error()))
	case c.cfg.Model == "" && len(models) == 1 && oneLine(models[0]) != models[0]:
		return nil, fmt.Errorf("%s serves a model whose name cannot be printed: name the model to ask for", c.base)
	case c.cfg.Model == "" && len(models) == 1:
		c.cfg.Model = models[0]
	case c.cfg.Model == "":
		return nil, fmt.Errorf("%s serves %d models: name one of %s", c.base, len(models), c.legible(strings.Join(models, ", ")))
	}
	c.fillBody()
	o := c.probe(ctx)
	if o.Class == replay.HTTPError && strings.Contains(o.Error, "ignore_eos") {
		c.ignore = false
		c.fillBody()
		o = c.probe(ctx)
		notes = append(notes, "the endpoint refuses ignore_eos: answers may be shorter than the trace says")
	}
	if o.Class == replay.Canceled {
		return nil, ctx.Err()
	}
	// One token of an answer may well carry no text.
	if o.Class != replay.OK && o.Class != replay.Empty {
		return nil, fmt.Errorf("probing %s: %s", c.Target(), o.Error)
	}
	if !o.Counts.Output.Set {
		notes = append(notes, "the endpoint reports no usage: tokens are counted by chunks, an estimate")
	}
	return notes, nil
}

// probe sends one short request that belongs to no trace.
func (c *Client) probe(ctx context.Context) replay.Outcome {
	filler := c.cfg.Source.Filler("probe", probeTokens)
	body := append([]byte(nil), c.before...)
	switch {
	case c.cfg.Endpoint == Chat:
		body = append(body, `,"messages":[{"role":"user","content":"`...)
		body = append(filler.AppendWords(body), `"}]`...)
	case c.cfg.Prompt == Words:
		body = append(filler.AppendWords(append(body, `,"prompt":"`...)), '"')
	default:
		body = filler.AppendJSONTokens(append(body, `,"prompt":`...))
	}
	body = append(body, `,"max_tokens":1`...)
	body = append(body, c.after...)
	call := &call{client: c, body: body, expect: 1, timeout: min(probeTimeout, c.cfg.Timeout)}
	return call.Send(ctx)
}

// models returns the names that /v1/models lists. Its errors are foreign text.
func (c *Client) models(ctx context.Context) ([]string, error) {
	deadline := time.Now().Add(min(probeTimeout, c.cfg.Timeout))
	x, err := c.connect(ctx, deadline)
	if err != nil {
		return nil, err
	}
	defer x.release(false)
	unwatch := context.AfterFunc(ctx, func() { x.raw.SetDeadline(time.Unix(1, 0)) })
	defer unwatch()
	var head fasthttp.RequestHeader
	c.head.CopyTo(&head)
	head.SetMethod(fasthttp.MethodGet)
	head.SetRequestURI(c.base.Path + "/v1/models")
	head.Set("Accept", "application/json")
	if err := x.write(&head, nil); err != nil {
		return nil, err
	}
	if err := x.readHeader(); err != nil {
		return nil, noAnswer(err)
	}
	text, err := io.ReadAll(io.LimitReader(x.body(), 4<<20))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if code := x.header.StatusCode(); code != fasthttp.StatusOK {
		return nil, errors.New(errorText(code, text))
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list.Data) == 0 {
		return nil, fmt.Errorf("not a list of models: %s", text)
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, nil
}
