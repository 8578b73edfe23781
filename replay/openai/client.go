// Package openai is how requests are made and sent: OpenAI-compatible HTTP,
// chat or completions, streamed, with every instant taken where it happens.
//
// [New] makes a [Client] from a [Config]; [Client.Probe] asks the endpoint,
// before a run, whether it is there and what it takes; the client is then the
// Client of a replay.Runner. It drives fasthttp's connection pool with a
// transport of its own, since for a measurement the stock one is too helpful:
// it retries, mistakes a stream that was cut for one that ended, and tells
// when a header was parsed but not when bytes arrived.
package openai

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"moontide/replay/prompt"
)

// The endpoints of the API that a replay can use.
const (
	Chat        = "chat"
	Completions = "completions"
)

// The forms of a prompt.
const (
	Tokens = "tokens" // token ids, exact by construction
	Words  = "words"  // words of one token each
)

// DefaultTimeout is long because answers are: under load, published p99
// latencies reach a quarter of an hour.
const DefaultTimeout = 6 * time.Hour

const (
	dialTimeout = 30 * time.Second
	// Servers close idle connections after five seconds or more; the pool
	// must be quicker, or a request meets a connection that is being closed.
	idleTimeout = 3 * time.Second
)

// Config says where requests go and what they are like.
type Config struct {
	URL      string // http or https, with or without /v1 at its end
	Endpoint string // Chat or Completions; "" is Completions
	Prompt   string // Tokens or Words; "" is Tokens for completions and Words for chat
	Model    string // "" asks the endpoint for the one it serves
	Source   prompt.Source
	// Timeout bounds a request from its sending to the end of its answer.
	// 0 is DefaultTimeout.
	Timeout time.Duration
	Headers []Header // sent with every request
	APIKey  string   // sent as a bearer token; never printed
}

// Header is one HTTP header.
type Header struct{ Name, Value string }

// Client makes and sends requests. Prepare and Send may be called from many
// goroutines once Probe has returned.
type Client struct {
	cfg     Config
	base    *url.URL
	dialer  net.Dialer
	host    *fasthttp.HostClient   // the pool
	head    fasthttp.RequestHeader // of every POST
	before  []byte                 // of every body: all up to the prompt
	after   []byte                 // of every body: all behind max_tokens
	ignore  bool                   // ignore_eos is sent
	secrets *strings.Replacer
	digest  digest
}

// New checks the configuration. It opens no connection.
func New(cfg Config) (*Client, error) {
	base, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Endpoint == "" {
		cfg.Endpoint = Completions
	}
	if cfg.Prompt == "" {
		cfg.Prompt = Words
		if cfg.Endpoint == Completions {
			cfg.Prompt = Tokens
		}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, base: base, ignore: true, secrets: mask(cfg)}
	c.host = &fasthttp.HostClient{
		Addr:                fasthttp.AddMissingPort(base.Host, base.Scheme == "https"),
		IsTLS:               base.Scheme == "https",
		MaxConns:            1 << 30, // the trace says how many, not the pool
		MaxIdleConnDuration: idleTimeout,
		ConnPoolStrategy:    fasthttp.LIFO,
		ReadBufferSize:      8 << 10,
		Dial:                lazyDial,
	}
	c.fillHead()
	c.fillBody()
	return c, nil
}

func (cfg Config) check() error {
	switch {
	case cfg.Endpoint != Chat && cfg.Endpoint != Completions:
		return fmt.Errorf("endpoint is not %s or %s: %q", Chat, Completions, cfg.Endpoint)
	case cfg.Prompt != Tokens && cfg.Prompt != Words:
		return fmt.Errorf("prompt form is not %s or %s: %q", Tokens, Words, cfg.Prompt)
	case cfg.Endpoint == Chat && cfg.Prompt == Tokens:
		return errors.New("chat messages are text: token ids need the completions endpoint")
	case cfg.Timeout < 0:
		return fmt.Errorf("timeout is negative: %v", cfg.Timeout)
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

// parseURL prints no part of a URL that may be a secret.
func parseURL(text string) (*url.URL, error) {
	if strings.Contains(text, "@") {
		return nil, errors.New("url has credentials in it: use a header or an API key")
	}
	place, rest, _ := strings.Cut(text, "?")
	u, err := url.Parse(place)
	switch {
	case err != nil:
		return nil, fmt.Errorf("url does not parse: %q", place)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("url is not http://host or https://host: %q", place)
	case rest != "" || u.Fragment != "":
		return nil, errors.New("url has a query or a fragment: an endpoint has none")
	}
	for _, suffix := range []string{"/", "/v1"} {
		u.Path, u.RawPath = strings.TrimSuffix(u.Path, suffix), strings.TrimSuffix(u.RawPath, suffix)
	}
	return u, nil
}

// Target is the URL that requests go to.
func (c *Client) Target() string { return c.base.String() + c.path() }

// Model is the model that requests name. It is known after Probe.
func (c *Client) Model() string { return c.cfg.Model }

// Endpoint is Chat or Completions.
func (c *Client) Endpoint() string { return c.cfg.Endpoint }

// PromptForm is Tokens or Words.
func (c *Client) PromptForm() string { return c.cfg.Prompt }

// IgnoresEOS reports whether requests ask for answers of the full length.
func (c *Client) IgnoresEOS() bool { return c.ignore }

// Close drops the idle connections. Requests in flight are ended by their
// context.
func (c *Client) Close() { c.host.CloseIdleConnections() }

func (c *Client) path() string {
	if c.cfg.Endpoint == Chat {
		return "/v1/chat/completions"
	}
	return "/v1/completions"
}

func (c *Client) fillHead() {
	c.head.SetMethod(fasthttp.MethodPost)
	c.head.SetRequestURI(c.base.EscapedPath() + c.path())
	c.head.SetHost(c.base.Host)
	c.head.SetContentType("application/json")
	c.head.SetUserAgent("moontide")
	c.head.Set("Accept", "text/event-stream")
	if c.cfg.APIKey != "" {
		c.head.Set("Authorization", "Bearer "+c.cfg.APIKey)
	}
	for _, h := range c.cfg.Headers {
		c.head.Add(h.Name, h.Value)
	}
}
