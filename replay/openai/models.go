package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// settleModel looks up the first server's models. Servers with other models will
// refuse the requests.
func (c *Client) settleModel(ctx context.Context) (notes []string, err error) {
	s := c.servers[0]
	if c.cfg.Model == "" {
		c.cfg.Model = s.base.deployment
	}
	if s.base.deployment != "" { // it has one model and lists none
		return nil, nil
	}
	models, contexts, status, err := c.models(ctx, s)
	c.contexts = contexts
	c.listError = ""
	if err != nil {
		c.listError = c.printable(err.Error())
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && c.cfg.Model == "":
		return nil, fmt.Errorf("asking %s for its models, as none is set: %w", s.shown(s.base.modelsPath()), listRefused(status, c.listError))
	case err != nil:
		notes = append(notes, "the endpoint does not list its models: "+c.listError)
	case c.cfg.Model == "" && len(models) == 1 && oneLine(models[0]) != models[0]:
		return nil, fmt.Errorf("%s serves a model whose name cannot be printed: set the model", s.base)
	case c.cfg.Model == "" && len(models) == 1:
		c.cfg.Model = models[0]
	case c.cfg.Model == "":
		return nil, fmt.Errorf("%s serves %d models: choose one of %s", s.base, len(models), c.printable(strings.Join(models, ", ")))
	}
	if err == nil && !slices.Contains(models, c.cfg.Model) {
		notes = append(notes, c.printable(fmt.Sprintf("the endpoint lists the model %s, not %s: it may answer with a model of its choice", strings.Join(models, ", "), c.cfg.Model)))
	}
	c.unlisted = nil
	for _, m := range c.cfg.allModels() {
		if m.Name != c.cfg.Model && !slices.Contains(models, m.Name) {
			c.unlisted = append(c.unlisted, m)
		}
	}
	return notes, nil
}

// probeUnlisted sends a short request for each of several models that the first
// server does not list: gateways and servers that load adapters on demand may serve
// it nevertheless.
func (c *Client) probeUnlisted(ctx context.Context) (notes []string, err error) {
	const most = 8
	for i, m := range c.unlisted {
		if i == most {
			notes = append(notes, fmt.Sprintf("the endpoint does not list %d of the models; the first %d of them were tried", len(c.unlisted), most))
			break
		}
		body := append(slices.Clone(c.headOf(m.Name)), c.probeBody(probeTokens)[len(c.layout.head):]...)
		call := c.newCall(c.servers[0], "", body, 1)
		if _, err := c.sendProbe(ctx, call); err != nil {
			return nil, fmt.Errorf("%s does not serve the model %q%s: %w", c.servers[0].base, m.Name, m.place(), err)
		}
	}
	return notes, nil
}

const maxModels = 4 << 20 // bytes of the list

// listRefused returns the error of a list of models that is needed.
func listRefused(status int, text string) error {
	switch {
	case status == 401 || status == 403:
		return &RefusedError{Status: status, Text: text, Remedy: UseKey}
	case status == statusOK || status >= 400 && status <= 500:
		return &RefusedError{Status: status, Text: text, Remedy: NameModel}
	}
	return errors.New(text) // of a connection, a gateway without its server, or a redirect that says what to do
}

// models returns the names that /v1/models lists, the lengths of their contexts as far
// as they are listed, and the status of the answer. Its errors may quote secrets.
func (c *Client) models(ctx context.Context, s *server) (names []string, contexts map[string]int, status int, err error) {
	var head fasthttp.RequestHeader
	s.head.CopyTo(&head)
	head.SetMethod(fasthttp.MethodGet)
	head.SetRequestURI(s.target(s.base.modelsPath()))
	head.Set("Accept", "application/json")
	call := &call{client: c, server: s, head: head.Header(), timeout: min(probeTimeout, c.cfg.Timeout), maxText: maxModels}
	_, a, _, err := call.do(ctx)
	switch {
	case err != nil && a.status != statusOK:
		return nil, nil, a.status, err
	case a.err != nil && a.err != io.EOF:
		return nil, nil, a.status, fmt.Errorf("reading the list: %w", a.err)
	}
	var list struct { // of encoding/json: compiling sonic's decoder would delay each process
		Data []struct {
			ID      string          `json:"id"`
			Context json.RawMessage `json:"max_model_len"` // of vLLM and SGLang
		} `json:"data"`
	}
	if err := json.Unmarshal(a.text, &list); err != nil || list.Data == nil {
		return nil, nil, a.status, fmt.Errorf("not a list of models: %s", a.text)
	}
	if len(list.Data) == 0 {
		return nil, nil, a.status, errors.New("the list is empty")
	}
	contexts = map[string]int{}
	for _, m := range list.Data {
		names = append(names, m.ID)
		var length float64
		if json.Unmarshal(m.Context, &length) == nil {
			contexts[m.ID] = int(max(0, min(length, maxCount)))
		}
	}
	return names, contexts, a.status, nil
}
