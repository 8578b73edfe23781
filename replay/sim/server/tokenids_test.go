package server_test

import (
	"encoding/json"
	"fmt"
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
		var ids string
		for line := range strings.SplitSeq(stream, "\n") {
			var event struct {
				Choices []struct {
					TokenIDs []uint32 `json:"token_ids"`
				}
			}
			json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &event) // or no event
			for _, choice := range event.Choices {
				for _, id := range choice.TokenIDs {
					ids += fmt.Sprint(",", id)
				}
			}
		}
		ids = "[" + strings.TrimPrefix(ids, ",") + "]"
		if _, whole := s.do("POST", path, body+"}"); strings.Count(ids, ",") != 8 || !strings.Contains(whole, `"token_ids":`+ids) {
			t.Errorf("%s: ids %s, whole answer %s", path, ids, whole)
		}
	}
}
