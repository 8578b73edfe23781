// Package openai is how requests are made and sent: OpenAI-compatible HTTP,
// chat or completions, streamed, with every instant taken where it happens.
//
// [New] makes a [Client] from a [Config]; [Client.Probe] asks the endpoint,
// before a run, whether it is there and what it takes; the client is then the
// Client of a replay.Runner. Heads of requests and answers are fasthttp's; the
// connections are not, since for a measurement a stock client is too helpful:
// it retries, mistakes a stream that was cut for one that ended, and tells
// when a header was parsed but not when bytes arrived.
//
// An answer is fed what arrives, piece by piece, and keeps next to nothing of
// it. On Linux, without TLS, one thread does so for all connections (package
// poll), and instants are those at which the kernel received the bytes; see
// [Client.Stamps].
package openai

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"moontide/replay"
	"moontide/replay/openai/poll"
	"moontide/replay/prompt"
	"moontide/trace"
)

// The endpoints of the API that a replay can use.
const (
	Chat        = "chat"
	Completions = "completions"
)

// The forms of a prompt.
const (
	Tokens = "tokens" // token ids, exact by construction
	Words  = "words"  // words of one token each, or passages of Source.Text
)

// DefaultTimeout is long because answers are: under load, published p99
// latencies reach a quarter of an hour.
const DefaultTimeout = 6 * time.Hour

const dialTimeout = 30 * time.Second

// What becomes of a connection whose answer was read to its end.
const (
	Pooled = "pooled" // it is kept for another request
	Fresh  = "fresh"  // it is closed: each request has a connection of its own
)

// How requests are spread over several servers.
const (
	RoundRobin = "round-robin" // by the row's number
	BySession  = "session"     // all turns of a session go to one; rows without go round
)

// Config says where requests go and what they are like.
type Config struct {
	URL string // http or https, with or without /v1 at its end
	// URLs are several servers, in place of one URL. Requests are spread over
	// them by Balance.
	URLs     []string
	Balance  string // RoundRobin or BySession; "" is RoundRobin
	Endpoint string // Chat or Completions; "" is Completions
	Prompt   string // Tokens or Words; "" is Tokens for completions without Source.Text, else Words
	Model    string // "" asks the endpoint for the one it serves
	Source   prompt.Source
	// Timeout bounds a request from its sending to the end of its answer.
	// 0 is DefaultTimeout.
	Timeout time.Duration
	// IdleTimeout is how long nothing may arrive of an answer, from the sending
	// of its request on; a request is given up at most an eighth later. 0 is
	// no limit but Timeout.
	IdleTimeout time.Duration
	Headers     []Header // sent with every request
	APIKey      string   // sent as a bearer token; never printed
	// ExtraBody is a JSON object whose members every request gets; "" is none.
	ExtraBody string
	// Temperature, of 0 to 2, and TopP, above 0 and at most 1, say how tokens
	// are chosen; what is absent is up to the endpoint.
	Temperature, TopP trace.Opt[float64]
	// StopAtEOS lets answers end where the model ends them. Otherwise requests
	// ask, by ignore_eos and min_tokens, for answers of the full length.
	StopAtEOS bool
	// ExactISL has prompts be shorter by the tokens that the endpoint adds to
	// each (a chat template), so that it counts what the trace says. Probe
	// measures them. No prompt is shorter than one token; those that rows
	// bring along stay as they are.
	ExactISL bool
	// Connections is Pooled or Fresh; "" is Pooled.
	Connections string
	// RootCAs are who may vouch for an https server; nil is whom the system
	// trusts.
	RootCAs *x509.CertPool
	// OnToken, unless it is nil, is given the data of every token chunk of the
	// answer to a row of the trace, in their order and valid during the call.
	// It is called where answers are read, which on Linux is one thread for
	// all of them, and must not wait for anything. It is there for calibration:
	// what the server says of an event is compared with what the client saw.
	OnToken func(row int, data []byte)
}

// Header is one HTTP header.
type Header struct{ Name, Value string }

// Client makes and sends requests. Prepare and Send may be called from many
// goroutines once Probe has returned.
type Client struct {
	cfg     Config
	servers []*server
	dialer  net.Dialer
	loop    *poll.Loop // nil where there is none
	before  []byte     // of every body: all up to the prompt
	after   []byte     // of every body: all behind max_tokens
	extra   []byte     // of after: what ExtraBody adds

	extraKeys []string
	ignoreEOS bool // ignore_eos is sent
	minTokens bool // min_tokens is sent
	template  trace.Opt[int]

	secrets *strings.Replacer
	digest  digest

	stamped atomic.Uint64 // token chunks
	merges  poll.Counter  // of these, the ones that were read together with the next
}

// New checks the configuration. It opens no connection. Close ends what it
// starts.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	c := &Client{cfg: cfg, ignoreEOS: !cfg.StopAtEOS, minTokens: !cfg.StopAtEOS, secrets: mask(cfg)}
	plain := false
	for _, text := range cfg.URLs {
		base, err := parseURL(text)
		if err != nil {
			return nil, err
		}
		s := newServer(cfg, base)
		s.index = len(c.servers)
		plain = plain || s.secure == nil
		c.servers = append(c.servers, s)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	var err error
	if c.extra, c.extraKeys, err = extraMembers(cfg.ExtraBody, cfg.sampling()); err != nil {
		return nil, err
	}
	if plain {
		if c.loop, err = poll.New(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
	}
	c.fillBody()
	return c, nil
}

func (cfg Config) withDefaults() Config {
	if len(cfg.URLs) == 0 {
		cfg.URLs = []string{cfg.URL}
	}
	if cfg.Balance == "" {
		cfg.Balance = RoundRobin
	}
	if cfg.Endpoint == "" {
		cfg.Endpoint = Completions
	}
	if cfg.Prompt == "" {
		cfg.Prompt = Words
		if cfg.Endpoint == Completions && cfg.Source.Text == nil {
			cfg.Prompt = Tokens
		}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Connections == "" {
		cfg.Connections = Pooled
	}
	return cfg
}

func (cfg Config) check() error {
	switch {
	case cfg.Endpoint != Chat && cfg.Endpoint != Completions:
		return fmt.Errorf("endpoint is not %s or %s: %q", Chat, Completions, cfg.Endpoint)
	case cfg.Prompt != Tokens && cfg.Prompt != Words:
		return fmt.Errorf("prompt form is not %s or %s: %q", Tokens, Words, cfg.Prompt)
	case cfg.Endpoint == Chat && cfg.Prompt == Tokens:
		return errors.New("chat messages are text: token ids need the completions endpoint")
	case cfg.Balance != RoundRobin && cfg.Balance != BySession:
		return fmt.Errorf("balance is not %s or %s: %q", RoundRobin, BySession, cfg.Balance)
	case cfg.Connections != Pooled && cfg.Connections != Fresh:
		return fmt.Errorf("connections are not %s or %s: %q", Pooled, Fresh, cfg.Connections)
	case cfg.Timeout < 0:
		return fmt.Errorf("timeout is negative: %v", cfg.Timeout)
	case cfg.IdleTimeout < 0:
		return fmt.Errorf("idle timeout is negative: %v", cfg.IdleTimeout)
	case cfg.Source.Text != nil && cfg.Prompt == Tokens:
		return errors.New("passages of a dataset are text: they cannot be sent as token ids")
	case cfg.Temperature.Set && !(cfg.Temperature.Value >= 0 && cfg.Temperature.Value <= 2):
		return fmt.Errorf("temperature is not from 0 to 2: %v", cfg.Temperature.Value)
	case cfg.TopP.Set && !(cfg.TopP.Value > 0 && cfg.TopP.Value <= 1):
		return fmt.Errorf("top-p is not above 0 and at most 1: %v", cfg.TopP.Value)
	}
	for i, h := range cfg.Headers {
		if err := h.check(); err != nil {
			// What was meant as a value may stand where the name should.
			return fmt.Errorf("header %d %w", i+1, err)
		}
	}
	switch {
	case !printable(cfg.APIKey):
		return errors.New("API key has a line end or another control character in it")
	case !utf8.ValidString(cfg.Model):
		return errors.New("model name is not UTF-8")
	}
	return cfg.Source.Validate()
}

func (h Header) check() error {
	const separators = "()<>@,;:\\\"/[]?={} \t" // RFC 9110, section 5.6.2
	if h.Name == "" || !printable(h.Name) || strings.ContainsAny(h.Name, separators) || !printable(h.Value) {
		return errors.New("is not a name and a value")
	}
	switch strings.ToLower(h.Name) {
	case "content-length", "transfer-encoding", "connection", "trailer":
		return errors.New("is about the connection, which is not up to the user")
	case "accept-encoding":
		return errors.New("asks for an encoded answer, whose tokens cannot be timed")
	}
	return nil
}

// printable reports whether s can stand in a header.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// Target is the URL that requests go to. Of several they are separated by
// blanks.
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

// IgnoresEOS reports whether requests ask for answers of the full length.
func (c *Client) IgnoresEOS() bool { return c.ignoreEOS }

// MinTokens reports whether requests forbid shorter answers by min_tokens.
func (c *Client) MinTokens() bool { return c.minTokens }

// TemplateTokens is how many tokens the endpoint adds to each prompt. It is
// known after Probe, where the endpoint counts prompts and counts what is meant
// but for such a constant.
func (c *Client) TemplateTokens() trace.Opt[int] { return c.template }

// Members are the members that the body of every request has beside its prompt
// and the length of its answer, as a JSON object. Probe settles them.
func (c *Client) Members() string {
	return string(append(slices.Clone(c.before), c.after...))
}

// Stamps says whose instants of arrival are: the kernel's, or the client's
// own, which are later by as much as the client is late in reading. Where the
// kernel fails to stamp what it should, an Outcome says so.
func (c *Client) Stamps() replay.Stamps {
	if c.loop == nil {
		return replay.ClientStamps
	}
	return replay.KernelStamps
}

// ReadDelay is how late the client was in reading what the kernel had stamped,
// over all reads so far. It is empty where stamps are the client's own.
func (c *Client) ReadDelay() poll.Delays {
	if c.loop == nil {
		return poll.Delays{}
	}
	return c.loop.Delays()
}

// Close ends what is in flight and closes the connections. The client cannot
// be used after that.
func (c *Client) Close() {
	for _, s := range c.servers {
		s.idle.close()
	}
	if c.loop != nil {
		c.loop.Close()
	}
}
