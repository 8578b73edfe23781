package server

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"moontide/replay/listen"
	"moontide/replay/sim/engine"
)

// Config configures a [Server]. The zero value serves the model "sim" as fast
// as possible.
type Config struct {
	Model      string            // name of the model; default "sim"
	Deployment engine.Deployment // computes the responses
	// TimeScale is the speed of the deployment relative to real time, from
	// [LeastTimeScale] to [MostTimeScale]; 0 is 1.
	TimeScale float64
	// CacheGenerated also caches generated tokens, all but the last of a response,
	// so that a later turn of a conversation that has the response does not recompute it.
	CacheGenerated bool
	// Faults lists faults to simulate. Each affects its share of the requests
	// not affected by earlier ones. A request can select another fault in a
	// header.
	Faults []Fault
	// Refuse lists parameters, by name, and APIs that are refused as other servers
	// do: see [Refusable].
	Refuse []string
	// ReasoningTokens is the number of tokens at the start of each response that are
	// reasoning, which chat, responses and messages tell from visible text. A
	// response that is shorter has no visible text.
	ReasoningTokens int
	Seed            uint64 // for selecting requests with faults and their place in the stream
	// Encode splits prompts into tokens; if nil, each word is a token. Responses have only
	// words that are one token, unless there are none.
	Encode  Encoder
	Version string // returned by /version
	// MaxConnections limits open connections; 0 is what the limit on open files allows.
	MaxConnections int
}

// Encoder appends the tokens of a text to dst, as a model's tokenizer does.
type Encoder func(dst []uint32, text string) ([]uint32, error)

// Limits of [Config.TimeScale]. Beyond them the deployment's time would
// overflow within weeks, or the next event could be years away.
const (
	LeastTimeScale = 0.001
	MostTimeScale  = 1000
)

// complete returns the configuration with defaults, or an error if it is not valid.
func (c Config) complete() (Config, error) {
	c.Model = cmp.Or(c.Model, "sim")
	c.Deployment.Engine = c.Deployment.Engine.WithDefaults()
	c.TimeScale = cmp.Or(c.TimeScale, 1)
	c.MaxConnections = cmp.Or(c.MaxConnections, listen.Room(1))
	if c.Encode == nil {
		c.Encode = wordTokens
	}
	if !(c.TimeScale >= LeastTimeScale && c.TimeScale <= MostTimeScale) {
		return c, fmt.Errorf("time scale must be from %v to %v, got %v", LeastTimeScale, MostTimeScale, c.TimeScale)
	}
	if c.ReasoningTokens < 0 {
		return c, fmt.Errorf("number of reasoning tokens must not be negative, got %d", c.ReasoningTokens)
	}
	for _, name := range c.Refuse {
		if !slices.Contains(Refusable(), name) {
			return c, fmt.Errorf("%.64q cannot be refused: use %s", name, strings.Join(Refusable(), ", "))
		}
	}
	return c, nil
}

// Refusable returns what [Config.Refuse] may have: parameters that some servers
// refuse, prompts of token ids, and APIs.
func Refusable() []string {
	names := []string{"max_tokens", "max_completion_tokens", "stream_options", "continuous_usage_stats", "return_token_ids", "ignore_eos", "min_tokens", "token_ids"}
	for _, api := range apis {
		names = append(names, api.name)
	}
	return names
}

// refuse returns an error for what the server is configured to refuse.
func (c Config) refuse(api *api, b body) *apiError {
	for _, name := range c.Refuse {
		_, outer := b[name]
		switch ids := b.get(api.tokenIDs); {
		case name == api.name:
			return newError(fasthttp.StatusNotFound, "%q is not served", api.path)
		case name == "token_ids" && ids.holdsTokenIDs():
			return badRequest(ids.name, "%s must be a string, not an array of token ids", ids.name)
		case outer || slices.ContainsFunc(api.objects, func(object string) bool { return b[object+"."+name] != nil }):
			return badRequest(name, "Unknown parameter: '%s'.", name)
		}
	}
	return nil
}

// holdsTokenIDs reports whether a prompt is an array of token ids, or has one.
func (p parameter) holdsTokenIDs() bool {
	return !p.absent() && p.isArray() && bytes.TrimLeft(p.value, "[ \t\r\n")[0] != '"'
}
