package server_test

import (
	"errors"
	"strings"
	"testing"

	"moontide/replay/sim/engine"
)

// With an encoder, prompts have its tokens, and equal tokens are cached.
func TestEncode(t *testing.T) {
	cfg := over(engine.Config{BlockSize: 1, MaxModelLen: 100})
	cfg.Encode = func(dst []uint32, text string) ([]uint32, error) {
		if strings.Contains(text, "endless") {
			return dst, errors.New("too slow a pattern")
		}
		for _, b := range []byte(text) {
			dst = append(dst, uint32(b))
		}
		return dst, nil
	}
	s := start(t, cfg)
	s.ask(chatPath, `{"messages":[{"role":"user","content":"ab"},{"role":"user","content":[{"type":"text","text":" cd"}]}]}`)
	if u := s.ask(completionPath, `{"prompt":"ab cx"}`).Usage; u.Prompt != 5 || u.Details.Cached != 4 {
		t.Errorf("%+v", u)
	}
	if status, body := s.do("POST", completionPath, `{"prompt":"endless"}`); status != 400 || !strings.Contains(body, "too slow a pattern") {
		t.Errorf("status %d: %s", status, body)
	}
}
