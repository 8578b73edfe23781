package openai

import (
	"bufio"
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay"
)

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	idle := func(cfg *Config) { cfg.Timeout, cfg.IdleTimeout = time.Hour, 40*time.Millisecond }
	for name, script := range map[string]func(*peer){
		"stalled in the stream": once(func(p *peer) { p.say(streamed+inChunk(tide), inChunk(tide)); p.hold() }),
		"stalled in a chunk":    once(func(p *peer) { p.say(streamed + inChunk(tide) + "40\r\n" + tide[:20]); p.hold() }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, edit := range readers {
				wantClass(t, send(t, edit(client(t, serve(t, script).url, idle))), replay.Timeout, "idle timeout: nothing arrived for 40ms")
			}
		})
	}
	// The request's own time comes first.
	short := func(cfg *Config) { cfg.Timeout, cfg.IdleTimeout = 40*time.Millisecond, time.Hour }
	for _, edit := range readers {
		wantClass(t, send(t, edit(client(t, serve(t, once((*peer).hold)).url, short))), replay.Timeout, "request timeout: no complete answer within 40ms")
	}
}

// Nothing but a token starts an answer: until then the first-byte timeout counts,
// not the idle timeout.
func TestFirstByteTimeout(t *testing.T) {
	t.Parallel()
	first := func(cfg *Config) {
		cfg.Timeout, cfg.FirstByteTimeout, cfg.IdleTimeout = time.Hour, 60*time.Millisecond, time.Millisecond
	}
	for name, script := range map[string]func(*peer){
		"no answer":             once((*peer).hold),
		"stalled in the header": once(func(p *peer) { p.say(streamed[:30]); p.hold() }),
		"only a header":         once(func(p *peer) { p.say(streamed); p.hold() }),
		"only a role":           once(func(p *peer) { p.say(streamed + inChunk(role)); p.hold() }),
		"keep-alives": once(func(p *peer) {
			for p.say(streamed); ; {
				if _, err := io.WriteString(p, inChunk(": ping\n\n")); err != nil {
					return
				}
			}
		}),
		"interim responses, not too many": once(func(p *peer) { p.say("HTTP/1.1 102 Processing\r\n\r\n"); p.hold() }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, edit := range readers {
				wantClass(t, send(t, edit(client(t, serve(t, script).url, first))), replay.Timeout, "first-byte timeout: no token within 60ms")
			}
		})
	}
}

// A first byte in time lifts the first-byte timeout, and 0 means the defaults.
func TestDefaultTimeouts(t *testing.T) {
	t.Parallel()
	cfg := Config{}.WithDefaults()
	if cfg.Timeout != time.Hour || cfg.FirstByteTimeout != 30*time.Minute || cfg.IdleTimeout != 2*time.Minute {
		t.Errorf("%v, %v, %v", cfg.Timeout, cfg.FirstByteTimeout, cfg.IdleTimeout)
	}
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			pauses []time.Duration // before the token chunks, and before the end
			want   string
		}{
			"slow but good":    {[]time.Duration{29 * time.Minute, 119 * time.Second, 119 * time.Second}, ""},
			"no first token":   {[]time.Duration{31 * time.Minute}, "first-byte timeout: no token within 30m0s"},
			"a stall":          {[]time.Duration{time.Second, 136 * time.Second}, "idle timeout: nothing arrived for 2m0s"},
			"too long a whole": {slices.Repeat([]time.Duration{100 * time.Second}, 40), "request timeout: no complete answer within 1h0m0s"},
		} {
			c := readers[replay.ClientStamps](client(t, "http://localhost", func(cfg *Config) { cfg.Timeout = 0 }))
			c.servers[0].host.DialContext = func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe()
				go func() {
					p := &peer{there, t, bufio.NewReader(there)}
					p.request()
					p.say(streamed)
					for _, pause := range tc.pauses[:len(tc.pauses)-1] {
						time.Sleep(pause)
						p.say(inChunk(tide))
					}
					time.Sleep(tc.pauses[len(tc.pauses)-1])
					p.say(inChunk(theEnd) + lastChunk)
					p.Close()
				}()
				return here, nil
			}
			o := send(t, c)
			want := replay.Timeout
			if tc.want == "" {
				want = replay.OK
			}
			if o.Class != want || !strings.Contains(o.Error, tc.want) {
				t.Errorf("%s: class %q (%s), want %q (%s)", name, o.Class, o.Error, want, tc.want)
			}
			time.Sleep(2 * time.Hour) // for the server to end
		}
	})
}
