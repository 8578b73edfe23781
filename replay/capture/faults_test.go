package capture

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/weblog"
	"moontide/trace/log"
)

// packed returns a text with gzip's coding.
func packed(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// Whatever the server, the client or the disk does, every request is counted once, and
// its row says how it ended.
func TestFaults(t *testing.T) {
	const chunk = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
	const body = `{"model":"m","prompt":"one two three"}`
	stream := func(then func(http.ResponseWriter)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			begin(w, r)
			then(w)
		}
	}
	whole := stream(func(w http.ResponseWriter) { io.WriteString(w, "data: [DONE]\n\n") })
	for name, tc := range map[string]struct {
		upstream http.HandlerFunc // nil for none
		edit     func(*Config)
		body     string
		coding   string // of the body
		class    replay.Class
		gap      string
		osl      int
	}{
		"upstream dies mid-stream": {upstream: stream(func(http.ResponseWriter) { panic(http.ErrAbortHandler) }), class: replay.Truncated, osl: 1},
		"stream without an end":    {upstream: stream(func(http.ResponseWriter) {}), class: replay.Truncated, osl: 1},
		"no upstream":              {class: replay.Connect, gap: "incomplete"},
		"an error status":          {upstream: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }, class: replay.HTTPError},
		"an error in the stream": {upstream: stream(func(w http.ResponseWriter) {
			io.WriteString(w, "data: {\"error\":{\"message\":\"oops\"}}\n\n")
		}), class: replay.Server, osl: 1},
		"a gzip stream": {upstream: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, chunk+chunk+"data: [DONE]\n\n")
			z.Close()
		}, osl: 2},
		"a coding that is not read": {upstream: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "xx")
		}},
		"an answer above the memory": {edit: func(c *Config) { c.Memory = 16 << 10 }, upstream: func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `{"choices":[{"text":"`+strings.Repeat("a", 64<<10)+`"}],"usage":{"prompt_tokens":3,"completion_tokens":9}}`)
		}},
		"half an answer": {upstream: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"choices":[{"text":"a`)
		}, class: replay.Truncated},
		"a body above the limit":       {edit: func(c *Config) { c.MaxBody = 20 }, upstream: whole, gap: "too_large", osl: 1},
		"more bodies than the memory":  {edit: func(c *Config) { c.Memory = 20 }, upstream: whole, gap: "memory", osl: 1},
		"a body that is not JSON":      {body: "hello", upstream: whole, gap: "unreadable", osl: 1},
		"several prompts in a request": {body: `{"prompt":["a","b"]}`, upstream: whole, gap: "batch", osl: 1},
		"a gzip body":                  {coding: "gzip", body: packed(`{"prompt":[` + ids(0, 40) + `]}`), upstream: whole, osl: 1},
		"a body of another coding":     {coding: "br", body: "abc", upstream: whole, osl: 1, gap: "encoding"},
		"a body of several codings":    {coding: "gzip, br", body: "abc", upstream: whole, osl: 1, gap: "encoding"},
		"a body that is not gzip":      {coding: "gzip", body: "abc", upstream: whole, osl: 1, gap: "unreadable"},
		"half a gzip body":             {coding: "gzip", body: packed(`{"prompt":[` + ids(0, 40) + `]}`)[:50], upstream: whole, osl: 1, gap: "unreadable"},
		"a bomb":                       {coding: "gzip", body: packed(`{"prompt":"` + strings.Repeat("a", 1<<20) + `"}`), edit: func(c *Config) { c.MaxBody = 64 << 10 }, upstream: whole, osl: 1, gap: "too_large"},
		"a gzip body without JSON":     {coding: "gzip", body: packed("hello"), upstream: whole, osl: 1, gap: "unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.body = cmp.Or(tc.body, body)
			url := "http://127.0.0.1:1"
			if tc.upstream != nil {
				url = upstream(t, func(w http.ResponseWriter, r *http.Request) {
					got, _ := io.ReadAll(r.Body)
					if string(got) != tc.body {
						t.Errorf("the server gets %d bytes of %d", len(got), len(tc.body))
					}
					tc.upstream(w, r)
				})
			}
			c := capturing(t, url, func(cfg *Config) {
				if tc.edit != nil {
					tc.edit(cfg)
				}
			})
			c.send("/v1/completions", tc.body, "Content-Encoding", tc.coding)
			c.stop()
			n := c.Counts()
			if n.Requests != 1 || n.Rows != 1 || n.Ended[tc.class] != 1 || n.InFlight != 0 || n.HeldBytes != 0 || n.Faults != 0 {
				t.Fatalf("%+v, want one that ended as %q", n, tc.class)
			}
			if got := n.NoBlocks[tc.gap]; tc.gap != "" && got != 1 || tc.gap == "" && len(n.NoBlocks) > 0 {
				t.Errorf("without blocks: %v, want %q", n.NoBlocks, tc.gap)
			}
			if r := c.rows.all[0]; r.OutputLength != tc.osl || (len(r.HashIDs) > 0) != (tc.gap == "") {
				t.Errorf("OSL %d, want %d, blocks %v", r.OutputLength, tc.osl, r.HashIDs)
			}
		})
	}
}

// What comes faster than it can be hashed or recorded is counted, and nothing of it stays
// in memory.
func TestFullQueues(t *testing.T) {
	c := capturing(t, "http://127.0.0.1:1")
	full := &Proxy{cfg: c.cfg, counts: newCounts(), keys: c.keys, memory: memory{most: 1 << 20}, sessions: log.NewSessions(10)}
	e := &exchange{proxy: full, arrived: time.Now()}
	e.beginRequest(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/v1/completions"}})
	e.copyBody([]byte(`{"prompt":"a"}`), true)
	e.end(false)
	full.open.Wait()
	if n := full.Counts(); n.Ended[replay.Connect] != 1 || n.LostRows["slow"] != 1 || e.noBlocks != noMemory || n.HeldBytes != 0 || n.Faults != 0 {
		t.Errorf("%+v, without blocks: %q", n, e.noBlocks)
	}
}

// A disk that is full costs rows, which are counted, and no answer.
func TestDiskFull(t *testing.T) {
	c := capturing(t, simulated(t))
	c.rows.err = errors.New("no space left on device")
	answer := c.post(t, "/v1/completions", `{"model":"sim","prompt":"one two","max_tokens":2}`)
	c.stop()
	if n := c.Counts(); !strings.Contains(answer, `"completion_tokens":2`) || n.LostRows["writing"] != 1 || n.Rows != 0 || n.WriteError == nil {
		t.Errorf("%s, %+v", answer, n)
	}
}

// Bodies and answers pass unchanged, also those that are not recorded.
func TestUnchanged(t *testing.T) {
	long := bytes.Repeat([]byte("x\x00\xff"), 1<<18)
	server := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/early" { // an answer before the body was read
			io.WriteString(w, "early")
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})
	c := capturing(t, server)
	for _, path := range []string{"/v1/completions", "/v1/embeddings"} {
		if got := c.post(t, path, string(long)); got != string(long) {
			t.Errorf("%s: %d bytes of %d", path, len(got), len(long))
		}
	}
	if got := c.post(t, "/early", string(long[:1000])); got != "early" {
		t.Errorf("%q", got)
	}
	c.stop()
	if n := c.Counts(); n.Requests != 1 || n.Other != 2 || n.Rows != 1 {
		t.Errorf("%+v", n)
	}
}

// A panic of a handler costs its connection, and says nothing of the request.
func TestHandlerPanics(t *testing.T) {
	said := make(chan string, 9)
	weblog.Divert(func(text string) { said <- text })
	to, _ := url.Parse(simulated(t))
	p, err := New(Config{Config: log.Config{Key: log.Key{1}, BlockSize: 16}, Upstream: to}, new(rows))
	if err != nil {
		t.Fatal(err)
	}
	p.pass.Rewrite = func(r *httputil.ProxyRequest) { panic("secret " + r.In.Header.Get("X-Secret")) }
	l := listening(t)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- p.Serve(ctx, ctx, l) }()
	conn := raw(t, l.Addr().String(), "POST /v1/completions HTTP/1.1\nHost: h\nX-Secret: secret\nContent-Length: 2\n\n{}")
	if answer, err := io.ReadAll(conn); len(answer) > 0 || err != nil {
		t.Errorf("%s, %v", answer, err)
	}
	if text := <-said; !strings.Contains(text, "panicked") || strings.Contains(text, "secret") {
		t.Error(text)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if n := p.Counts(); n.Rows != 1 || n.InFlight != 0 || n.HeldBytes != 0 {
		t.Errorf("%+v", n)
	}
}

// failing is an encoder that fails in one of two ways.
type failing struct{ panics bool }

func (f failing) Append(dst []uint32, text string) ([]uint32, error) {
	if f.panics {
		panic("a fault")
	}
	return nil, errors.New("too hard")
}

// A tokenizer that fails costs the block ids, and what only it could count.
func TestEncoderFails(t *testing.T) {
	for _, panics := range []bool{false, true} {
		c := capturing(t, simulated(t), func(cfg *Config) { cfg.Encoder = failing{panics} })
		answer := c.post(t, "/v1/completions", `{"model":"sim","prompt":"one two","max_tokens":2}`)
		c.stop()
		faults := int64(0)
		if panics {
			faults = 1
		}
		if n := c.Counts(); !strings.Contains(answer, `"completion_tokens":2`) || n.Rows != 1 || n.NoBlocks["failed"] != 1 || n.Faults != faults || n.HeldBytes != 0 {
			t.Errorf("%s, %+v", answer, n)
		}
		if r := c.rows.all[0]; r.InputLength != 2 || r.OutputLength != 2 || len(r.HashIDs) > 0 {
			t.Errorf("%+v", r)
		}
	}
}
