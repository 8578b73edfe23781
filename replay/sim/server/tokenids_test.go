package server_test

import (
	"regexp"
	"strings"
	"testing"

	"moontide/replay/sim/server"
)

// With return_token_ids the choices of a stream, and of a whole answer, have the ids
// of all generated tokens.
func TestReturnTokenIDs(t *testing.T) {
	t.Parallel()
	s := start(t, server.Config{})
	for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
		body := `{"model":"sim","prompt":"a b","messages":[{"role":"user","content":"a b"}],"max_tokens":9,"return_token_ids":true`
		_, stream := s.do("POST", path, body+`,"stream":true}`)
		var ids []string
		for _, m := range regexp.MustCompile(`"token_ids":\[([0-9,]+)\]`).FindAllStringSubmatch(stream, -1) {
			ids = append(ids, m[1])
		}
		all := strings.Join(ids, ",")
		if _, whole := s.do("POST", path, body+"}"); strings.Count(all, ",") != 8 || !strings.Contains(whole, `"token_ids":[`+all+`]`) {
			t.Errorf("%s: ids %s, whole answer %s", path, all, whole)
		}
	}
}
