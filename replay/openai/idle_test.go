package openai

import (
	"testing"
	"time"

	"moontide/replay"
)

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	idle := func(cfg *Config) { cfg.Timeout, cfg.IdleTimeout = time.Hour, 40*time.Millisecond }
	for name, script := range map[string]func(*peer){
		"no answer":             once((*peer).hold),
		"stalled in the header": once(func(p *peer) { p.say(streamed[:30]); p.hold() }),
		"stalled in the stream": once(func(p *peer) { p.say(streamed+inChunk(tide), inChunk(tide)); p.hold() }),
		"stalled in a chunk":    once(func(p *peer) { p.say(streamed + "40\r\n" + tide[:20]); p.hold() }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, edit := range readers {
				wantClass(t, send(t, edit(client(t, serve(t, script).url, idle))), replay.Timeout, "idle: nothing arrived for 40ms")
			}
		})
	}
	// The request's own time comes first.
	short := func(cfg *Config) { cfg.Timeout, cfg.IdleTimeout = 40*time.Millisecond, time.Hour }
	for _, edit := range readers {
		wantClass(t, send(t, edit(client(t, serve(t, once((*peer).hold)).url, short))), replay.Timeout, "no complete answer within 40ms")
	}
}
