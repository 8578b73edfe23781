package openai

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay"
)

// Nothing but a token starts an answer: until then the first-byte timeout counts, then
// the idle timeout, and the request's own time in any case.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	timeouts := func(request, first, idle time.Duration) func(*Config) {
		return func(cfg *Config) { cfg.Timeout, cfg.FirstByteTimeout, cfg.IdleTimeout = request, first, idle }
	}
	holds := func(texts ...string) func(*peer) { return once(func(p *peer) { p.say(texts...); p.hold() }) }
	const ms, noToken, silent = time.Millisecond, "first-byte timeout: no token within 60ms", "idle timeout: nothing arrived for 40ms"
	first, idle := timeouts(time.Hour, 60*ms, ms), timeouts(time.Hour, time.Hour, 40*ms)
	for name, tc := range map[string]struct {
		edit   func(*Config)
		script func(*peer)
		want   string
	}{
		"stalled in the stream": {idle, holds(streamed+inChunk(tide), inChunk(tide)), silent},
		"stalled in a chunk":    {idle, holds(streamed + inChunk(tide) + "40\r\n" + tide[:20]), silent},
		"the request's time":    {timeouts(40*ms, time.Hour, time.Hour), holds(), "request timeout: no complete answer within 40ms"},
		"no answer":             {first, holds(), noToken},
		"stalled in the header": {first, holds(streamed[:30]), noToken},
		"only a header":         {first, holds(streamed), noToken},
		"only a role":           {first, holds(streamed + inChunk(role)), noToken},
		"interim responses":     {first, holds("HTTP/1.1 102 Processing\r\n\r\n"), noToken},
		"keep-alives":           {first, once(func(p *peer) { p.say(streamed); p.flood(inChunk(": ping\n\n")) }), noToken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, edit := range readers {
				wantClass(t, send(t, edit(client(t, serve(t, tc.script).url, tc.edit))), replay.Timeout, tc.want)
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
