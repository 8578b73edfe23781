package openai

import (
	"context"
	"strings"
	"sync"
	"testing"

	"moontide/replay"
	"moontide/trace"
)

// The incomplete events of all streams have one budget. Streams that exceed their
// share of it fail; good streams beside them do not.
func TestEndlessLinesTogether(t *testing.T) {
	t.Parallel()
	const hostile = 12 // each may have 16 MiB, all 64 MiB
	bad := serve(t, once(func(p *peer) { p.say(streamed + "7fffffffffffffff\r\ndata: "); p.flood("tide") }))
	good := serve(t, wellBehaved)
	for _, edit := range readers {
		c := edit(client(t, "", func(cfg *Config) { cfg.URL, cfg.URLs = "", []string{good.url, bad.url} }))
		outcomes := make([]replay.Outcome, 2*hostile)
		var sending sync.WaitGroup
		for i := range outcomes {
			made, err := c.Prepare(row, i)
			if err != nil {
				t.Fatal(err)
			}
			sending.Go(func() { outcomes[i] = made.Send(context.Background()) })
		}
		sending.Wait()
		over := 0
		for i, o := range outcomes {
			if i%2 == 0 {
				wantOK(t, o, 2)
				continue
			}
			wantClass(t, o, replay.Protocol, "")
			if strings.Contains(o.Error, "more than its share") {
				over++
			}
		}
		if over == 0 {
			t.Error("no stream exceeds the budget of all")
		}
	}
}

// Some servers forget [DONE]. A finish reason and usage end an answer after a short
// wait, if they are not followed by more.
func TestMissingDone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body    string
		missing bool
		chunks  int
	}{
		"a finish reason, then usage": {tide + tide + finish + tokens, true, 2},
		"usage with every chunk": {strings.ReplaceAll(tide, "}]}", `}],"usage":{"completion_tokens":1}}`) +
			`data: {"choices":[{"text":"a","finish_reason":"stop"}],"usage":{"completion_tokens":2}}` + "\n\n", true, 2},
		"followed by keep-alives": {complete[:len(complete)-len(theEnd)] + ": ping\n\n", true, 2},
		"[DONE] is not forgotten": {complete, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, edit := range readers {
				o := send(t, edit(client(t, serve(t, once(func(p *peer) { p.say(streamed + inChunk(tc.body)); p.hold() })).url)))
				wantOK(t, o, tc.chunks)
				if o.MissingDone != tc.missing || o.Counts.Output != trace.Some(2) {
					t.Errorf("[DONE] is missing: %t, counts %v", o.MissingDone, o.Counts)
				}
			}
		})
	}
	// A connection that is closed instead counts, too.
	o := send(t, client(t, serve(t, says(untilEnd+tide+finish)).url))
	if wantOK(t, o, 1); !o.MissingDone {
		t.Error("[DONE] is not missing at the end of the connection")
	}
}

// Credentials, queries and known secrets of a redirect's target are not shown.
func TestSecretsOfARedirect(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"https://u:pw@h:1/v1?key=x#y": "https://h:1/v1",
		"//u:pw@h/v1":                 "//h/v1",
		"/v2/completions?token=x":     "/v2/completions",
		"https://h/a@b":               "https://h/a@b",
		"https://a@b@h":               "https://h",
	} {
		if got := withoutSecrets(location); got != want {
			t.Errorf("%s: %s, want %s", location, got, want)
		}
	}
	secret := func(cfg *Config) { cfg.APIKey = "sk-1234567" }
	o := send(t, client(t, serve(t, says("HTTP/1.1 307 T\r\nLocation: https://h/sk-1234567/\x01v1\r\nContent-Length: 0\r\n\r\n")).url, secret))
	if strings.Contains(o.Error, "sk-1234567") || !strings.Contains(o.Error, "https://h/***/") {
		t.Error(o.Error)
	}
}
