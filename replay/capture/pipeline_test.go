package capture

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// smallBuffers is a listener whose connections hold little of what a peer does not read.
type smallBuffers struct{ *net.TCPListener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return c, c.SetWriteBuffer(4 << 10)
}

// A client that sends requests without end and reads no answer is disconnected, whatever
// it does not take: answers, errors of the proxy, or interim responses.
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
