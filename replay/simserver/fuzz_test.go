package simserver

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/valyala/fasthttp"
)

// FuzzBody gives a body to both APIs. Whatever it is, it gets an answer or an
// error object, and only a valid one within the limits gets an answer.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"prompt":"hi"}`, `{"prompt":[1,2]}`, `{"prompt":["a"],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[[1]],"max_tokens":3,"min_tokens":2}`, `{"prompt":[`, `{"prompt":[]}`, `{"prompt":[[}`, `null`, ``,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a\u0000\ud800"}]}],"max_completion_tokens":1}`,
		`{"messages":[{"role":"assistant","content":"a"}],"n":1,"tools":[],"ignore_eos":true}`, "{\"prompt\":\"\xff\"}",
	} {
		f.Add([]byte(body))
	}
	cfg := Config{MaxModelLen: 64}.withDefaults()
	s := New(cfg)
	f.Fuzz(func(t *testing.T, body []byte) {
		for path, api := range map[string]*api{"/v1/chat/completions": &chatAPI, "/v1/completions": &completionAPI} {
			r, refused := cfg.parse(body, api)
			if refused == nil {
				isl, osl := r.prompt.Len(), r.sampling.MaxTokens
				if !json.Valid(body) || isl < 1 || osl < 1 || isl+osl > cfg.MaxModelLen || r.sampling.MinTokens > osl {
					t.Errorf("accepted: %d tokens, %+v", isl, r.sampling)
				}
			}
			var ctx fasthttp.RequestCtx
			ctx.Request.SetRequestURI(path)
			ctx.Request.Header.SetMethod(fasthttp.MethodPost)
			ctx.Request.SetBody(body)
			s.handle(&ctx)
			if status := ctx.Response.StatusCode(); (status == fasthttp.StatusOK) != (refused == nil) {
				t.Errorf("status %d, but the parser says %v", status, refused)
			}
			if stream := ctx.Response.BodyStream(); stream != nil {
				if _, err := io.Copy(io.Discard, stream); err != nil {
					t.Error(err)
				}
			} else if answer := ctx.Response.Body(); !json.Valid(answer) {
				t.Errorf("the answer is not JSON: %q", answer)
			}
		}
		if running := s.stats().Running; running != 0 {
			t.Fatalf("%d requests have not been released", running)
		}
	})
}
