package server

import (
	"io"
	"net"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestConnectionsAfterShutdown(t *testing.T) {
	for _, tt := range []struct {
		state fasthttp.ConnState
		open  bool
	}{
		{fasthttp.StateNew, false}, {fasthttp.StateActive, true}, {fasthttp.StateIdle, false},
	} {
		c := connections{active: make(map[net.Conn]bool)}
		if err := c.shutDown(func() {}); err != nil {
			t.Fatal(err)
		}
		server, client := net.Pipe()
		c.track(server, tt.state)
		client.Close()
		// Reading one's own closed end is another error than reading after the
		// other end was closed.
		if _, err := server.Read(make([]byte, 1)); (err == io.EOF) != tt.open {
			t.Errorf("a connection that comes to be %v: Read says %v", tt.state, err)
		}
		server.Close()
		c.track(server, fasthttp.StateClosed)
		if len(c.active) != 0 {
			t.Error("a closed connection is kept")
		}
	}
}
