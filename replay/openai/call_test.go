package openai

import (
	"context"
	"fmt"
	"strings"
	"testing"
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
		"chunked":                 {wellBehaved, 2},
		"everything in one write": {says(streamed + inChunk(complete) + lastChunk), 2},
		"content length":          {says(answerOf("200 OK", "text/event-stream", complete)), 2},
		"until the end":           {says(untilEnd, complete), 2},
		"HTTP/1.0":                {says("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + complete), 2},
		"type in capitals":        {says("HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream\r\nConnection: close\r\n\r\n" + complete), 2},
		"finish without [DONE]":   {says(streamed + inChunk(tide+finish) + lastChunk), 1},
		"[DONE] unterminated":     {says(streamed + inChunk(tide+"data: [DONE]") + lastChunk), 1},
		"[DONE], then cut":        {says(streamed + inChunk(tide+theEnd)), 1},
		"[DONE], kept open":       {once(func(p *peer) { p.say(streamed + inChunk(tide+theEnd)); p.hold() }), 1},
		"open to the end, held":   {once(func(p *peer) { p.say(untilEnd + tide + theEnd); p.hold() }), 1},
		"events behind [DONE]":    {says(streamed + inChunk(tide+theEnd+tide+"data: {{\n\n") + lastChunk), 1},
		"100-continue first":      {says("HTTP/1.1 100 Continue\r\n\r\n", streamed+inChunk(complete)+lastChunk), 2},
		"headers split":           {says(strings.SplitAfter(streamed, "t")...), 0},
		"split everywhere":        {says(strings.Split(streamed+inChunk(complete)+lastChunk, "")...), 2},
		"trailer":                 {says(streamed + inChunk(complete) + "0\r\nX-Sum: 1\r\n\r\n"), 2},
		"chunk extension":         {says(streamed + fmt.Sprintf("%X;name=value\r\n%s\r\n", len(complete), complete) + lastChunk), 2},
		"10 MB in one event":      {says(streamed + inChunk(strings.Replace(tide, " tide", strings.Repeat("tide", 10<<18), 1)+theEnd) + lastChunk), 1},
		"keep-alives":             {says(streamed + inChunk(": ping\n\n"+tide+"data:\n\n"+theEnd) + lastChunk), 1},
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
		"cut in an event":         {says(streamed + inChunk(tide+tide[:20])), nil, replay.Truncated, "unexpected EOF", 200, 1},
		"cut in a chunk":          {says(streamed + inChunk(tide) + "40\r\n" + tide[:20]), nil, replay.Truncated, "", 200, 1},
		"cut between chunks":      {says(streamed + inChunk(tide)), nil, replay.Truncated, "", 200, 1},
		"cut behind the finish":   {says(streamed + inChunk(tide+finish)), nil, replay.Truncated, "", 200, 1},
		"cut in the trailer":      {says(streamed + inChunk(tide+finish) + "0\r\nX-Sum: 1\r\n"), nil, replay.Truncated, "", 200, 1},
		"ended without its end":   {says(streamed + inChunk(tide) + lastChunk), nil, replay.Truncated, "EOF", 200, 1},
		"reset":                   {once(func(p *peer) { p.say(streamed + inChunk(tide)); p.reset() }), nil, replay.Truncated, "", 200, -1},
		"shorter than announced":  {says(strings.TrimSuffix(answerOf("200 OK", "text/event-stream", tide+finish+theEnd), theEnd)), nil, replay.Truncated, "unexpected EOF", 200, -1},
		"until a silent end":      {says(untilEnd + tide), nil, replay.Truncated, "", 200, 1},
		"no body at all":          {says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n"), nil, replay.Truncated, "", 200, 0},
		"garbage":                 {says(streamed + inChunk(tide+"data: {half\n\n"+theEnd) + lastChunk), nil, replay.Protocol, "{half", 200, 1},
		"an event of another API": {says(streamed + inChunk(`data: "hello"`+"\n\n") + lastChunk), nil, replay.Protocol, "hello", 200, 0},
		"too long an event":       {says(streamed + inChunk(long) + lastChunk), nil, replay.Protocol, "longer than 16 MiB", 200, 0},
		"not chunked":             {says(streamed + "tide\r\n" + complete), nil, replay.Protocol, "malformed chunked", 200, 0},
		"endless chunk size":      {says(streamed + strings.Repeat("0", 20<<10)), nil, replay.Protocol, "malformed chunked", 200, 0},
		"endless trailer":         {says(streamed + inChunk(tide+finish) + "0\r\n" + strings.Repeat("A: b\r\n", 1000)), nil, replay.Protocol, "malformed chunked", 200, 1},
		"error in the stream":     {says(streamed + inChunk(tide+`data: {"error":{"message":"out of\nmemory","code":500}}`+"\n\n"+theEnd) + lastChunk), nil, replay.Server, "out of memory", 200, 1},
		"llama.cpp's error":       {says(streamed + inChunk(tide+`error: {"code":400,"message":"context size exceeded","type":"e"}`+"\n\n"+theEnd) + lastChunk), nil, replay.Server, "context size exceeded", 200, 1},
		"Dynamo's error":          {says(streamed + inChunk(tide+finish+"event: error\n: worker\n: is gone\n\n"+theEnd) + lastChunk), nil, replay.Server, "worker is gone", 200, 1},
		"Dynamo's error, cut":     {says(untilEnd + tide + finish + "event: error\n: worker is gone\ndata: [DONE]"), nil, replay.Server, "worker is gone", 200, 1},
		"an event named error":    {says(streamed + inChunk("event: error\ndata: {\"message\":\"no room\"}\n\n"+complete) + lastChunk), nil, replay.Server, "no room", 200, 0},
		"aborted":                 {says(streamed + inChunk(tide+`data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"abort"}]}`+"\n\n"+tokens+theEnd) + lastChunk), nil, replay.Server, `finish_reason is "abort"`, 200, 1},
		"aborted, in capitals":    {says(streamed + inChunk(tide+`data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"Insufficient_System_Resource"}]}`+"\n\n"+tokens+theEnd) + lastChunk), nil, replay.Server, `finish_reason is "Insufficient_System_Resource"`, 200, 1},
		"error as a string":       {says(streamed + inChunk(`data: {"error":"overloaded"}`+"\n\n") + lastChunk), nil, replay.Server, "overloaded", 200, 0},
		"not a stream":            {says(answerOf("200 OK", "application/json", `{"choices":[]}`)), nil, replay.Protocol, `content type is "application/json"`, 200, 0},
		"compressed":              {says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: br\r\n\r\n"), nil, replay.Protocol, `content encoding is "br"`, 200, 0},
		"OpenAI's error":          {says(answerOf("429 Too Many Requests", "application/json", `{"error":{"message":"slow down","type":"rate_limit"}}`)), nil, replay.HTTPError, "HTTP status 429: slow down", 429, 0},
		"FastAPI's error":         {says(answerOf("422 Unprocessable", "application/json", `{"detail":[{"msg":"max_tokens is wrong"}]}`)), nil, replay.HTTPError, "max_tokens is wrong", 422, 0},
		"older vLLM's error":      {says(answerOf("400 Bad", "application/json", `{"object":"error","message":"too long"}`)), nil, replay.HTTPError, "HTTP status 400: too long", 400, 0},
		"plain error":             {says(answerOf("500 Oh", "text/plain", "Internal\nServer\x1b[31m Error")), nil, replay.HTTPError, "HTTP status 500: Internal Server [31m Error", 500, 0},
		"error that never ends":   {once(func(p *peer) { p.say("HTTP/1.1 503 No\r\n\r\nbusy"); p.hold() }), nil, replay.HTTPError, "HTTP status 503", 503, 0},
		"no answer":               {once((*peer).hold), soon, replay.Timeout, "no complete answer within 50ms", 0, 0},
		"stalled in the header":   {once(func(p *peer) { p.say(streamed[:30]); p.hold() }), soon, replay.Timeout, "50ms", 0, 0},
		"half an event, held":     {once(func(p *peer) { p.say(streamed + inChunk(tide+tide[:20])); p.hold() }), soon, replay.Timeout, "50ms", -1, -1},
		"too many, come later":    {says("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"), nil, replay.HTTPError, "HTTP status 429", 429, 0},
		"a page":                  {says(answerOf("200 OK", "text/html", "<html>"+complete)), nil, replay.Protocol, `content type is "text/html"`, 200, 0},
		"stalled in the stream":   {once(func(p *peer) { p.say(streamed + inChunk(tide)); p.hold() }), soon, replay.Timeout, "50ms", -1, -1},
		"answer after the time":   {once(func(p *peer) { p.hold(); wellBehaved(p) }), soon, replay.Timeout, "50ms", 0, 0},
		"slow in the trailer":     {once(func(p *peer) { p.say(streamed + inChunk(tide+finish) + "0\r\n"); p.hold() }), soon, replay.Timeout, "50ms", -1, -1},
		"hung up on":              {says(), nil, replay.Connect, "closed before a response", 0, 0},
		"reset at once":           {once((*peer).reset), nil, replay.Connect, "", 0, 0},
		"hung up in the header":   {says(streamed[:30]), nil, replay.Connect, "closed before a response", 0, 0},
		"not HTTP":                {says("220 mail.example ESMTP\r\n"), nil, replay.Protocol, "not an HTTP response", 0, 0},
		"header too long":         {says("HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 16<<10)), nil, replay.Protocol, "not an HTTP response", 0, 0},
		"redirected":              {says("HTTP/1.1 308 Permanent Redirect\r\nLocation: https://u:pw@new.example:8443/v1/completions?key=abc#x\r\nContent-Length: 0\r\n\r\n"), nil, replay.HTTPError, "HTTP status 308: redirected to https://new.example:8443/v1/completions; redirects are not followed", 308, 0},
		"flood of interim heads":  {once(func(p *peer) { p.flood("HTTP/1.1 102 Processing\r\n\r\n") }), nil, replay.Protocol, "more than 64 KiB of interim responses (1xx)", 0, 0},
		"empty":                   {says(streamed + inChunk(role+finish+tokens+theEnd) + lastChunk), nil, replay.Empty, "no tokens", 200, 0},
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
				c.cfg.Timeout = 20 * time.Second
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
