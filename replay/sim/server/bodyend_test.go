package server

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"moontide/replay/sim/engine"
)

// The end of the body is written once, together with the last token.
func TestBodyEndsWithItsLastToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, engine.Config{})
		stream := openStream(t, s, &completionAPI, 3)
		p := make([]byte, 1<<20)
		n, err := stream.Read(p)
		if err != nil || tokenEvents(p[:n]) != 3 || !bytes.HasSuffix(p[:n], []byte("[DONE]\n\n\r\n"+bodyEnd)) {
			t.Errorf("%v: %q", err, p[:n])
		}
		if err := <-stream.ended; err != nil {
			t.Error(err)
		}
		// What the HTTP server writes after that, and in how many pieces.
		go func() {
			c := stream.activeRequest.conn
			c.Write([]byte("0\r\n"))
			c.Write([]byte("next"))
			c.Write([]byte("\r\n"))
			c.Close()
		}()
		if rest, _ := io.ReadAll(stream); string(rest) != "next\r\n" {
			t.Errorf("then comes %q", rest)
		}
	})
}

// Each of several answers on a connection has one end.
func TestAnswersOfOneConnection(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	defer func() { s.Shutdown(t.Context()); <-ended }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for i := range 3 {
		const body = `{"prompt":"a b","max_tokens":5,"stream":true}`
		r, _ := http.NewRequest(http.MethodPost, "http://x/v1/completions", strings.NewReader(body))
		if err := r.Write(c); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(in, r)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK || tokenEvents(text) != 5 {
			t.Errorf("answer %d: %v, %q", i, err, text)
		}
		if in.Buffered() > 0 {
			t.Errorf("behind answer %d there are %d bytes", i, in.Buffered())
		}
	}
}
