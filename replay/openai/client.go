// Package openai sends the requests of a replay to OpenAI-compatible servers,
// chat or completions, and measures the streamed answers.
//
// [New] makes a [Client] from a [Config]. [Client.Probe] asks the servers, before
// a run, for their model and tries what they accept. The client is then the
// Client of a replay.Runner:
//
//	client, err := openai.New(openai.Config{URL: "http://localhost:8000"})
//	notes, err := client.Probe(ctx)
//	runner := replay.Runner{Client: client, Recorder: recorder}
//
// Package http1 carries the bytes and package sse cuts them into events. What an
// answer tells is reduced to instants and counts as it arrives, on Linux in one
// thread for all connections. Instants are those at which the kernel received
// the bytes, where it tells; see [Client.Stamps].
package openai

import (
	"slices"
	"strings"
	"sync/atomic"

	"moontide/replay"
	"moontide/replay/openai/poll"
	"moontide/trace"
)

// Client makes and sends requests. Its methods may be called from any goroutine
// once Probe has returned.
type Client struct {
	cfg     Config
	servers []*server
	loop    *poll.Loop // may be nil

	// Of every body: up to the prompt, and from behind the length of the answer.
	beforePrompt, afterPrompt []byte
	extra                     []byte // of afterPrompt: ExtraBody and the sampling
	extraKeys                 []string
	ignoreEOS                 bool // ignore_eos is sent
	minTokens                 bool // min_tokens is sent
	template                  trace.Opt[int]

	mask   *strings.Replacer // of secrets
	digest digest

	stamped atomic.Uint64 // token chunks with stamps of the kernel
	shared  poll.Counter  // possible errors of those that share a stamp
}

// New checks the configuration. It opens no connection. Close the client in the
// end.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	c := &Client{cfg: cfg, ignoreEOS: !cfg.StopAtEOS, minTokens: !cfg.StopAtEOS, mask: newMask(cfg)}
	for i, text := range cfg.URLs {
		base, err := parseURL(text)
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, newServer(cfg, i, base))
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	var err error
	if c.extra, c.extraKeys, err = extraMembers(cfg); err != nil {
		return nil, err
	}
	if c.loop, err = newLoop(c.servers); err != nil {
		return nil, err
	}
	c.setCommon()
	return c, nil
}

// Target is the URL of requests, several separated by spaces.
func (c *Client) Target() string {
	var targets []string
	for _, s := range c.servers {
		targets = append(targets, s.base.String()+c.cfg.path())
	}
	return strings.Join(targets, " ")
}

// Model is the model that requests name. It is known after Probe.
func (c *Client) Model() string { return c.cfg.Model }

// Endpoint is Chat or Completions.
func (c *Client) Endpoint() string { return c.cfg.Endpoint }

// PromptForm is Tokens or Words.
func (c *Client) PromptForm() string { return c.cfg.Prompt }

// IgnoresEOS reports whether requests have ignore_eos.
func (c *Client) IgnoresEOS() bool { return c.ignoreEOS }

// MinTokens reports whether requests have min_tokens.
func (c *Client) MinTokens() bool { return c.minTokens }

// TemplateTokens is the number of tokens that the servers add to each prompt. It
// is known after Probe if they count prompts correctly but for such a constant.
func (c *Client) TemplateTokens() trace.Opt[int] { return c.template }

// Members returns, as a JSON object, all members of a request's body but its
// prompt and the length of its answer. They may change until Probe returns.
func (c *Client) Members() string {
	return string(append(slices.Clone(c.beforePrompt), c.afterPrompt...))
}

// Stamps tells who takes the instants of arrival: the kernel, or the client,
// whose stamps are late by as much as it reads late. An Outcome tells if the
// kernel failed to.
func (c *Client) Stamps() replay.Stamps {
	if c.loop == nil {
		return replay.ClientStamps
	}
	return replay.KernelStamps
}

// ReadDelay is how much later than the kernel's stamp the client read, over all
// reads so far. It is empty for stamps of the client.
func (c *Client) ReadDelay() poll.Delays {
	if c.loop == nil {
		return poll.Delays{}
	}
	return c.loop.Delays()
}

// Close ends the requests in flight and closes all connections. The client
// cannot be used after that.
func (c *Client) Close() {
	for _, s := range c.servers {
		s.host.Close()
	}
	if c.loop != nil {
		c.loop.Close()
	}
}
