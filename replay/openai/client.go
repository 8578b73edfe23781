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
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

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
	host    *fasthttp.HostClient
	head    fasthttp.RequestHeader // of every POST
	before  []byte                 // of every body: all up to the prompt
	after   []byte                 // of every body: all behind max_tokens
	ignore  bool                   // ignore_eos is sent
	digest  digest
	dialing context.Context
	hangUp  context.CancelFunc
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
	c := &Client{cfg: cfg, base: base, ignore: true}
	c.dialing, c.hangUp = context.WithCancel(context.Background())
	dialer := &net.Dialer{Timeout: dialTimeout}
	c.host = &fasthttp.HostClient{
		Addr:                fasthttp.AddMissingPort(base.Host, base.Scheme == "https"),
		IsTLS:               base.Scheme == "https",
		MaxConns:            1 << 30, // the trace says how many, not the pool
		MaxIdleConnDuration: idleTimeout,
		ConnPoolStrategy:    fasthttp.LIFO,
		ReadBufferSize:      8 << 10,
		Dial: func(addr string) (net.Conn, error) {
			raw, err := dialer.DialContext(c.dialing, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return &conn{Conn: raw}, nil
		},
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
	for _, h := range cfg.Headers {
		if h.Name == "" || strings.ContainsAny(h.Name, " :\r\n\t") || strings.ContainsAny(h.Value, "\r\n") {
			return fmt.Errorf("header %q is not a name and a value", h.Name)
		}
	}
	if strings.ContainsAny(cfg.APIKey, "\r\n") {
		return errors.New("API key has a line end in it")
	}
	return cfg.Source.Validate()
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("url does not parse: %q", text)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("url is not http://host or https://host: %q", u.Redacted())
	case u.User != nil:
		return nil, errors.New("url has credentials in it: use a header or an API key")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("url has a query or a fragment: %q", text)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	return u, nil
}

// Target is the URL that requests go to.
func (c *Client) Target() string { return c.base.String() + c.path() }

// Model is the model that requests name. It is known after Probe.
func (c *Client) Model() string { return c.cfg.Model }

// Endpoint and PromptForm are what the configuration said or left to defaults.
func (c *Client) Endpoint() string { return c.cfg.Endpoint }

// PromptForm is Tokens or Words.
func (c *Client) PromptForm() string { return c.cfg.Prompt }

// IgnoresEOS reports whether requests ask for answers of the full length.
func (c *Client) IgnoresEOS() bool { return c.ignore }

// Close drops the idle connections and gives up those being opened.
func (c *Client) Close() {
	c.hangUp()
	c.host.CloseIdleConnections()
}

func (c *Client) path() string {
	if c.cfg.Endpoint == Chat {
		return "/v1/chat/completions"
	}
	return "/v1/completions"
}

func (c *Client) fillHead() {
	c.head.SetMethod(fasthttp.MethodPost)
	c.head.SetRequestURI(c.base.Path + c.path())
	c.head.SetHost(c.base.Host)
	c.head.SetContentType("application/json")
	c.head.SetUserAgent("moontide")
	c.head.Set("Accept", "text/event-stream")
	if c.cfg.APIKey != "" {
		c.head.Set("Authorization", "Bearer "+c.cfg.APIKey)
	}
	for _, h := range c.cfg.Headers {
		c.head.Set(h.Name, h.Value)
	}
}
