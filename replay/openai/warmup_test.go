package openai

import (
	"bytes"
	"testing"

	"moontide/trace"
)

// A warm-up request has the row's lengths but other text. A request that is prepared
// again is the same. Neither changes PromptDigest.
func TestWarmupAndAgain(t *testing.T) {
	for _, endpoint := range []string{Completions, Chat} {
		c := client(t, nobody, of(endpoint))
		row := trace.Request{InputLength: 1030, OutputLength: 9, HashIDs: []uint64{1, 2, 3}}
		own := row
		own.Extra = []byte(`{"messages": [{"role": "user", "content": "hush"}], "text_input": "hush"}`)
		bodies := map[string]int{}
		first := prepare(t, c, row).body
		digest := c.PromptDigest()
		for i := range 5 {
			for _, r := range []trace.Request{row, own} {
				warm, err := c.Warmup().Prepare(r, i)
				if err != nil {
					t.Fatal(err)
				}
				body := warm.(*call).body
				bodies[string(body)]++
				start := bytes.Index(first, []byte(`"m"`))
				if bytes.Contains(body, []byte("hush")) || bytes.Equal(body[:start+100], first[:start+100]) || !bytes.Contains(body, []byte(`"max_tokens":9`)) {
					t.Errorf("%s: warm-up %.200s", endpoint, body)
				}
			}
		}
		if len(bodies) != 5 || c.PromptDigest() != digest { // a warm-up is none of what is measured
			t.Errorf("%s: %d different bodies", endpoint, len(bodies))
		}
		// A row without ids has a text of its own, as a warm-up has.
		bare, err := c.Warmup().Prepare(row, 0)
		if own := prepare(t, c, trace.Request{InputLength: 1030, OutputLength: 9}).body; err != nil || bytes.Equal(bare.(*call).body, own) {
			t.Errorf("%s: a warm-up is what a row without ids says", endpoint)
		}
		digest = c.PromptDigest()
		again, err := c.PrepareAgain(row, 0)
		if err != nil || !bytes.Equal(again.(*call).body, first) {
			t.Errorf("%s: again: %v", endpoint, err)
		}
		if c.PromptDigest() != digest {
			t.Errorf("%s: the digest changed", endpoint)
		}
	}
}
