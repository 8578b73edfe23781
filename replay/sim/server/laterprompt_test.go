package server_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/server"
)

// jsonOf returns the JSON of v.
func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// ways are the ways in which a later prompt can have an earlier answer.
var ways = []struct {
	name, path, first string
	keeps             bool // the reasoning
	next              func(t *testing.T, answer string) string
}{
	{"text", completionPath, `"prompt":"X two three four five"`, true, func(t *testing.T, answer string) string {
		type body struct{ Choices []struct{ Text string } }
		return `"prompt":` + jsonOf(t, "X two three four five"+parsed[body](t, []byte(answer)).Choices[0].Text+" and so on")
	}},
	{"token ids", completionPath, `"prompt":[1,2,3,4,5],"return_token_ids":true`, true, func(t *testing.T, answer string) string {
		type body struct {
			Choices []struct {
				IDs []uint64 `json:"token_ids"`
			}
		}
		return `"prompt":` + jsonOf(t, append(append([]uint64{1, 2, 3, 4, 5}, parsed[body](t, []byte(answer)).Choices[0].IDs...), 6, 7, 8))
	}},
	{"output ids", generatePath, `"input_ids":[1,2,3,4,5]`, true, func(t *testing.T, answer string) string {
		type body struct {
			IDs []uint64 `json:"output_ids"`
		}
		return `"input_ids":` + jsonOf(t, append(append([]uint64{1, 2, 3, 4, 5}, parsed[body](t, []byte(answer)).IDs...), 6, 7, 8))
	}},
	{"messages", chatPath, `"messages":[{"role":"user","content":"X two three four five"}]`, false, func(t *testing.T, answer string) string {
		return nextMessages(t, answer)
	}},
}

func nextMessages(t *testing.T, answer string) string {
	type body struct {
		Choices []struct{ Message map[string]any }
	}
	got := parsed[body](t, []byte(answer)).Choices[0].Message
	message := map[string]any{"role": "assistant", "content": got["content"]}
	if thought, ok := got["reasoning_content"]; ok {
		message["reasoning_content"] = thought
	}
	return `"messages":[{"role":"user","content":"X two three four five"},` + jsonOf(t, message) + `,{"role":"tool","content":"and so on"}]`
}

// The next turn finds all of an answer that is cached, except for its last token,
// in whatever form it has it; an answer without its reasoning is not in the cache.
func TestAnswersInLaterPrompts(t *testing.T) {
	t.Parallel()
	const size, prompt, added = 3, 5, 3
	tokenizer := func(dst []uint32, text string) ([]uint32, error) {
		for word := range strings.FieldsSeq(text) {
			if rest, ok := strings.CutPrefix(word, "a"); ok { // two tokens
				dst, word = append(dst, 1), rest
			}
			h := fnv.New32a()
			h.Write([]byte(word))
			dst = append(dst, 100+h.Sum32()%1_000_000)
		}
		return dst, nil
	}
	for _, tt := range []struct {
		encode    server.Encoder
		generated bool // tokens are cached
		reasoning int
	}{
		{nil, false, 0}, {nil, true, 0}, {nil, true, 4}, {nil, true, 32}, {nil, true, 64},
		{tokenizer, true, 0}, {tokenizer, true, 4}, {tokenizer, true, 32}, {tokenizer, true, 64},
	} {
		cfg := over(engine.Config{BlockSize: size})
		cfg.CacheGenerated, cfg.ReasoningTokens, cfg.Encode = tt.generated, tt.reasoning, tt.encode
		s, asked := start(t, cfg), 1000
		for _, way := range ways {
			for _, n := range []int{1, 2, 3, 5, 6, 7, 30, 66, 70} {
				asked++ // another conversation
				other := strings.NewReplacer("X", fmt.Sprint("x", asked), "[1,", fmt.Sprintf("[%d,", asked))
				ask := func(members string, n int) string {
					body := fmt.Sprintf(`{"model":"sim",%s,"ignore_eos":true,"max_tokens":%d,"sampling_params":{"max_new_tokens":%[2]d}}`, members, n)
					status, answer := s.do("POST", way.path, other.Replace(body))
					if status != 200 {
						t.Fatalf("%s: status %d: %s", way.name, status, answer)
					}
					return answer
				}
				answer := ask(way.first, n)
				added := added
				if tt.encode != nil && !strings.Contains(way.name, "ids") {
					added++ // and
				}
				dropped := 0
				if !way.keeps {
					dropped = min(tt.reasoning, n)
				}
				shared := prompt + n - 1
				if dropped > 0 || !tt.generated {
					shared = prompt
				}
				var got said
				next := ask(way.next(t, answer), 1)
				got.read(t, "", []byte(next))
				if want := prompt + n - dropped + added; got.Input != want || got.Cached != shared/size*size {
					t.Errorf("%s, tokenizer %v, %d of %d tokens are reasoning: %d of %d tokens cached; want %d of %d",
						way.name, tt.encode != nil, min(tt.reasoning, n), n, got.Cached, got.Input, shared/size*size, want)
				}
			}
		}
	}
}
