package capture

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"moontide/replay/listen"
	"moontide/trace/log"
)

// Config is what a capture needs. Upstream and Key must be set.
type Config struct {
	log.Config
	Upstream *url.URL // base of the server's paths
	// SessionHeader is the header that names a request's session. SessionField takes
	// precedence.
	SessionHeader string
	// SampleOneIn records one in this number of sessions; 0 and 1 record all.
	SampleOneIn int
	// MaxBody limits the bytes of a body that is read for its block ids (0: 64 MiB),
	// Memory those of all bodies, decoded copies and answers in memory (0: 256 MiB),
	// without garbage.
	MaxBody, Memory int64
	// Stall is how long a client may neither send nor take any of a body before it is
	// disconnected; 0 is 5 minutes.
	Stall time.Duration
	// MaxConnections limits the connections of clients; 0 is what the limit on open files
	// allows, at most 16384.
	MaxConnections int
	// TLS configures connections to an https server; nil is Go's default.
	TLS *tls.Config
}

// Check returns an error if the configuration is not valid.
func (c Config) Check() error {
	switch u := c.Upstream; { // any part of the URL may be a secret
	case u == nil:
		return errors.New("upstream is missing")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the scheme of the upstream must be http or https")
	case u.Host == "":
		return errors.New("upstream has no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("upstream must be a base URL, without user, query and fragment")
	case c.SampleOneIn < 0:
		return fmt.Errorf("a sample of one in %d sessions is not possible", c.SampleOneIn)
	case c.MaxBody < 0 || c.Memory < 0 || c.Stall < 0:
		return errors.New("limits must not be negative")
	}
	return c.Config.Check()
}

// withDefaults returns c with all zero values replaced.
func (c Config) withDefaults() Config {
	c.Config = c.Config.WithDefaults()
	c.SampleOneIn, c.Stall = cmp.Or(c.SampleOneIn, 1), cmp.Or(c.Stall, 5*time.Minute)
	c.MaxBody, c.Memory = cmp.Or(c.MaxBody, 64<<20), cmp.Or(c.Memory, 256<<20)
	c.MaxConnections = cmp.Or(c.MaxConnections, min(listen.Room(2), 1<<14))
	return c
}

// keepIdle is the idle timeout of connections to the server. It is below the 5 s of
// servers: a request sent while the server closes its connection fails, and must not be
// sent twice.
const keepIdle = 4 * time.Second

// transport returns a transport that does not decompress bodies and uses no proxy.
func (c Config) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = 0, 1024, keepIdle
	t.MaxConnsPerHost = c.MaxConnections // a client has one request at a time
	t.MaxResponseHeaderBytes = 1 << 20
	t.Proxy, t.TLSClientConfig = nil, c.TLS
	// Pings detect dead HTTP/2 servers. For HTTP/1.1, TCP keep-alive does.
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return t
}
