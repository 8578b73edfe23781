package openai

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// setLayout sets what all requests have in common.
func (c *Client) setLayout() {
	c.api = apiOf(c.cfg.Endpoint)
	for _, s := range c.servers {
		s.head.SetRequestURI(s.target(s.base.requestPath(c.api.name)))
		for _, h := range c.api.headers {
			if s.head.Peek(h.Name) == nil {
				s.head.Set(h.Name, h.Value)
			}
		}
	}
	c.layout = c.layoutOf(c.cfg.Model)
	c.heads = map[string][]byte{c.cfg.Model: c.layout.head}
	for _, m := range c.cfg.allModels() {
		c.heads[m.Name] = c.layoutOf(m.Name).head
	}
}

func (c *Client) layoutOf(model string) layout {
	return c.api.layout(members{model: model, caps: &c.caps, sampling: c.sampling, extra: c.extra})
}

// headOf returns the start of the body of a request for a model.
func (c *Client) headOf(model string) []byte {
	if head, ok := c.heads[model]; ok {
		return head
	}
	return c.layoutOf(model).head
}

// reservedKeys holds the keys that ExtraBody cannot set.
var reservedKeys = []string{
	"model", "prompt", "messages", "input", "input_ids", "stream", "stream_options", "sampling_params",
	"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "n",
}

// extraMembers returns the members of Config.ExtraBody, sorted by key, and the
// sampling parameters.
func extraMembers(cfg Config) (extra, sampling []member, err error) {
	values := map[string]raw{}
	if cfg.ExtraBody != "" {
		if err := jsonscan.Strict.UnmarshalFromString(cfg.ExtraBody, &values); err != nil || values == nil {
			return nil, nil, errors.New("extra body is not a JSON object")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(reservedKeys, key) {
			return nil, nil, fmt.Errorf("extra body has %q, which the replay sets", key)
		}
		extra = append(extra, member{key, values[key]})
	}
	for _, p := range []struct {
		key   string
		value trace.Opt[float64]
	}{{"temperature", cfg.Temperature}, {"top_p", cfg.TopP}} {
		if !p.value.Set {
			continue
		}
		if _, twice := values[p.key]; twice {
			return nil, nil, fmt.Errorf("extra body has %q, which has an option of its own: remove one of them", p.key)
		}
		sampling = append(sampling, member{p.key, strconv.AppendFloat(nil, p.value.Value, 'g', -1, 64)})
	}
	return extra, sampling, nil
}
