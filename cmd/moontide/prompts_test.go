package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moontide/replay/runfile"
	"moontide/trace/tokenizer"
)

// tokenizerFile writes a tokenizer.json in which most words of the usual list
// are one token each, and most other words several.
func tokenizerFile(t *testing.T, dir string, without ...string) string {
	t.Helper()
	list, err := os.ReadFile(root + "/replay/prompt/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	vocab := map[string]int{}
	add := func(text string) { vocab[text] = len(vocab) }
	next := rune(256)
	for b := rune(0); b < 256; b++ { // as a vocabulary writes bytes
		if '!' <= b && b <= '~' || 0xA1 <= b && b != 0xAD {
			add(string(b))
			continue
		}
		add(string(next))
		next++
	}
	var merges []string
	for c := 'a'; c <= 'z'; c++ {
		merges = append(merges, "Ġ "+string(c))
		add("Ġ" + string(c))
	}
	for word := range strings.FieldsSeq(string(list) + " zzz zzzz") {
		if !slices.Contains(without, word) {
			add(word)
			add("Ġ" + word)
		}
	}
	text, err := json.Marshal(map[string]any{
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		"model":         map[string]any{"type": "BPE", "ignore_merges": true, "vocab": vocab, "merges": merges},
	})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, dir, "tokenizer.json", string(text))
}

// counter is an endpoint that counts prompts like a model: with its tokenizer,
// plus the tokens of a chat template.
type counter struct {
	*httptest.Server
	tokenizer *tokenizer.Tokenizer
	template  int
}

func newCounter(t *testing.T, file string, template int) *counter {
	tok, err := tokenizer.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{tokenizer: tok, template: template}
	c.Server = httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(c.Close)
	return c
}

func (c *counter) answer(out http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprint(out, `{"data": [{"id": "m"}]}`)
		return
	}
	var body struct {
		Prompt   any
		Messages []struct{ Content string }
	}
	text, _ := io.ReadAll(r.Body)
	json.Unmarshal(text, &body)
	n := 0
	switch p := body.Prompt.(type) {
	case []any:
		n = len(p)
	case string:
		ids, _ := c.tokenizer.Append(nil, p)
		n = len(ids)
	default:
		ids, _ := c.tokenizer.Append(nil, body.Messages[0].Content)
		n = len(ids) + c.template
	}
	out.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(out, `data: {"choices": [{"text": " a", "finish_reason": "length"}], "usage": {"prompt_tokens": %d, "completion_tokens": 2}}`+"\n\ndata: [DONE]\n\n", n)
}

func sharingRows() string {
	var text strings.Builder
	for i := range 24 {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": %d, "output_length": 2, "hash_ids": [%d, %d]}`+"\n", i, 17+i%15, i%3, 10+i)
	}
	return text.String()
}

const somebook = "the boy's visit (undertow, \"plant\") was 1984 \\ name falls later gray park moonrise\n\n"

// Whatever the source of prompts, the endpoint's count matches the trace, and
// the run records the source.
func TestPromptsHaveTheLengthOfTheTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", sharingRows())
	file := tokenizerFile(t, dir, "plant", "name")
	write(t, dir, "book.txt", strings.Repeat(somebook, 300))
	conversation, _ := json.Marshal(map[string]any{"conversations": []any{map[string]string{"from": "human", "value": strings.Repeat(somebook, 300)}}})
	write(t, dir, "sharegpt.json", "["+string(conversation)+"]")
	endpoint := newCounter(t, file, 7)
	digests := map[string]string{}
	for name, tc := range map[string]struct {
		flags    string
		template int // tokens added by the endpoint, as in run.json
		extra    int // tokens counted beyond the trace's length
		target   func(runfile.Target) bool
		note     string
	}{
		"ids":     {"", 0, 0, func(to runfile.Target) bool { return to.TokenRange == "1000:30000" && to.Prompt == "tokens" }, ""},
		"few ids": {"--token-range 500:900", 0, 0, func(to runfile.Target) bool { return to.TokenRange == "500:900" }, ""},
		"words":   {"--prompt words", 0, -1, func(to runfile.Target) bool { return to.Tokenizer == runfile.File{} }, "PROMPTS DO NOT HAVE THE LENGTHS OF THE TRACE"},
		"our words": {"--prompt words --tokenizer tokenizer.json", 0, 0, func(to runfile.Target) bool {
			return to.Tokenizer.Name == "tokenizer.json" && len(to.Tokenizer.SHA256) == 64
		}, "2 of the usual words are not one token each"},
		"book": {"--dataset book.txt --tokenizer tokenizer.json", 0, 0, func(to runfile.Target) bool {
			return to.Dataset.Name == "book.txt" && len(to.Dataset.SHA256) == 64 && to.Prompt == "words"
		}, "of its words were left out"},
		"sharegpt":   {"--dataset sharegpt.json --tokenizer tokenizer.json --seed 1", 0, 0, func(to runfile.Target) bool { return to.Dataset.Name == "sharegpt.json" }, "of its words were left out"},
		"chat":       {"--dataset book.txt --tokenizer tokenizer.json --endpoint chat", 7, 7, func(to runfile.Target) bool { return !to.ExactISL }, "adds 7 tokens to each prompt"},
		"exact chat": {"--endpoint chat --tokenizer tokenizer.json --exact-isl", 7, 0, func(to runfile.Target) bool { return to.ExactISL && to.CountedISL(9) == 9 && to.CountedISL(3) == 3 }, "prompts are made that much shorter"},
	} {
		t.Run(name, func(t *testing.T) {
			run := "run-" + strings.ReplaceAll(name, " ", "-")
			r := try(t, dir, "", append([]string{"replay", "t.jsonl", "--url", endpoint.URL, "--block-size", "16", "--out", run}, strings.Fields(tc.flags)...)...)
			if !r.measured() || !strings.Contains(r.err, tc.note) {
				t.Fatalf("exit status %d, want a note %q\n%s", r.status, tc.note, r.err)
			}
			recorded, err := runfile.Open(filepath.Join(dir, run))
			if err != nil {
				t.Fatal(err)
			}
			recorded.Close()
			target := recorded.Run.Target
			if !tc.target(target) || target.TemplateTokens != tc.template || !target.MinTokens || !strings.Contains(target.Body, `"ignore_eos":true`) {
				t.Errorf("target %+v", target)
			}
			digests[recorded.Run.Prompts] = name
			for _, rec := range recordsOf(t, filepath.Join(dir, run)) {
				got := rec.Counts.Input.Value
				if tc.extra >= 0 && (got != rec.InputLength+tc.extra || got != target.CountedISL(rec.InputLength)) {
					t.Errorf("%d tokens are counted of %d", got, rec.InputLength)
				}
			}
		})
	}
	if len(digests) != 8 {
		t.Errorf("prompts are equal: %v", digests)
	}
}

// The simulated endpoint counts texts with the same tokenizer, embedded or
// served, so the sample texts become prompts of exact lengths.
func TestSampleTextsHaveTheLengthOfTheTrace(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), absolute(t, root+"/traces/tokenizer.json")
	write(t, dir, "t.jsonl", sharingRows())
	served := serveFast(t, "--tokenizer", file)
	for _, to := range []string{"", "--url=" + served} {
		for n, dataset := range []string{"sharegpt.json", "opticks.txt"} {
			run := fmt.Sprintf("run-%d-%t", n, to != "")
			args := []string{"replay", "t.jsonl", "--block-size", "16", "--tokenizer", file, "--dataset", absolute(t, root+"/traces/"+dataset), "--out", run}
			if to != "" {
				args = append(args, to)
			}
			must(t, dir, args...)
			for _, rec := range recordsOf(t, filepath.Join(dir, run)) {
				if got := rec.Counts.Input.Value; got != rec.InputLength {
					t.Errorf("%s %s: %d tokens are counted of %d", dataset, to, got, rec.InputLength)
				}
			}
		}
	}
}
