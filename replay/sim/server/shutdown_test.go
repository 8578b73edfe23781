package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"moontide/replay/openai/http1/http1test"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/server"
)

// soon is a context for a Shutdown that has nothing to wait for: shorter than the
// server's own timeouts, long enough for any machine.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestShutdownEndsWhatIsInFlight(t *testing.T) {
	s := start(t, over(engine.Config{Costs: engine.Costs{Sequence: engine.Hour}}))
	stream := s.open("POST", completionPath, `{"prompt":"hi","stream":true,"max_tokens":9,"ignore_eos":true}`)
	firstEvents(t, stream.Body, 1)

	whole := make(chan int, 1)
	go func() {
		status, _ := s.do("POST", completionPath, `{"prompt":"hi","max_tokens":9,"ignore_eos":true}`)
		whole <- status
	}()
	for s.metric(`vllm:num_requests_waiting{engine="0",model_name="sim"}`) != "1" { // for the hour of the first to end
		time.Sleep(time.Millisecond)
	}

	if err := s.Shutdown(soon(t)); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(stream.Body); err == nil {
		t.Error("a stream that was cut ends as if it were complete")
	}
	if status := <-whole; status != 503 {
		t.Errorf("an answer that was waited for: status %d, want 503", status)
	}
	if err := s.Shutdown(soon(t)); err != nil {
		t.Errorf("the second Shutdown: %v", err)
	}
}

func TestShutdownDoesNotWaitForSilentClients(t *testing.T) {
	s := start(t, server.Config{})
	conn, err := s.dialTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := s.Shutdown(soon(t)); err != nil {
		t.Errorf("with a connection that says nothing: %v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

func TestShutdownClosesConnectionsWhenItsContextEnds(t *testing.T) {
	s := start(t, server.Config{})
	conn, err := s.dialTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A body that never comes. The server says when it begins to wait for it.
	if _, err := io.WriteString(conn, "POST /v1/completions HTTP/1.1\r\nHost: sim\r\n"+
		"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	const waits = "HTTP/1.1 100 Continue\r\n\r\n"
	if b, err := io.ReadAll(io.LimitReader(conn, int64(len(waits)))); err != nil || string(b) != waits {
		t.Fatalf("%q, %v", b, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v, want %v", err, context.Canceled)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection is not closed: %v", err)
	}
}

func TestServeAfterShutdown(t *testing.T) {
	s := newServer(t, server.Config{})
	if err := s.Shutdown(soon(t)); err != nil {
		t.Fatal(err)
	}
	ln := http1test.NewPipes()
	if err := s.Serve(ln); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := ln.Accept(); err == nil {
		t.Error("Serve left its listener open")
	}
}

type brokenListener struct{ net.Listener }

func (brokenListener) Accept() (net.Conn, error) { return nil, errors.New("no more sockets") }
func (brokenListener) Close() error              { return nil }

func TestServeReportsItsListener(t *testing.T) {
	err := newServer(t, server.Config{}).Serve(brokenListener{})
	if err == nil || err.Error() != "serving: no more sockets" {
		t.Errorf("Serve: %v", err)
	}
}

// Shutdown ends long faults.
func TestShutdownDoesNotWaitForFaults(t *testing.T) {
	s := startTCP(t, server.Config{})
	whole := strings.Replace(hello, "true", "false", 1)
	var conns []rawConn
	for _, request := range []string{
		post(completionPath, whole, "X-Moontide-Fault: delay:1:1h"), post(completionPath, hello, "X-Moontide-Fault: delay:1:1h"),
		post(completionPath, whole, "X-Moontide-Fault: stall"), post(completionPath, hello, "X-Moontide-Fault: stall"),
	} {
		conns = append(conns, s.dial(request))
	}
	conns[3].header()
	if err := s.Shutdown(soon(t)); err != nil {
		t.Error(err)
	}
	for i, c := range conns {
		if text, _ := c.rest(); strings.Contains(text, "[DONE]") || strings.Contains(text, "200 OK") {
			t.Errorf("request %d: %q", i, text)
		}
	}
}
