package capture

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"moontide/replay/sim/server"
	"moontide/trace"
	"moontide/trace/log"
)

// rows keeps rows in memory.
type rows struct {
	mu  sync.Mutex
	all []trace.Request
	err error
}

func (r *rows) Write(row trace.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.all = append(r.all, row)
	return nil
}

func (r *rows) Flush() error { return nil }

// simulated starts a server whose engine answers at once.
func simulated(t *testing.T, edits ...func(*server.Config)) string {
	cfg := server.Config{Model: "sim"}
	for _, edit := range edits {
		edit(&cfg)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return "http://" + l.Addr().String()
}

// upstream serves a handler until the test ends and returns its URL.
func upstream(t *testing.T, handler http.HandlerFunc) string {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// begin reads a request and begins a stream with a token.
func begin(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n")
	w.(http.Flusher).Flush()
}

// captured is a proxy in front of a server, served as the command does. drain and now
// are the two interrupts; stop drains it and returns what Serve does.
type captured struct {
	*Proxy
	rows       rows
	url        string
	drain, now func()
	stop       func() error
}

func capturing(t *testing.T, upstream string, edits ...func(*Config)) *captured {
	return capturingOn(t, listening(t), upstream, edits...)
}

func listening(t *testing.T) *net.TCPListener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l.(*net.TCPListener)
}

func capturingOn(t *testing.T, l net.Listener, upstream string, edits ...func(*Config)) *captured {
	to, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Config: log.Config{Key: log.Key{1}, BlockSize: 16}, Upstream: to}
	for _, edit := range edits {
		edit(&cfg)
	}
	c := &captured{url: "http://" + l.Addr().String()}
	if c.Proxy, err = New(cfg, &c.rows); err != nil {
		t.Fatal(err)
	}
	gently, drain := context.WithCancel(context.Background())
	now, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- c.Serve(gently, now, l) }()
	c.drain, c.now = drain, stop
	c.stop = sync.OnceValue(func() error { drain(); return <-served })
	t.Cleanup(func() { stop(); c.stop() })
	return c
}

// post sends a body and returns the text of the response.
func (c *captured) post(t *testing.T, path, body string, headers ...string) string {
	t.Helper()
	_, text, err := c.send(path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (c *captured) send(path, body string, headers ...string) (response *http.Response, text string, err error) {
	r, _ := http.NewRequest("POST", c.url+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if response, err = http.DefaultClient.Do(r); err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	return response, string(all), err
}

// ids returns the text of n token ids from first on.
func ids(first, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,", first+i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// Requests of token ids have exact lengths and block ids: equal for equal prefixes,
// different elsewhere, also in what the last partial block has.
func TestTokenIDs(t *testing.T) {
	c := capturing(t, simulated(t))
	for _, prompt := range []string{ids(0, 50), ids(0, 40), ids(0, 32) + "," + ids(900, 20), ids(1, 50)} {
		c.post(t, "/v1/completions", `{"model":"sim","max_tokens":3,"stream":true,"stream_options":{"include_usage":true},"prompt":[`+prompt+`]}`)
	}
	c.stop()
	got := c.rows.all
	if len(got) != 4 {
		t.Fatalf("%d rows of 4", len(got))
	}
	for i, want := range []int{50, 40, 52, 50} {
		r := got[i]
		if r.InputLength != want || r.OutputLength != 3 || len(r.HashIDs) != (want+15)/16 {
			t.Errorf("row %d: ISL %d, OSL %d, %d blocks, want ISL %d and OSL 3", i, r.InputLength, r.OutputLength, len(r.HashIDs), want)
		}
		if _, marked := r.Raw("estimated"); marked {
			t.Errorf("row %d is marked as estimated: %s", i, r.Extra)
		}
	}
	shared := func(i, j int) (n int) {
		a, b := got[i].HashIDs, got[j].HashIDs
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	for _, tc := range []struct{ i, j, want int }{{0, 1, 2}, {0, 2, 2}, {1, 2, 2}, {0, 3, 0}} {
		if n := shared(tc.i, tc.j); n != tc.want {
			t.Errorf("rows %d and %d share %d blocks, want %d", tc.i, tc.j, n, tc.want)
		}
	}
	if n := c.Counts(); n.Rows != 4 || n.Requests != 4 || n.Ended[""] != 4 || n.HeldBytes != 0 || n.Faults != 0 {
		t.Errorf("%+v", n)
	}
}

// Of a request with both, SGLang uses the token ids, so the text does not count.
func TestTextBesideTokenIDs(t *testing.T) {
	c := capturing(t, simulated(t))
	for _, text := range []string{"", `"text":"a b c",`, `"text":null,`} {
		c.post(t, "/generate", `{`+text+`"sampling_params":{"max_new_tokens":2},"input_ids":[`+ids(0, 50)+`]}`)
	}
	c.post(t, "/generate", `{"text":"a b c","sampling_params":{"max_new_tokens":2},"input_ids":null}`)
	c.stop()
	got := c.rows.all
	if len(got) != 4 {
		t.Fatalf("%d rows of 4", len(got))
	}
	for i, r := range got {
		want := got[0].HashIDs
		if i == 3 {
			want = got[3].HashIDs[:1]
		}
		if r.OutputLength != 2 || !slices.Equal(r.HashIDs, want) || r.HashIDs == nil {
			t.Errorf("row %d: ISL %d, OSL %d, blocks %d, want %d", i, r.InputLength, r.OutputLength, r.HashIDs, want)
		}
	}
}

// A request that continues an earlier prompt is a turn of its session.
func TestSessions(t *testing.T) {
	for name, tc := range map[string]struct{ path, first, second, other string }{
		"chat": {"/v1/chat/completions",
			`"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]`,
			`"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},{"role":"user","content":[{"type":"text","text":"more"}]}]`,
			`"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello you"}]`},
		"messages": {"/v1/messages",
			`"system":"be brief","messages":[{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}]`,
			`"system":[{"type":"text","text":"be brief"}],"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},{"role":"user","content":[{"type":"text","text":"more","cache_control":{"type":"ephemeral"}}]}]`,
			`"system":"be brief","messages":[{"role":"user","content":[{"type":"text","text":"hell"}]}]`},
		"responses": {"/v1/responses",
			`"instructions":"be brief","input":[{"role":"user","content":"hello"}]`,
			`"instructions":"be brief","input":[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},{"role":"user","content":"more"}]`,
			`"instructions":"be","input":[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},{"role":"user","content":"more"}]`},
		"token ids": {"/v1/completions", `"prompt":[` + ids(0, 50) + `]`, `"prompt":[` + ids(0, 80) + `]`, `"prompt":[` + ids(0, 48) + `,99,98,97]`},
		"text":      {"/v1/completions", `"prompt":"one two three"`, `"prompt":"one two three four"`, `"prompt":"one two four three"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := capturing(t, simulated(t))
			for _, prompt := range []string{tc.first, tc.other, tc.second, tc.first} {
				c.post(t, tc.path, `{"model":"sim","max_tokens":2,"max_output_tokens":2,`+prompt+`}`)
			}
			c.stop()
			r := c.rows.all
			if len(r) != 4 {
				t.Fatalf("%d rows of 4", len(r))
			}
			if r[2].SessionID != r[0].SessionID || !r[2].Delay.Set || r[2].After != nil {
				t.Errorf("the second turn is of session %s after %v, its delay is %v; the first is of %s", r[2].SessionID, r[2].After, r[2].Delay, r[0].SessionID)
			}
			if r[1].SessionID == r[0].SessionID || r[3].SessionID == r[0].SessionID || r[0].Delay.Set {
				t.Errorf("sessions %s, %s, %s, %s: only the third continues the first", r[0].SessionID, r[1].SessionID, r[2].SessionID, r[3].SessionID)
			}
			if turn, _ := r[2].Raw("turn"); string(turn) != "2" {
				t.Errorf("turn %s, want 2", turn)
			}
		})
	}
}

// A sample has all requests of its sessions and none of others, whether a header or the
// prompts tell the sessions, and the counts add up.
func TestSample(t *testing.T) {
	const sessions, turns = 60, 3
	for _, header := range []string{"", "X-Session"} {
		c := capturing(t, simulated(t), func(cfg *Config) { cfg.SampleOneIn, cfg.SessionHeader = 4, header })
		for turn := range turns {
			for i := range sessions {
				c.post(t, "/v1/completions", `{"model":"sim","max_tokens":1,"prompt":[`+ids(1000*i, 20+20*turn)+`]}`, "X-Session", fmt.Sprint("s", i))
			}
		}
		c.stop()
		of := map[string]int{}
		for _, r := range c.rows.all {
			of[r.SessionID]++
		}
		for name, n := range of {
			if n != turns {
				t.Errorf("session %s has %d turns of %d", name, n, turns)
			}
		}
		if n := c.Counts(); n.Rows+n.SampledOut != sessions*turns || len(of) < 5 || len(of) > 30 {
			t.Errorf("%d sessions of %d, %+v", len(of), sessions, n)
		}
	}
}
