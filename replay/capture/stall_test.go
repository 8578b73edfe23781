package capture

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1/http1test"
)

// piped serves a proxy with a limit for stalls, in front of a handler, in virtual time.
func piped(t *testing.T, handler http.HandlerFunc) (c *captured, clients *http1test.Pipes) {
	behind, clients := http1test.NewPipes(), http1test.NewPipes()
	s := &http.Server{Handler: handler}
	go s.Serve(behind)
	t.Cleanup(func() { s.Close() })
	c = capturingOn(t, clients, "http://h", func(cfg *Config) { cfg.Stall = time.Minute })
	c.server.DialContext = func(context.Context, string, string) (net.Conn, error) { return behind.Dial() }
	return c, clients
}

// A client that stops sending its body, or taking its answer, is disconnected after a
// time, and the server is free.
func TestStalledClients(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		gap  gap
	}{
		"stops sending": {`{"pro`, incomplete},
		"stops taking":  {`{"prompt":"a"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := make(chan error)
				c, clients := piped(t, func(w http.ResponseWriter, r *http.Request) {
					_, err := io.Copy(io.Discard, r.Body)
					if err == nil {
						w.Header().Set("Content-Type", "text/event-stream")
						w.(http.Flusher).Flush()
						time.Sleep(time.Second) // ReverseProxy flushes the head and then holds no lock
					}
					event := []byte("data: {\"choices\":[{\"text\":\"" + strings.Repeat("a", 32<<10) + "\"}]}\n\n")
					for err == nil {
						_, err = w.Write(event)
					}
					gone <- err
				})
				began := time.Now()
				conn, _ := clients.Dial()
				io.WriteString(conn, "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 14\r\n\r\n"+test.body)
				if test.gap == "" {
					http.ReadResponse(bufio.NewReader(conn), nil) // the head, which no kernel holds here
				}
				<-gone
				if stalled := time.Since(began); stalled != time.Minute {
					t.Errorf("it is disconnected after %v, want 1m", stalled)
				}
				conn.Close()
				if err := c.stop(); err != nil {
					t.Error(err)
				}
				if n := c.Counts(); n.Requests != 1 || n.Rows != 1 || n.HeldBytes != 0 || n.Ended[replay.Abandoned] != 1 || test.gap != "" && n.NoBlocks[string(test.gap)] != 1 {
					t.Errorf("%+v", n)
				}
			})
		})
	}
}

// An answer may take longer than a client may stall, and so may the pause between two
// requests of a connection.
func TestPausesAreNoStalls(t *testing.T) {
	synctest.Test(t, pauses)
}

func pauses(t *testing.T) {
	_, clients := piped(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for range 2 {
			time.Sleep(3 * time.Minute)
			io.WriteString(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n")
			w.(http.Flusher).Flush()
		}
	})
	connections := 0
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		connections++
		return clients.Dial()
	}}}
	for range 2 {
		answer, err := client.Post("http://h/v1/completions", "application/json", strings.NewReader(`{"prompt":"a"}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if strings.Count(string(got), "data") != 2 || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		time.Sleep(3 * time.Minute)
	}
	if connections != 1 {
		t.Errorf("%d connections", connections)
	}
	client.CloseIdleConnections()
}
