package openai

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"moontide/replay/prompt"
	"moontide/trace"
	"moontide/trace/log"
)

// Values of Config.Endpoint.
const (
	Completions = log.Completions
	Chat        = log.Chat
	Responses   = log.Responses
	Messages    = log.Messages
	Generate    = log.Generate
)

// Values of Config.Prompt.
const (
	Tokens = "tokens" // token ids, exact by construction
	Words  = "words"  // words of one token each, or passages of Source.Text
)

// Values of Config.Connections.
const (
	Pooled = "pooled" // kept alive and reused
	Fresh  = "fresh"  // a new connection for each request
)

// Values of Config.Balance.
const (
	RoundRobin = "round-robin" // by row number
	BySession  = "session"     // all turns of a session to one server, other rows round-robin
)

// PromptForms returns all values of Config.Prompt.
func PromptForms() []string { return []string{Tokens, Words} }

// ConnectionModes returns all values of Config.Connections.
func ConnectionModes() []string { return []string{Pooled, Fresh} }

// Balances returns all values of Config.Balance.
func Balances() []string { return []string{RoundRobin, BySession} }

// The default timeouts are long because answers can be: p99 latencies of 15 minutes
// have been published for servers under load.
const (
	DefaultTimeout          = time.Hour
	DefaultFirstByteTimeout = 30 * time.Minute
	DefaultIdleTimeout      = 2 * time.Minute
)

// Config configures a Client: where requests are sent and what they contain. Only
// URL is required.
type Config struct {
	// URL is that of a server (http or https, with or without /v1 at its end), or of
	// the endpoint of its API. Its query is sent with every request. The values of
	// the query may be keys: they are never printed.
	URL      string
	URLs     []string // several servers, instead of URL
	Balance  string   // RoundRobin (default) or BySession
	Server   string   // the kind of server, of Servers; default vLLM and compatible ones
	Endpoint string   // default: the one that the URLs name, what Server has, or Completions
	Prompt   string   // Tokens or Words; default Tokens for completions without Source.Text
	Model    string   // default: the one model that the endpoint serves
	// Models are several models, instead of Model. Source.Seed draws one for each
	// session, and for each row without a session.
	Models []Share
	// ModelFromTrace sends the model that a row names in its key model. TraceModels
	// are the models in the rows, for Probe to check, with one of the name "" if a row
	// names none.
	ModelFromTrace bool
	TraceModels    []NamedModel
	Source         prompt.Source
	// Answers says where the earlier answers in prompts come from: AnswersFromTrace
	// (default) or LiveAnswers. See the package comment.
	Answers string
	// CancelAfter ends requests that are not complete this long after they were sent:
	// they are abandoned. 0 means never.
	CancelAfter time.Duration
	// Retries is that of the replay.Runner.
	Retries int
	// Timeout limits a request, from sending to the end of its answer.
	// FirstByteTimeout limits the time from sending to the first byte of the
	// answer's tokens; heads, keep-alives and empty chunks are none. IdleTimeout
	// ends an answer, at most an eighth late, if nothing arrives for this long after
	// its first token. 0 means the default.
	Timeout, FirstByteTimeout, IdleTimeout time.Duration

	Headers []Header // sent with every request
	// SessionHeader is the header that names the session of a request: by default
	// DefaultSessionHeader, and none if it is NoSessionHeader.
	SessionHeader string
	Graph         *trace.Graph // of the trace, for LiveAnswers
	APIKey        string       // sent as a bearer token, or in the header that Server has for it; never printed
	ExtraBody     string       // a JSON object whose members are added to every request
	// Temperature (0 to 2) and TopP (above 0, at most 1) are omitted from requests
	// if absent.
	Temperature, TopP trace.Opt[float64]
	// StopAtEOS lets the model end its answers. Otherwise requests ask for the
	// full length with ignore_eos and min_tokens.
	StopAtEOS bool
	// ExactISL shortens prompts by the tokens that the endpoint adds (a chat
	// template), so that its count matches the trace. Probe measures them. Prompts
	// have at least one token, and rows with their own text are sent unchanged.
	ExactISL    bool
	Connections string // Pooled (default) or Fresh
	// RootCAs checks the certificates of https servers; nil means the system's CAs.
	// Insecure does not check them.
	RootCAs  *x509.CertPool
	Insecure bool
	// Proxy returns the proxy for a server (http, https or socks5), nil for none, as
	// that of a net/http.Transport; nil means no proxy. Its credentials are never
	// printed.
	Proxy func(server *url.URL) (*url.URL, error)
	// OnToken, if not nil, is called with each token chunk of the answer to a row,
	// in order. data is valid during the call. The thread that reads all
	// connections calls it, so it must not block.
	OnToken func(row int, data []byte)
}

// Header is an HTTP header.
type Header struct{ Name, Value string }

// urls returns URLs, or URL.
func (cfg Config) urls() []string {
	if len(cfg.URLs) == 0 {
		return []string{cfg.URL}
	}
	return cfg.URLs
}

// WithDefaults returns cfg with the defaults for what is absent.
func (cfg Config) WithDefaults() Config {
	cfg.Balance, cfg.Answers = cmp.Or(cfg.Balance, RoundRobin), cmp.Or(cfg.Answers, AnswersFromTrace)
	kind := cmp.Or(presetOf(cfg.Server), &presets[0])
	addresses, _ := cfg.addresses() // New returns the error
	cfg.Endpoint = cmp.Or(cfg.Endpoint, namedBy(addresses), kind.endpoint, Completions)
	if cfg.Prompt == "" {
		cfg.Prompt = Words
		if a := apiOf(cfg.Endpoint); a != nil && a.ids != "" && !kind.words && cfg.Source.Text == nil {
			cfg.Prompt = Tokens
		}
	}
	cfg.Timeout, cfg.FirstByteTimeout, cfg.IdleTimeout = cfg.Timeouts()
	cfg.Connections = cmp.Or(cfg.Connections, Pooled)
	cfg.SessionHeader = cmp.Or(cfg.SessionHeader, DefaultSessionHeader)
	cfg.Model = cfg.firstModel()
	return cfg
}

// Timeouts returns the timeouts with the defaults for those that are 0.
func (cfg *Config) Timeouts() (request, firstByte, idle time.Duration) {
	return cmp.Or(cfg.Timeout, DefaultTimeout), cmp.Or(cfg.FirstByteTimeout, DefaultFirstByteTimeout), cmp.Or(cfg.IdleTimeout, DefaultIdleTimeout)
}

func (cfg Config) check() error {
	servers, _ := Servers()
	for _, c := range []struct {
		what, value string
		values      []string
	}{
		{"kind of server is", cmp.Or(cfg.Server, servers[0]), servers},
		{"endpoint is", cfg.Endpoint, Endpoints()},
		{"prompt form is", cfg.Prompt, PromptForms()},
		{"balance is", cfg.Balance, Balances()},
		{"connections are", cfg.Connections, ConnectionModes()},
		{"answers are", cfg.Answers, AnswerModes()},
	} {
		if !slices.Contains(c.values, c.value) {
			return fmt.Errorf("%s not %s: %q", c.what, inWords(c.values), c.value)
		}
	}
	for _, d := range []struct {
		what string
		time time.Duration
	}{
		{"the time after which requests are abandoned", cfg.CancelAfter},
		{"timeout", cfg.Timeout}, {"first-byte timeout", cfg.FirstByteTimeout}, {"idle timeout", cfg.IdleTimeout},
	} {
		if d.time < 0 {
			return fmt.Errorf("%s is negative: %v", d.what, d.time)
		}
	}
	switch {
	case cfg.Prompt == Tokens && apiOf(cfg.Endpoint).ids == "":
		return fmt.Errorf("the %s endpoint takes text: token ids need the completions endpoint", cfg.Endpoint)
	case cfg.Source.Text != nil && cfg.Prompt == Tokens:
		return errors.New("passages of a dataset are text: they cannot be sent as token ids")
	case cfg.Temperature.Set && !(cfg.Temperature.Value >= 0 && cfg.Temperature.Value <= 2):
		return fmt.Errorf("temperature is not from 0 to 2: %v", cfg.Temperature.Value)
	case cfg.TopP.Set && !(cfg.TopP.Value > 0 && cfg.TopP.Value <= 1):
		return fmt.Errorf("top-p is not above 0 and at most 1: %v", cfg.TopP.Value)
	}
	for i, h := range cfg.Headers {
		if err := h.check(); err != nil {
			// The name may hold a misplaced secret.
			return fmt.Errorf("header %d %w", i+1, err)
		}
	}
	switch {
	case !headerText(cfg.APIKey):
		return errors.New("API key contains a line end or another control character")
	case !utf8.ValidString(cfg.Model):
		return errors.New("model name is not UTF-8")
	}
	if err := cfg.checkRouting(); err != nil {
		return err
	}
	return cfg.Source.Validate()
}

// inWords joins names: "a, b or c".
func inWords(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func (h Header) check() error {
	const separators = "()<>@,;:\\\"/[]?={} \t" // RFC 9110, section 5.6.2
	if h.Name == "" || !headerText(h.Name) || strings.ContainsAny(h.Name, separators) || !headerText(h.Value) {
		return errors.New("is not a name and a value")
	}
	switch strings.ToLower(h.Name) {
	case "content-length", "transfer-encoding", "connection", "trailer":
		return errors.New("is about the connection: it cannot be set")
	case "accept-encoding":
		return errors.New("asks for an encoded answer, whose tokens could not be timed")
	}
	return nil
}

// headerText reports whether s is allowed in a header.
func headerText(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
