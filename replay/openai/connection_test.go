package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"moontide/replay"
)

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	busy := answer("429 Too Many Requests", "text/plain", "slow down")
	whole := streamed + inChunk(complete) + lastChunk
	for name, tc := range map[string]struct {
		first       string // answer
		connections int    // for two requests
	}{
		"read to its end":      {whole, 1},
		"a trailer":            {streamed + inChunk(complete) + "0\r\nA: b\r\n\r\n", 1},
		"content length":       {answer("200 OK", "text/event-stream", complete), 1},
		"an error, read":       {busy, 1},
		"cut":                  {streamed + inChunk(tide), 2},
		"connection: close":    {"HTTP/1.1 200 OK\r\nConnection: close\r\n" + whole[len("HTTP/1.1 200 OK\r\n"):], 2},
		"an error in a stream": {streamed + inChunk(`data: {"error":"no"}`+"\n\n") + lastChunk, 2},
		"more than asked for":  {whole + "HTTP/1.1 200 OK\r\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := func(p *peer) {
				p.request()
				p.say(tc.first)
				if name != "cut" {
					wellBehaved(p)
				}
			}
			s := serve(t, answers, wellBehaved)
			c := client(t, s.url)
			send(t, c)
			wantOK(t, send(t, c), 2)
			if got := s.connections(); got != tc.connections {
				t.Errorf("%d connections, want %d", got, tc.connections)
			}
		})
	}
}

// The server closes an idle connection when it likes. No request may meet it.
func TestClosedIdleConnectionIsNotUsed(t *testing.T) {
	t.Parallel()
	hangUp, closed := make(chan bool), make(chan bool)
	s := serve(t, func(p *peer) {
		p.request()
		p.say(streamed + inChunk(complete) + lastChunk)
		<-hangUp
		p.Close()
		close(closed)
	}, wellBehaved)
	c := client(t, s.url)
	wantOK(t, send(t, c), 2)
	if idle := c.host.IdleConnsCount(); idle != 1 {
		t.Fatalf("%d idle connections", idle)
	}
	close(hangUp)
	<-closed
	wantOK(t, send(t, c), 2)
	if got := s.connections(); got != 2 {
		t.Errorf("%d connections, want 2", got)
	}
}

func TestNoConnectionIsLeftBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	c := client(t, serve(t,
		says(streamed+inChunk(tide)),
		once((*peer).reset),
		once(func(p *peer) { cancel(); p.hold() }),
		wellBehaved,
	).url)
	send(t, c)
	send(t, c)
	wantClass(t, prepare(t, c, row).Send(ctx), replay.Canceled, "")
	if n := c.host.ConnsCount(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
	wantClass(t, prepare(t, c, row).Send(ctx), replay.Canceled, "") // before it began
	wantOK(t, send(t, c), 2)
	c.Close()
	if n := c.host.ConnsCount(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	reached := func(at chan<- bool, first string) func(*peer) {
		return once(func(p *peer) { p.say(first); close(at); p.hold() })
	}
	for name, script := range map[string]func(chan<- bool) func(*peer){
		"waiting":   func(at chan<- bool) func(*peer) { return reached(at, "") },
		"streaming": func(at chan<- bool) func(*peer) { return reached(at, streamed+inChunk(tide)) },
		"shaking hands": func(at chan<- bool) func(*peer) {
			return func(p *peer) { p.in.ReadByte(); close(at); p.hold() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := make(chan bool)
			url := serve(t, script(at)).url
			if name == "shaking hands" {
				url = "https" + url[len("http"):]
			}
			c := client(t, url)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() { <-at; cancel() }()
			wantClass(t, prepare(t, c, row).Send(ctx), replay.Canceled, "ended by the user")
			if n := c.host.ConnsCount(); n != 0 {
				t.Errorf("%d connections are open", n)
			}
		})
	}
}

func TestCancelWhileDialing(t *testing.T) {
	t.Parallel()
	c := client(t, serve(t, wellBehaved).url)
	ctx, cancel := context.WithCancel(context.Background())
	c.dialer.ControlContext = func(dialing context.Context, _, _ string, _ syscall.RawConn) error {
		cancel()
		<-dialing.Done()
		return dialing.Err()
	}
	o := prepare(t, c, row).Send(ctx)
	wantClass(t, o, replay.Canceled, "ended by the user")
	if !o.Sent.IsZero() {
		t.Error("sent without a connection")
	}
	// One that was called off is nobody else's affair.
	c.dialer.ControlContext = nil
	wantOK(t, send(t, c), 2)
}

func TestDialingTakesFromTheTimeout(t *testing.T) {
	t.Parallel()
	c := client(t, serve(t, wellBehaved).url, soon)
	c.dialer.ControlContext = func(dialing context.Context, _, _ string, _ syscall.RawConn) error {
		<-dialing.Done()
		return dialing.Err()
	}
	wantClass(t, send(t, c), replay.Timeout, "no complete answer within 50ms")
}

// A request that is called off as it ends must not take the next one on its
// connection along.
func TestCancelDoesNotReachTheNext(t *testing.T) {
	t.Parallel()
	c := client(t, serve(t, wellBehaved).url)
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for range 100 {
				ctx, cancel := context.WithCancel(context.Background())
				var canceling sync.WaitGroup
				canceling.Go(cancel)
				made, _ := c.Prepare(row, 0)
				if o := made.Send(ctx); o.Class != replay.OK && o.Class != replay.Canceled {
					t.Errorf("called off: class %q (%s)", o.Class, o.Error)
				}
				canceling.Wait()
				made, _ = c.Prepare(row, 0)
				if o := made.Send(context.Background()); o.Class != replay.OK {
					t.Errorf("the next: class %q (%s)", o.Class, o.Error)
				}
			}
		})
	}
	users.Wait()
}

func secureServer(t *testing.T) (s *httptest.Server, hello *time.Time) {
	hello = new(time.Time)
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, complete)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		*hello = time.Now()
		return nil, nil
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, hello
}

func TestUntrustedServer(t *testing.T) {
	t.Parallel()
	s, _ := secureServer(t)
	o := send(t, client(t, s.URL))
	wantClass(t, o, replay.Connect, "certificate signed by unknown authority")
	if !o.Sent.IsZero() {
		t.Error("sent without a connection")
	}
}

// The handshake is no part of the request's latency, as the dial is none.
func TestSentAfterTheHandshake(t *testing.T) {
	t.Parallel()
	s, hello := secureServer(t)
	c := client(t, s.URL)
	trusted := x509.NewCertPool()
	trusted.AddCert(s.Certificate())
	c.host.TLSConfig = &tls.Config{RootCAs: trusted}
	o := send(t, c)
	wantOK(t, o, 2)
	if !o.Sent.After(*hello) {
		t.Errorf("sent %v before the server had shaken hands", hello.Sub(o.Sent))
	}
	wantOK(t, send(t, c), 2)
	if n := c.host.ConnsCount(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
