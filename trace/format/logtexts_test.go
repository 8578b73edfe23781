package format_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"moontide/trace/format"
	"moontide/trace/log"
)

// sizedLog is a log of n requests of each of some models, whose tokens have so many bytes:
// all but every tenth one, which have other bytes. Their prompts have 200 tokens, the first
// 100 of which are those of all prompts of their model.
func sizedLog(n int, models map[string]float64) string {
	var b strings.Builder
	random := rand.New(rand.NewPCG(1, 1))
	for i := range n {
		for model, size := range models {
			if i%10 == 9 {
				size *= 3
			}
			text := func(tokens int, of string) string { return strings.Repeat(of, 1000)[:int(float64(tokens)*size)] }
			prompt := text(100, model+" rises ") + text(100, fmt.Sprint(random.Uint64()))
			fmt.Fprintf(&b, `{"timestamp":%d,"request":{"model":"%s","prompt":"%s"},"response":{"usage":{"prompt_tokens":200,"completion_tokens":1}}}`+"\n", 1_700_000_000+i, model, prompt)
		}
	}
	return b.String()
}

// Without a tokenizer, blocks have as many bytes as tokens of the log have, by model: prompts
// share the blocks that their tokens share.
func TestTextsAreMeasured(t *testing.T) {
	for _, c := range []struct {
		requests int
		given    float64
		models   map[string]float64
		shared   int // blocks of 10 tokens
		note     string
	}{
		{100, 0, map[string]float64{"m": 2.5}, 10, "estimated: 2.5 bytes per token, as the log counts"},
		{100, 0, map[string]float64{"m": 2.61}, 10, "estimated: 2.5 bytes per token, as the log counts"},
		{100, 0, map[string]float64{"m": 2.5, "n": 7, "o": 4}, 10, "estimated: 2.5 to 7 bytes per token, as the log counts"},
		{19, 0, map[string]float64{"m": 2.5}, 6, "estimated: 4 bytes per token; the log counts"},
		{5000, 0, map[string]float64{"m": 2.5}, 10, "estimated: 2.5 bytes per token, as the log counts"},
		{100, 5, map[string]float64{"m": 2.5}, 5, "estimated: 5 bytes per token; the log counts"},
	} {
		configure := func() (log.Config, error) {
			return log.Config{Key: log.Key{1}, BlockSize: 10, BytesPerToken: c.given}, nil
		}
		rows, r, err := readText(sizedLog(c.requests, c.models), format.Options{Format: format.OpenAILog, Record: configure})
		if err != nil || len(rows) != c.requests*len(c.models) {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		uses := map[uint64]int{}
		for _, row := range rows {
			for _, id := range row.HashIDs {
				uses[id]++
			}
		}
		shared := 0
		for _, n := range uses {
			if n > c.requests/2 {
				shared++
			}
		}
		if want := c.shared * len(c.models); shared != want || !strings.Contains(noted(r), c.note) {
			t.Errorf("%v of %d requests: %d blocks are shared, want %d; %s", c.models, c.requests, shared, want, noted(r))
		}
	}
}
