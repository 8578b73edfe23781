package capture

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"moontide/trace/record"
)

// Config is what a capture needs. Upstream and Key must be set.
type Config struct {
	record.Config
	Upstream *url.URL // base of the server's paths
	// SessionHeader names the header that has the name of a request's session. The
	// SessionField takes precedence.
	SessionHeader string
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
	case c.SampleOneIn < 0:
		return fmt.Errorf("a sample of one in %d sessions is not possible", c.SampleOneIn)
	case c.MaxBody < 0 || c.Memory < 0:
		return errors.New("limits must not be negative")
	}
	return c.Config.Check()
}

// withDefaults returns c with all zero values replaced.
func (c Config) withDefaults() Config {
	c.Config = c.Config.WithDefaults()
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
