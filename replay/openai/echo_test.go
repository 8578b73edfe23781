package openai

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"moontide/replay"
	"moontide/trace"
)

// router answers each request with the head fields that give returns, and passes on
// the header of the request.
func router(t *testing.T, give func(n int, h http.Header) (status, fields string)) (url string, got chan http.Header) {
	t.Helper()
	got = make(chan http.Header, 100)
	var n atomic.Int64
	return serve(t, func(p *peer) {
		for {
			r, _ := p.request()
			if r == nil {
				return
			}
			status, fields := give(int(n.Add(1))-1, r.Header)
			got <- r.Header
			if status != "200 OK" {
				p.say("HTTP/1.1 " + status + "\r\n" + fields + "Content-Length: 20\r\n\r\n" + "no room for worker-7")
				continue
			}
			p.say(strings.Replace(streamed, "Content-Type", fields+"Content-Type", 1) + inChunk(complete) + lastChunk)
		}
	}).url, got
}

func sendTurn(t *testing.T, c *Client, session string, row int) replay.Outcome {
	t.Helper()
	r := trace.Request{InputLength: 3, OutputLength: 4, SessionID: session}
	made, err := c.Prepare(r, row)
	if err != nil {
		t.Fatal(err)
	}
	return made.Send(context.Background())
}

// echoing is a client that echoes a header and a cookie.
func echoing(t *testing.T, url string, edits ...func(*Config)) *Client {
	t.Helper()
	return client(t, url, append(edits, func(cfg *Config) {
		cfg.Echo = []Echo{{Name: "x-worker"}, {Name: "Lb", Cookie: true}}
	})...)
}

// What the router gives with the first answer of a session comes back with its later
// turns, and with those of no other session.
func TestEcho(t *testing.T) {
	t.Parallel()
	url, got := router(t, func(n int, _ http.Header) (string, string) {
		if n > 1 {
			return "200 OK", ""
		}
		return "200 OK", fmt.Sprintf("X-Worker: worker-%d\r\nSet-Cookie: other=1\r\nSet-Cookie: Lb=\"q%d==\"; Path=/; HttpOnly\r\nX-Other: no\r\n", n, n)
	})
	c := echoing(t, url, func(cfg *Config) { cfg.Headers = []Header{{"Cookie", "mine=1"}} })
	for i, turn := range []struct{ session, worker, cookie string }{
		{"a", "", "mine=1"}, {"b", "", "mine=1"}, {"", "", "mine=1"}, {"a", "worker-0", `mine=1; Lb="q0=="`}, {"b", "worker-1", `mine=1; Lb="q1=="`},
		{"a", "worker-0", `mine=1; Lb="q0=="`}, {"c", "", "mine=1"}, {"c", "", "mine=1"},
	} {
		wantOK(t, sendTurn(t, c, turn.session, i), 2)
		h := <-got
		if h.Get("X-Worker") != turn.worker || h.Get("Cookie") != turn.cookie || h.Get("X-Other") != "" {
			t.Errorf("turn %d of %q has %v", i, turn.session, h)
		}
	}
	for i, n := range c.Echoed() {
		if n.With != 3 || n.Without != 1 || n.Missing != 1 {
			t.Errorf("counts %d are %+v", i, n)
		}
	}
}

// A header may have another name in requests.
func TestEchoUnderAnotherName(t *testing.T) {
	t.Parallel()
	url, got := router(t, func(int, http.Header) (string, string) { return "200 OK", "X-Served-By: worker-7\r\n" })
	c := client(t, url, func(cfg *Config) { cfg.Echo = []Echo{{Name: "X-Served-By", As: "X-Worker"}} })
	for i, want := range []string{"", "worker-7"} {
		sendTurn(t, c, "a", i)
		if h := <-got; h.Get("X-Worker") != want || h.Get("X-Served-By") != "" {
			t.Errorf("turn %d has %v", i, h)
		}
	}
}

// A value is renewed by a later answer.
func TestEchoIsRenewed(t *testing.T) {
	t.Parallel()
	url, got := router(t, func(n int, _ http.Header) (string, string) {
		return "200 OK", strings.Repeat(fmt.Sprintf("X-Worker: worker-%d\r\n", n), n%2)
	})
	c := echoing(t, url)
	for i, want := range []string{"", "", "worker-1", "worker-1", "worker-3"} {
		sendTurn(t, c, "a", i)
		if h := <-got; h.Get("X-Worker") != want {
			t.Errorf("turn %d has %q, want %q", i, h.Get("X-Worker"), want)
		}
	}
}

// Values are dropped with the last turn of a session, or with a turn that failed, but
// not with one that the server refused and that may be sent again.
func TestEchoEndsWithTheSession(t *testing.T) {
	t.Parallel()
	status := make(chan string, 1)
	url, got := router(t, func(int, http.Header) (string, string) { return <-status, "X-Worker: worker-7\r\n" })
	plan, err := replay.Scan(trace.FromSlice([]trace.Request{
		{Timestamp: trace.Some(0.0), SessionID: "a"}, {Timestamp: trace.Some(0.0), SessionID: "a"}, {Timestamp: trace.Some(0.0), SessionID: "a"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := echoing(t, url, func(cfg *Config) { cfg.Graph = plan.Graph })
	kept := func(row int, now, want string) {
		t.Helper()
		status <- now
		o := sendTurn(t, c, "a", row)
		<-got
		if has := fmt.Sprint(len(c.echo.sessions) > 0); has != want {
			t.Errorf("after row %d with %s, the session is kept: %s", row, now, has)
		}
		if strings.Contains(o.Error, "worker-7") {
			t.Errorf("the value is in the error %q", o.Error)
		}
	}
	kept(0, "200 OK", "true")
	kept(1, "429 Too Many", "true")
	kept(1, "503 Busy", "true")
	kept(1, "200 OK", "true")
	kept(2, "200 OK", "false")
	kept(0, "200 OK", "true")
	kept(1, "500 Broken", "false")
	if c.echo.bytes != 0 {
		t.Errorf("%d bytes are counted for no session", c.echo.bytes)
	}
}

// The memory for values is bounded, and what is not kept is counted.
func TestEchoIsBounded(t *testing.T) {
	t.Parallel()
	e := newEchoes([]Echo{{Name: "X-Worker"}})
	value := strings.Repeat("w", 1<<20)
	for i := range 2 * maxEchoBytes / len(value) {
		e.keep(fmt.Sprint(i), []string{value})
	}
	if n := len(e.sessions); n < 60 || n*len(value) > maxEchoBytes || e.counts[0].Dropped != 128-n {
		t.Errorf("%d values are kept and %d dropped", n, e.counts[0].Dropped)
	}
}

// Without anything to echo, no field of a head is kept, and sessions are not either.
func TestNoEcho(t *testing.T) {
	t.Parallel()
	url, got := router(t, func(int, http.Header) (string, string) { return "200 OK", "X-Worker: worker-7\r\nSet-Cookie: Lb=1\r\n" })
	c := client(t, url)
	for i := range 2 {
		wantOK(t, sendTurn(t, c, "a", i), 2)
		if h := <-got; h.Get("X-Worker") != "" || h.Get("Cookie") != "" {
			t.Errorf("turn %d has %v", i, h)
		}
	}
	if len(c.echo.sessions) != 0 || len(c.Echoed()) != 0 {
		t.Errorf("%d sessions are kept", len(c.echo.sessions))
	}
}

// Names that cannot be sent, or have another purpose, are errors.
func TestRoutingIsChecked(t *testing.T) {
	t.Parallel()
	for text, edit := range map[string]func(*Config){
		"is not a name":            func(cfg *Config) { cfg.SessionHeader = "a b" },
		"another purpose":          func(cfg *Config) { cfg.SessionHeader = "Cookie" },
		"about the connection":     func(cfg *Config) { cfg.SessionHeader = "Connection" },
		"echoed twice":             func(cfg *Config) { cfg.Echo = []Echo{{Name: "a"}, {Name: "A"}} },
		"have this header":         func(cfg *Config) { cfg.Echo = []Echo{{Name: "x-session-id"}} },
		"have this header already": func(cfg *Config) { cfg.Headers, cfg.Echo = []Header{{"A", "1"}}, []Echo{{Name: "a"}} },
		"has another purpose":      func(cfg *Config) { cfg.Echo = []Echo{{Name: "Authorization"}} },
		`echo of "a;b"`:            func(cfg *Config) { cfg.Echo = []Echo{{Name: "a;b", Cookie: true}} },
		"more than 16":             func(cfg *Config) { cfg.Echo = make([]Echo, 17) },
		"the mix has \"a\"":        func(cfg *Config) { cfg.Models = []Share{{"a", 1}, {"a", 1}} },
		"name no model":            func(cfg *Config) { cfg.Endpoint, cfg.Models = Generate, []Share{{"a", 1}, {"b", 1}} },
		"not above 0: 0":           func(cfg *Config) { cfg.Models = []Share{{"a", 1}, {"b", 0}} },
	} {
		cfg := Config{URL: nobody}
		edit(&cfg)
		if c, err := New(cfg); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
			if c != nil {
				c.Close()
			}
		}
	}
	c := client(t, nobody, func(cfg *Config) {
		cfg.SessionHeader, cfg.Echo = NoSessionHeader, []Echo{{Name: "X-Session-ID"}, {Name: "a", Cookie: true}, {Name: "A", Cookie: true}}
	})
	if n := len(c.Echoed()); n != 3 {
		t.Errorf("%d echoes", n)
	}
}
