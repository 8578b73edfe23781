// Package capture records live LLM traffic as a trace, without the text of prompts and
// responses.
//
// A Proxy is an http.Handler in front of the server, and Files is where its rows go:
//
//	key, err := log.OpenKey("capture.key") // made once, kept secret
//	files, err := capture.CreateFiles(capture.FilesConfig{Path: "trace.jsonl.zst"})
//	proxy, err := capture.New(capture.Config{Upstream: url, Config: log.Config{Key: key}}, files)
//	http.ListenAndServe("127.0.0.1:9000", proxy)
//	...
//	proxy.Close() // after the last request
//	files.Close()
//
// Requests of all APIs of package openai are recorded, others only forwarded. Bodies are
// forwarded unchanged, and events as they arrive.
//
// # Contents of a trace
//
// A row has the arrival of a request at the proxy, in milliseconds since the capture began;
// ISL and OSL as the server counts them, else estimated; block ids, which are keyed hashes
// of prefixes; session, turn and the pause before it; and the outcome with its times.
//
// # Privacy
//
// Texts of prompts and responses, header values and names of users and sessions are never
// written. After a request is recorded, only buffers of open connections may hold them.
// A trace shows lengths, times and equality: that two prompts begin alike, that two
// requests are of one session. Without the key, nobody can find out whether a prompt has
// a known text.
//
// # Limits
//
// Requests are forwarded whether or not they can be recorded. Config.Memory bounds the
// memory; what does not fit, cannot be read or cannot be written is missing in the trace,
// and counted by reason in Counts.
package capture

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
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
	// Memory those of all bodies, decoded copies and responses in memory (0: 256 MiB),
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
