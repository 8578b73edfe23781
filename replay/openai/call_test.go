package openai

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moontide/replay"
	"moontide/trace"
)

// readers are the ways in which a client reads, by whose stamps they have.
var readers = map[replay.Stamps]func(*Client) *Client{
	replay.KernelStamps: func(c *Client) *Client { return c },
	replay.ClientStamps: func(c *Client) *Client {
		if c.loop != nil {
			c.loop.Close()
			c.loop = nil
			for _, s := range c.servers {
				s.host.Loop = nil
			}
		}
		return c
	},
}

func TestStamps(t *testing.T) {
	t.Parallel()
	for stamps, edit := range readers {
		c := edit(client(t, serve(t, wellBehaved).url))
		if c.Stamps() == replay.ClientStamps {
			stamps = replay.ClientStamps // this system has no others
		}
		o := send(t, c)
		for range 1000 { // the kernel begins to stamp a moment after it was asked to
			if o.Stamps == stamps {
				break
			}
			o = send(t, c)
		}
		wantOK(t, o, 2)
		if o.Stamps != stamps || c.Stamps() != stamps {
			t.Errorf("stamps are of the %s and the client says %s, want %s", o.Stamps, c.Stamps(), stamps)
		}
		if read := c.ReadDelay().Count() > 0; read != (stamps == replay.KernelStamps) {
			t.Errorf("%s: delays of reads: %t", stamps, read)
		}
	}
}

func TestAnswersThatAreRight(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script func(*peer)
		chunks int
	}{
		"everything in one write": {says(streamed + inChunk(complete) + lastChunk), 2},
		"type in capitals":        {says("HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\nConnection: close\r\n\r\n" + complete), 2},
		"finish without [DONE]":   {says(streamed + inChunk(tide+finish) + lastChunk), 1},
		"[DONE] unterminated":     {says(streamed + inChunk(tide+"data: [DONE]") + lastChunk), 1},
		"[DONE], then cut":        {says(streamed + inChunk(tide+theEnd)), 1},
		"[DONE], kept open":       {once(func(p *peer) { p.say(streamed + inChunk(tide+theEnd)); p.hold() }), 1},
		"open to the end, held":   {once(func(p *peer) { p.say(untilEnd + tide + theEnd); p.hold() }), 1},
		"events behind [DONE]":    {says(streamed + inChunk(tide+theEnd+tide+"data: {{\n\n") + lastChunk), 1},
		"headers split":           {says(strings.SplitAfter(streamed, "t")...), 0},
		"trailer":                 {says(streamed + inChunk(complete) + "0\r\nX-Sum: 1\r\n\r\n"), 2},
		"chunk extension":         {says(streamed + fmt.Sprintf("%X;name=value\r\n%s\r\n", len(complete), complete) + lastChunk), 2},
		"10 MB in one event":      {says(streamed + inChunk(strings.Replace(tide, " tide", strings.Repeat("tide", 10<<18), 1)+theEnd) + lastChunk), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.chunks == 0 {
				script := tc.script
				tc.script, tc.chunks = func(p *peer) { script(p); p.say(inChunk(complete) + lastChunk) }, 2
			}
			for _, edit := range readers {
				wantOK(t, send(t, edit(client(t, serve(t, tc.script).url))), tc.chunks)
			}
		})
	}
}

// fault is a server that misbehaves, and the expected outcome.
type fault struct {
	script func(*peer)
	edit   func(*Config)
	class  replay.Class
	text   string
	status int
	chunks int
}

func faults() map[string]fault {
	long := "data: " + strings.Repeat("x", 16<<20)
	return map[string]fault{
		"cut in an event":        {says(streamed + inChunk(tide+tide[:20])), nil, replay.Truncated, "unexpected EOF", 200, 1},
		"cut in a chunk":         {says(streamed + inChunk(tide) + "40\r\n" + tide[:20]), nil, replay.Truncated, "", 200, 1},
		"cut in the trailer":     {says(streamed + inChunk(tide+finish) + "0\r\nX-Sum: 1\r\n"), nil, replay.Truncated, "", 200, 1},
		"until a silent end":     {says(untilEnd + tide), nil, replay.Truncated, "", 200, 1},
		"no body at all":         {says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n"), nil, replay.Truncated, "", 200, 0},
		"too long an event":      {says(streamed + inChunk(long) + lastChunk), nil, replay.Protocol, "longer than 16 MiB", 200, 0},
		"not chunked":            {says(streamed + "tide\r\n" + complete), nil, replay.Protocol, "malformed chunked", 200, 0},
		"endless chunk size":     {says(streamed + strings.Repeat("0", 20<<10)), nil, replay.Protocol, "malformed chunked", 200, 0},
		"endless trailer":        {says(streamed + inChunk(tide+finish) + "0\r\n" + strings.Repeat("A: b\r\n", 1000)), nil, replay.Protocol, "malformed chunked", 200, 1},
		"error in the stream":    {says(streamed + inChunk(tide+`data: {"error":{"message":"out of\nmemory","code":500}}`+"\n\n"+theEnd) + lastChunk), nil, replay.Server, "out of memory", 200, 1},
		"llama.cpp's error":      {says(streamed + inChunk(tide+`error: {"code":400,"message":"context size exceeded","type":"e"}`+"\n\n"+theEnd) + lastChunk), nil, replay.Server, "context size exceeded", 200, 1},
		"Dynamo's error":         {says(streamed + inChunk(tide+finish+"event: error\n: worker\n: is gone\n\n"+theEnd) + lastChunk), nil, replay.Server, "worker is gone", 200, 1},
		"Dynamo's error, cut":    {says(untilEnd + tide + finish + "event: error\n: worker is gone\ndata: [DONE]"), nil, replay.Server, "worker is gone", 200, 1},
		"aborted, in capitals":   {says(streamed + inChunk(tide+`data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"Insufficient_System_Resource"}]}`+"\n\n"+tokens+theEnd) + lastChunk), nil, replay.Server, `finish_reason is "Insufficient_System_Resource"`, 200, 1},
		"error as a string":      {says(streamed + inChunk(`data: {"error":"overloaded"}`+"\n\n") + lastChunk), nil, replay.Server, "overloaded", 200, 0},
		"compressed":             {says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: br\r\n\r\n"), nil, replay.Protocol, `content encoding is "br"`, 200, 0},
		"FastAPI's error":        {says(answerOf("422 Unprocessable", "application/json", `{"detail":[{"msg":"max_tokens is wrong"}]}`)), nil, replay.HTTPError, "max_tokens is wrong", 422, 0},
		"older vLLM's error":     {says(answerOf("400 Bad", "application/json", `{"object":"error","message":"too long"}`)), nil, replay.HTTPError, "HTTP status 400: too long", 400, 0},
		"error that never ends":  {once(func(p *peer) { p.say("HTTP/1.1 503 No\r\n\r\nbusy"); p.hold() }), nil, replay.HTTPError, "HTTP status 503", 503, 0},
		"half an event, held":    {once(func(p *peer) { p.say(streamed + inChunk(tide+tide[:20])); p.hold() }), soon, replay.Timeout, "50ms", -1, -1},
		"too many, come later":   {says("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"), nil, replay.HTTPError, "HTTP status 429", 429, 0},
		"answer after the time":  {once(func(p *peer) { p.hold(); wellBehaved(p) }), soon, replay.Timeout, "50ms", 0, 0},
		"slow in the trailer":    {once(func(p *peer) { p.say(streamed + inChunk(tide+finish) + "0\r\n"); p.hold() }), soon, replay.Timeout, "50ms", -1, -1},
		"reset at once":          {once((*peer).reset), nil, replay.Connect, "", 0, 0},
		"header too long":        {says("HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 16<<10)), nil, replay.Protocol, "not an HTTP response", 0, 0},
		"flood of interim heads": {once(func(p *peer) { p.flood("HTTP/1.1 102 Processing\r\n\r\n") }), nil, replay.Protocol, "more than 64 KiB of interim responses (1xx)", 0, 0},
	}
}

// After a fault the next request has a new connection and gets its own answer.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, tc := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for stamps, edit := range readers {
				s := serve(t, tc.script, wellBehaved)
				c := edit(client(t, s.url))
				faulty := prepare(t, c, row)
				faulty.Open(context.Background()) // however busy the machine is
				if tc.edit != nil {
					tc.edit(&c.cfg)
					faulty.timeout = c.cfg.Timeout
				}
				o := faulty.Send(context.Background())
				wantClass(t, o, tc.class, tc.text)
				if tc.status >= 0 && o.Status != tc.status {
					t.Errorf("%s: status %d, want %d", stamps, o.Status, tc.status)
				}
				got := len(o.Gaps)
				if !o.First.IsZero() {
					got++
				}
				if tc.chunks >= 0 && got != tc.chunks {
					t.Errorf("%s: %d chunks, want %d", stamps, got, tc.chunks)
				}
				if tc.class == replay.HTTPError || tc.class == replay.Empty {
					continue // these answers have ended as they should
				}
				if n := c.servers[0].host.IdleConns(); n != 0 {
					t.Errorf("%d connections are kept", n)
				}
				c.cfg.Timeout = time.Hour
				wantOK(t, send(t, c), 2)
				if n := s.connections(); n != 2 {
					t.Errorf("%d connections for two requests", n)
				}
			}
		})
	}
}

func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	o := send(t, client(t, nobody))
	wantClass(t, o, replay.Connect, "connection refused")
	if !o.Sent.IsZero() {
		t.Error("sent without a connection")
	}
}

// A connection on which a request was half sent is not reused.
func TestHalfSentIsNotReused(t *testing.T) {
	t.Parallel()
	checked := make(chan bool)
	s := serve(t, func(p *peer) {
		p.say(answerOf("413 Too Large", "text/plain", "at most 1 MB"))
		<-checked
	})
	c := client(t, s.url)
	large := trace.Request{InputLength: 4_000_000, OutputLength: 1}
	wantClass(t, prepare(t, c, large).Send(context.Background()), replay.HTTPError, "HTTP status 413: at most 1 MB")
	if n := c.servers[0].host.IdleConns(); n > 0 && c.loop != nil {
		t.Errorf("%d connections are kept", n)
	}
	close(checked)
}

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
		"no time to send":       {timeouts(time.Hour, 1, ms), holds(), "first-byte timeout: no token within 1ns"},
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
			c.resendWithin = time.Minute // the machine may be busy
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

// gzipped returns a response with a gzip body that is flushed after each text.
func gzipped(status, kind string, texts ...string) string {
	var body bytes.Buffer
	w := gzip.NewWriter(&body)
	for _, text := range texts {
		io.WriteString(w, text)
		w.Flush()
	}
	w.Close()
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", status, kind, body.Len(), body.String())
}

// Compressed answers are decoded although none were asked for. A note says so, and
// their tokens have the client's timestamps.
func TestCompressedAnswers(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 9)
	s := serve(t, listing(gzipped("200 OK", "application/json", `{"data":[{"id":"m"}]}`), func(p *peer, r *http.Request, body string) {
		asked <- r.Header.Get("Accept-Encoding")
		usage := strings.Replace(tokens, `"prompt_tokens":3`, fmt.Sprintf(`"prompt_tokens":%d`, countIn(body)), 1)
		p.say(gzipped("200 OK", "text/event-stream", tide, tide, finish+usage+theEnd))
	}))
	c := client(t, s.url, func(cfg *Config) { cfg.Model = "" })
	notes, err := c.Probe(context.Background())
	if err != nil || c.Model() != "m" || !slices.ContainsFunc(notes, func(note string) bool { return strings.HasPrefix(note, "answers are compressed") }) {
		t.Fatalf("model %q, notes %q, %v", c.Model(), notes, err)
	}
	o := send(t, c)
	wantOK(t, o, 2)
	if o.Stamps != replay.ClientStamps || o.Counts.Output.Value != 2 {
		t.Errorf("stamps of %v, %d tokens", o.Stamps, o.Counts.Output.Value)
	}
	if encoding := <-asked; encoding != "identity" {
		t.Errorf("asked for encoding %q", encoding)
	}
	if n := s.connections(); n != 2 { // the list of models has its own
		t.Errorf("%d connections", n)
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
