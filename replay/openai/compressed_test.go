package openai

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"moontide/replay"
)

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

func TestCompressedErrors(t *testing.T) {
	t.Parallel()
	brotli := func(status, kind string) string {
		return "HTTP/1.1 " + status + "\r\nContent-Type: " + kind + "\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\n\x1b\x02\x00\xff"
	}
	for name, tc := range map[string]struct {
		says  string
		class replay.Class
		want  string
	}{
		"error, gzip":   {gzipped("400 Bad Request", "application/json", `{"error":{"message":"no such model"}}`), replay.HTTPError, "HTTP status 400: no such model"},
		"error, br":     {brotli("502 Bad Gateway", "text/html"), replay.HTTPError, `HTTP status 502: a body encoded as "br"`},
		"stream, br":    {brotli("200 OK", "text/event-stream"), replay.Protocol, `content encoding is "br" although none was asked for: turn compression off in the server or gateway`},
		"not gzip":      {strings.Replace(answerOf("200 OK", "text/event-stream", complete), "\r\n", "\r\nContent-Encoding: gzip\r\n", 1), replay.Protocol, "malformed gzip encoding"},
		"error event":   {gzipped("200 OK", "text/event-stream", tide, `data: {"error":"no"}`+"\n\n", tide), replay.Server, "no"},
		"cut in a word": {gzipped("200 OK", "text/event-stream", tide, tide)[:150], replay.Truncated, "stream truncated before [DONE]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantClass(t, send(t, client(t, serve(t, says(tc.says)).url)), tc.class, tc.want)
		})
	}
}
