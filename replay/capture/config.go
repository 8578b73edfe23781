package capture

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"moontide/trace"
)

// Config is what a capture needs. Upstream and Key must be set.
type Config struct {
	Upstream *url.URL // base of the server's paths
	Key      Key
	// BlockSize is the number of tokens of a block; 0 is trace.DefaultBlockSize.
	BlockSize int
	// Encoder turns texts into tokens. Without one, lengths that the server does not
	// tell and block ids of texts are estimated, and marked so. EncoderID is different
	// for each vocabulary, so that captures with different ones share no ids.
	Encoder   Encoder
	EncoderID string
	// BytesPerToken is the assumed size of a token without an encoder; 0 is 4.
	BytesPerToken float64
	// SessionHeader and SessionField name the header, or the member of the body, such
	// as metadata.chat_id, that has the name of a request's session. Without a name, a
	// session is found by its prompts: each continues the one before.
	SessionHeader, SessionField string
	// SampleOneIn keeps one in a number of sessions; 0 and 1 keep all.
	SampleOneIn int
	// MaxBody limits the size of a body that is read for its block ids, and Memory that
	// of all bodies and answers held at a time, in bytes; 0 is 64 MiB and 256 MiB.
	MaxBody, Memory int64
	// TLS is how the certificate of an https server is checked; nil is the default.
	TLS *tls.Config
}

// Check returns an error if the configuration is not valid.
func (c Config) Check() error {
	switch u := c.Upstream; {
	case u == nil:
		return errors.New("upstream is missing")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("upstream %s: the scheme must be http or https", u.Redacted())
	case u.Host == "":
		return fmt.Errorf("upstream %s has no host", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("upstream %s must be a base URL, without user, query and fragment", u.Redacted())
	case c.Key == Key{}:
		return errors.New("key is missing")
	case c.BlockSize < 0 || c.BlockSize > maxBlockSize:
		return fmt.Errorf("block size %d is outside of 1 to %d", c.BlockSize, maxBlockSize)
	case !(c.BytesPerToken == 0 || c.BytesPerToken >= 0.1 && c.BytesPerToken <= 100):
		return fmt.Errorf("%v bytes per token is outside of 0.1 to 100", c.BytesPerToken)
	case c.SampleOneIn < 0:
		return fmt.Errorf("a sample of one in %d sessions is not possible", c.SampleOneIn)
	case c.MaxBody < 0 || c.Memory < 0:
		return errors.New("limits must not be negative")
	}
	return nil
}

const maxBlockSize = 1 << 20

// withDefaults returns c with all zero values replaced.
func (c Config) withDefaults() Config {
	if c.BlockSize == 0 {
		c.BlockSize = trace.DefaultBlockSize
	}
	if c.BytesPerToken == 0 {
		c.BytesPerToken = 4
	}
	if c.SampleOneIn == 0 {
		c.SampleOneIn = 1
	}
	if c.MaxBody == 0 {
		c.MaxBody = 64 << 20
	}
	if c.Memory == 0 {
		c.Memory = 256 << 20
	}
	return c
}

// transport sends requests to the server. It passes bodies on as they are, uses no
// proxy, and keeps connections open.
func (c Config) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1024
	t.Proxy, t.TLSClientConfig = nil, c.TLS
	return t
}
