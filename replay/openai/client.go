// Package openai sends the requests of a replay to OpenAI-compatible servers (chat
// or completions) and measures the streamed answers.
//
// [New] makes a [Client] from a [Config]. [Client.Probe] then looks up the model
// and tests which parameters the servers accept. The client is the Client of a
// replay.Runner:
//
//	client, err := openai.New(openai.Config{URL: "http://localhost:8000"})
//	notes, err := client.Probe(ctx)
//	runner := replay.Runner{Client: client, Recorder: recorder}
//
// Package http1 transfers the bytes and package sse splits them into events.
// Answers are reduced to instants and counts as they arrive, on Linux in one
// thread for all connections. Instants are when the kernel received the bytes,
// where it reports that; see [Client.Stamps].
//
// # Live answers
//
// With [LiveAnswers] the prompt of a turn is made of parts, each but the last followed
// by what the server answered: as token ids, or as messages of the user and the
// assistant. Package transcript says where they are. A later turn repeats earlier parts
// and answers as they were sent. Of an answer it has the token ids that the server sent
// or, for messages, the text, whose tokens the server has counted. Reasoning is left out,
// as most chat templates do: of token ids these are the first, as many as the server
// counts as reasoning.
//
// The last part is made as long as it takes for the server to count
//
//	ISL                          with ExactISL
//	ISL + template + k * more    otherwise
//
// tokens, but has at least one: the template of the model adds template tokens to one
// message and more for each of k answers and the part after it, as Probe measures. If
// text of an answer has another number of tokens when it is encoded again, the server's
// count of the prompt tells, and the next part compensates for it.
//
// Rows with their own messages keep them, except that a message of the assistant that
// follows the messages of an earlier turn is replaced by the answer to that turn,
// unless it calls tools. An answer that calls tools cannot be part of a later prompt.
package openai

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"moontide/replay"
	"moontide/replay/openai/poll"
	"moontide/replay/openai/sse"
	"moontide/trace"
	"moontide/trace/stats"
)

// Client makes and sends requests. Its methods may be called from any goroutine
// once Probe has returned.
type Client struct {
	asked   Config // with defaults
	cfg     Config // as negotiated
	servers []*server
	loop    *poll.Loop // may be nil

	resendWithin time.Duration

	api       *api
	fixed     fixed
	caps      capabilities
	listError string   // why the list of models was refused, or ""
	extra     []member // of every body: Config.ExtraBody
	sampling  []member // temperature and top_p
	layout    layout
	heads     map[string][]byte // layout.head for each model
	unlisted  []NamedModel      // models that the first server does not list
	template  trace.Opt[int]
	contexts  map[string]int // tokens of the context, by model, as far as they are known
	live      *live          // nil unless answers are live

	budget sse.Budget        // of the events of all streams
	kept   atomic.Int64      // bytes of requests that may have to be sent again
	mask   *strings.Replacer // of secrets
	digest digest

	compressed atomic.Bool // an answer was

	stamped atomic.Uint64    // token chunks with kernel stamps
	shared  *stats.Durations // possible errors of chunks that share a stamp
}

// fixed are the choices that the user made and Probe does not change.
type fixed struct{ endpoint, prompt, tokenRange bool }

func fixedByUser(cfg Config, addresses []*address) fixed {
	named := cfg.Endpoint != "" || namedBy(addresses) != ""
	return fixed{endpoint: named, prompt: cfg.Prompt != "", tokenRange: cfg.Source.Low != 0 || cfg.Source.High != 0}
}

// New checks the configuration. It opens no connection. The caller must close the
// client.
func New(cfg Config) (*Client, error) {
	addresses, err := cfg.addresses()
	if err != nil {
		return nil, err
	}
	if err := cfg.checkEndpoint(addresses); err != nil {
		return nil, err
	}
	fixed := fixedByUser(cfg, addresses)
	cfg = cfg.WithDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Client{asked: cfg, fixed: fixed, live: newLive(cfg), shared: stats.NewDurations(3), resendWithin: resendWithin}
	c.beginNegotiation()
	c.caps.chunkTokens = 0 // without a probe, nothing is known
	for i, base := range addresses {
		s, err := newServer(cfg, i, base)
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, s)
	}
	c.mask = newMask(cfg, c.servers)
	if c.extra, c.sampling, err = extraMembers(cfg); err != nil {
		return nil, err
	}
	if c.loop, err = newLoop(c.servers); err != nil {
		return nil, err
	}
	c.setLayout()
	return c, nil
}

// Target returns the URLs of requests, separated by spaces. The values of their
// queries are masked.
func (c *Client) Target() string {
	var targets []string
	for _, s := range c.servers {
		targets = append(targets, s.base.shown(s.base.requestPath(c.cfg.Endpoint)))
	}
	return strings.Join(targets, " ")
}

// Model returns the model named in requests, or the mix of Config.Models. It is ""
// if every row of the trace names its own. It is valid after Probe.
func (c *Client) Model() string {
	switch {
	case len(c.cfg.Models) > 0:
		return MixText(c.cfg.Models)
	case c.cfg.allNamed():
		return ""
	}
	return c.cfg.Model
}

// Endpoint returns Chat or Completions.
func (c *Client) Endpoint() string { return c.cfg.Endpoint }

// PromptForm returns Tokens or Words.
func (c *Client) PromptForm() string { return c.cfg.Prompt }

// IgnoresEOS reports whether requests contain ignore_eos.
func (c *Client) IgnoresEOS() bool { return c.caps.ignoreEOS }

// MinTokens reports whether requests contain min_tokens.
func (c *Client) MinTokens() bool { return c.caps.minTokens }

// Accepted returns the names of the optional members that requests contain because
// the servers accept them.
func (c *Client) Accepted() []string { return c.caps.list(c.api, c.cfg.Prompt) }

// TokenRange returns the range [low, high) of the token ids in prompts.
func (c *Client) TokenRange() (low, high uint32) { return c.cfg.Source.TokenRange() }

// TemplateTokens returns the number of tokens that the servers add to each prompt.
// It is set by Probe if the servers' counts differ from the prompts' lengths by a
// constant only.
func (c *Client) TemplateTokens() trace.Opt[int] { return c.template }

// Members returns, as a JSON object, all members of a request's body except the
// prompt and the output length. They may change until Probe returns.
func (c *Client) Members() string {
	return string(append(slices.Clone(c.headOf(c.Model())), c.layout.tail...))
}

// Stamps reports whether the kernel or the client timestamps arrivals. Client
// timestamps include the delay of the read. Each Outcome reports whether the
// kernel's were missing.
func (c *Client) Stamps() replay.Stamps {
	if c.loop == nil {
		return replay.ClientStamps
	}
	return replay.KernelStamps
}

// ReadDelay returns the delays from the kernel's stamps to the client's reads, for
// all reads so far. It is empty for client timestamps.
func (c *Client) ReadDelay() *stats.Durations {
	if c.loop == nil {
		return new(stats.Durations)
	}
	return c.loop.Delays()
}

// Close ends the requests in flight and closes all connections. The client cannot
// be used afterwards.
func (c *Client) Close() {
	for _, s := range c.servers {
		s.host.Close()
	}
	if c.loop != nil {
		c.loop.Close()
	}
}

// StampErrors is the distribution of the possible errors of the kernel's stamps of
// token chunks. Chunks read together with a later event share its stamp and may
// have arrived earlier; all others are exact.
type StampErrors struct {
	Chunks uint64           // all that the kernel stamped
	Shared *stats.Durations // maximum errors of those with a shared stamp
}

// StampErrors returns the errors for all answers that have ended. It is empty for
// client timestamps, whose error is unknown.
func (c *Client) StampErrors() StampErrors {
	return StampErrors{c.stamped.Load(), c.shared.Since(nil)}
}

// Since returns the errors added since an earlier snapshot.
func (e StampErrors) Since(before StampErrors) StampErrors {
	return StampErrors{e.Chunks - before.Chunks, e.Shared.Since(before.Shared)}
}

// Quantile returns the q-quantile of the errors of all chunks.
func (e StampErrors) Quantile(q float64) time.Duration {
	shared := e.Shared.Count()
	above := math.Floor((1 - q) * float64(max(e.Chunks, shared)))
	if shared == 0 || above >= float64(shared) {
		return 0
	}
	return e.Shared.Quantile(1 - above/float64(shared))
}
