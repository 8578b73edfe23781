package capture

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay"
	"moontide/replay/openai/http1/http1test"
	"moontide/trace"
	"moontide/trace/log"
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
		pieces []string // one every ten seconds
		length int
		gap    gap
	}{
		"stops sending": {[]string{`{"pro`}, 14, incomplete},
		"sends slowly":  {strings.SplitAfter(strings.Repeat("a,", 100), ","), 200, incomplete},
		"stops taking":  {[]string{`{"prompt":"a"}`}, 14, ""},
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
				fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", test.length)
				var sending sync.WaitGroup
				sending.Go(func() {
					for _, piece := range test.pieces {
						io.WriteString(conn, piece)
						time.Sleep(10 * time.Second)
					}
				})
				if test.gap == "" {
					http.ReadResponse(bufio.NewReader(conn), nil) // the head, which no kernel holds here
				}
				<-gone
				if stalled := time.Since(began).Truncate(time.Second); stalled != time.Minute {
					t.Errorf("it is disconnected after %v, want 1m", stalled)
				}
				conn.Close()
				sending.Wait()
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

// Half a head is waited for 10 seconds, in a new connection and in one that had a request.
func TestHalfAHead(t *testing.T) {
	for _, first := range []string{"", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			_, clients := piped(t, func(http.ResponseWriter, *http.Request) {})
			conn, _ := clients.Dial()
			in := bufio.NewReader(conn)
			if first != "" {
				io.WriteString(conn, first)
				http.ReadResponse(in, nil)
			}
			began := time.Now()
			io.WriteString(conn, "POST /v1/completions HTTP/1.1\r\nHost:")
			io.Copy(io.Discard, in)
			if waited := time.Since(began); waited != 10*time.Second {
				t.Errorf("%v, want 10s", waited)
			}
			conn.Close()
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

// A request arrives when it comes, even if the proxy reads it later: here after the answer
// to another one of the same connection.
func TestArrivalBeforeRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux stamps what arrives")
	}
	sent := make(chan bool)
	server := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-sent
		io.WriteString(w, `{"choices":[{"text":"a"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	})
	c := capturing(t, server)

	// The kernel begins to stamp a moment after the proxy asks it to.
	const tries = 1000
	for range tries {
		postTwice(t, strings.TrimPrefix(c.url, "http://"), sent)
	}
	err, rows := c.stop(), c.rows.all
	if err != nil || len(rows) != 2*tries {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	slices.SortFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	late := 0
	for i := 0; i < len(rows); i += 2 {
		var first struct {
			Recorded log.Recorded `json:"recorded"`
		}
		if err := json.Unmarshal(rows[i].Extra, &first); err != nil {
			t.Fatal(err)
		}
		if rows[i+1].Timestamp.Value >= rows[i].Timestamp.Value+*first.Recorded.E2EL {
			late++
		}
	}
	if late == tries {
		t.Error("all second requests arrived after the answers to the first")
	}
}

// postTwice sends two requests at once, has them answered, and reads the answers.
func postTwice(t *testing.T, address string, sent chan<- bool) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, strings.Repeat("POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 14\r\n\r\n"+`{"prompt":"a"}`, 2))
	answers := bufio.NewReader(conn)
	for range 2 {
		sent <- true
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, answer.Body)
	}
}

// smallBuffers is a listener whose connections buffer little unread data.
type smallBuffers struct{ *net.TCPListener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return c, c.SetWriteBuffer(4 << 10)
}

// A client that sends requests without end is disconnected if it reads no answers, errors of
// the proxy, or interim responses.
func TestClientThatNeverReads(t *testing.T) {
	const post = "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 14\r\n\r\n" + `{"prompt":"a"}`
	for name, handler := range map[string]http.HandlerFunc{
		"answers": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat("a", 1000)) },
		"errors":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"interim responses": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.WriteHeader(http.StatusEarlyHints)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := listening(t)
			c := capturingOn(t, smallBuffers{l}, upstream(t, handler), func(cfg *Config) { cfg.Stall = 100 * time.Millisecond })

			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			conn.SetDeadline(time.Now().Add(30 * time.Second)) // or the test would not end
			for err == nil {
				_, err = io.WriteString(conn, post)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it is not disconnected")
				conn.Close()
			}
			if err := c.stop(); err != nil {
				t.Error(err)
			}
			if n := c.Counts(); n.InFlight != 0 || n.HeldBytes != 0 || n.Requests == 0 || n.Rows != n.Requests {
				t.Errorf("%+v", n)
			}
		})
	}
}
