package openai

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"moontide/replay"
)

// http2Server is a server that speaks HTTP/2 only.
func http2Server(t *testing.T, secure bool, answer http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(answer)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.Protocols = new(http.Protocols)
	if secure {
		s.EnableHTTP2 = true
		s.Config.Protocols.SetHTTP2(true)
		s.StartTLS()
	} else {
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func insecure(cfg *Config)  { cfg.Insecure = true }
func overHTTP2(cfg *Config) { cfg.HTTP2 = true }

// streams answers like wellBehaved.
func streams(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodGet {
		io.WriteString(w, `{"data":[{"id":"m"}]}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, tide)
	w.(http.Flusher).Flush()
	_, events, _ := strings.Cut(recounted(complete, countIn(string(body))), tide)
	io.WriteString(w, events)
}

// A server that refuses HTTP/1.1 is used over HTTP/2, and so is any one for which it
// is asked. The tokens have the client's timestamps, and a note says so.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"does not choose HTTP/1.1": true, "refuses HTTP/1.1": true, "asked for": true, "h2c": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make(chan string, 9)
			s := http2Server(t, secure, func(w http.ResponseWriter, r *http.Request) {
				got <- r.Proto + " " + r.Host + r.RequestURI + " " + r.Header.Get("Authorization")
				streams(w, r)
			})
			if name == "refuses HTTP/1.1" { // as servers do that are not in Go
				refuse := func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
					strict := s.TLS.Clone()
					if strict.GetConfigForClient = nil; !slices.Contains(hello.SupportedProtos, "h2") {
						strict.NextProtos = []string{"h3"}
					}
					return strict, nil
				}
				s.TLS.GetConfigForClient = refuse
			}
			c := client(t, s.URL+"/llm?a=b", insecure, func(cfg *Config) {
				cfg.HTTP2, cfg.Model, cfg.APIKey, cfg.Headers = name == "asked for" || name == "h2c", "", "key-of-mine", []Header{{"Host", "models.example"}}
			})
			notes, err := c.Probe(context.Background())
			if err != nil || c.Model() != "m" {
				t.Fatalf("model %q, %v", c.Model(), err)
			}
			if !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, "go over HTTP/2: the client timestamps") }) {
				t.Errorf("notes %q", notes)
			}
			if <-got != "HTTP/2.0 models.example/llm/v1/models?a=b Bearer key-of-mine" {
				t.Error("the list of models was asked for in another way")
			}
			made := prepare(t, c, row)
			made.Open(context.Background())
			made.Start()
			o := made.Send(context.Background())
			wantOK(t, o, 2)
			if o.Stamps != replay.ClientStamps || o.Sent.IsZero() {
				t.Errorf("stamps of %v, sent %v", o.Stamps, o.Sent)
			}
			if said := <-got; said != "HTTP/2.0 models.example/llm/v1/completions?a=b Bearer key-of-mine" {
				t.Errorf("the request was %s", said)
			}
		})
	}
}

// Failures over HTTP/2 have the classes that they have over HTTP/1.1.
func TestHTTP2Failures(t *testing.T) {
	t.Parallel()
	event := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		edit   func(*Config)
		class  replay.Class
		want   string
	}{
		"status":   {func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", 400) }, insecure, replay.HTTPError, "HTTP status 400: no"},
		"redirect": {http.RedirectHandler("https://new/v1/completions", http.StatusPermanentRedirect).ServeHTTP, insecure, replay.HTTPError, "set the URL to https://new"},
		"cut":      {func(w http.ResponseWriter, r *http.Request) { event(w, tide); panic(http.ErrAbortHandler) }, insecure, replay.Truncated, "stream truncated before [DONE]"},
		"ends":     {func(w http.ResponseWriter, r *http.Request) { event(w, tide) }, insecure, replay.Truncated, "stream truncated before [DONE]: EOF"},
		"error event": {func(w http.ResponseWriter, r *http.Request) {
			event(w, `data: {"error":"no"}`+"\n\n")
			<-r.Context().Done()
		}, insecure, replay.Server, "no"},
		"silent": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, soon, replay.Timeout, "request timeout: no complete answer within 50ms"},
		"stalls": {func(w http.ResponseWriter, r *http.Request) { event(w, tide); <-r.Context().Done() },
			func(cfg *Config) { cfg.IdleTimeout = 20 * time.Millisecond }, replay.Timeout, "idle timeout: nothing arrived for 20ms"},
		"no certificate": {streams, func(cfg *Config) { cfg.Insecure = false }, replay.Connect, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := http2Server(t, true, tc.answer)
			wantClass(t, send(t, client(t, s.URL, insecure, overHTTP2, tc.edit)), tc.class, tc.want)
		})
	}
	wantClass(t, send(t, client(t, nobody, overHTTP2)), replay.Connect, "dial tcp 127.0.0.1:1: connect")
	ctx, cancel := context.WithCancel(context.Background())
	s := http2Server(t, true, func(w http.ResponseWriter, r *http.Request) { event(w, tide); cancel(); <-r.Context().Done() })
	wantClass(t, prepare(t, client(t, s.URL, insecure, overHTTP2), row).Send(ctx), replay.Canceled, "canceled by the user")
}

// A server that takes HTTP/1.1 gets it, on the connection that settled it.
func TestHTTP1IsPreferred(t *testing.T) {
	t.Parallel()
	protocols, connections := make(chan string, 9), 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { protocols <- r.Proto; streams(w, r) }))
	s.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { connections++; return nil, nil }}
	s.StartTLS()
	defer s.Close()
	c := client(t, s.URL, insecure)
	if _, err := c.Probe(context.Background()); err != nil {
		t.Fatal(err)
	}
	for len(protocols) > 0 {
		if got := <-protocols; got != "HTTP/1.1" {
			t.Errorf("a request over %s", got)
		}
	}
	if connections != 2 { // the list of models has its own
		t.Errorf("%d connections", connections)
	}
}
