package openai

import (
	"strings"
	"testing"

	"moontide/replay"
)

// A request that meets the end of a used connection is sent once more, on a new one.
func TestResend(t *testing.T) {
	t.Parallel()
	const whole = "OK on a new connection"
	// after the first request, which every server answers in full
	for name, tc := range map[string]struct {
		then func(*peer) // with the second request
		want string
		open int // connections in all
	}{
		"closed":             {func(p *peer) {}, whole, 2},
		"reset":              {(*peer).reset, whole, 2},
		"part of a head":     {func(p *peer) { p.say("HTTP/1.1 200") }, "closed before a response", 1},
		"interim head":       {func(p *peer) { p.say("HTTP/1.1 102 Wait\r\n\r\n") }, "closed before a response", 1},
		"no HTTP":            {func(p *peer) { p.say("220 mail\r\n\r\n") }, "not an HTTP response", 1},
		"a truncated answer": {func(p *peer) { p.say(streamed + inChunk(tide)) }, "truncated", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := func(p *peer) {
				p.request()
				p.say(streamed + inChunk(complete) + lastChunk)
				if r, _ := p.request(); r != nil {
					tc.then(p)
				}
			}
			s := serve(t, first, wellBehaved)
			c := client(t, s.url)
			wantOK(t, send(t, c), 2)
			o := send(t, c)
			got := o.Error
			if o.Class == replay.OK {
				got = whole
			}
			if !strings.Contains(got, tc.want) || s.connections() != tc.open {
				t.Errorf("%q with %d connections, want %q with %d", got, s.connections(), tc.want, tc.open)
			}
			if o.Class == replay.OK && o.ConnectTime <= 0 {
				t.Error("connecting again took no time")
			}
			if n := c.kept.Load(); n != 0 {
				t.Errorf("%d bytes are still kept", n)
			}
		})
	}
}

// Requests that would take too much memory are not kept.
func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	c := client(t, nobody)
	if !c.keep(maxKept) || c.keep(1) || c.kept.Load() != maxKept {
		t.Errorf("%d bytes are kept", c.kept.Load())
	}
}
