package server

import (
	"bytes"
	"io"
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
