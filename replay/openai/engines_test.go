package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moontide/replay/openai/poll"
)

// engineAnswers are what the client finds in the responses in testdata/engines,
// which .ci/engines/run recorded: the bytes of real engines.
var engineAnswers = map[string]string{
	"llamacpp/chat":           "ok: 8 chunks; input 5, output 8, cached 0",
	"llamacpp/chat-reasoning": "ok: 10 chunks; input 5, output 20, cached 0",
	"llamacpp/error-context":  "status 400: HTTP status 400: request (16385 tokens) exceeds the available context size (4096 tokens), try increasing it",
	"llamacpp/error-json":     `status 400: HTTP status 400: "prompt" elements must be a string, a list of tokens, a JSON object containing a prompt string, or a list of mixed strings & tokens.`,
	"llamacpp/error-key":      "status 401: HTTP status 401: Invalid API Key",
	"llamacpp/error-token":    "status 400: HTTP status 400: Prompt contains invalid tokens",
	"llamacpp/messages":       "ok: 8 chunks; input 5, output 8, cached 4",
	"llamacpp/responses":      "ok: 8 chunks; input 5, output 8, cached 4",
	"llamacpp/tokens":         "ok: 8 chunks; input 100, output 8, cached 0",
	"llamacpp/tokens-cached":  "ok: 8 chunks; input 100, output 8, cached 99",
	"llamacpp/token-ids":      "ok: 8 chunks; input 100, output 8, cached 99",
	"vllm/chat":               "ok: 8 chunks; input 5, output 8, cached 0",
	"vllm/chat-tool":          "ok: 4 chunks; input 5, output 49, cached 0",
	"vllm/chat-reasoning":     "ok: 4 chunks; input 5, output 12, cached 0",
	"vllm/error-context":      "status 400: HTTP status 400: This model's maximum context length is 16384 tokens. However, your prompt contains at least 16385 input tokens, which exceeds this limit even without any output tokens. Please reduce ...",
	"vllm/error-json":         "status 400: HTTP status 400: 4 validation errors:   {'type': 'list_type', 'loc': 'body.prompt', 'msg': 'Input should be a valid list', 'input': '<dict of 0 items>'}   {'type': 'list_type', 'loc': 'body.prompt', '...",
	"vllm/error-key":          "status 401: HTTP status 401: Unauthorized",
	"vllm/error-model":        "status 404: HTTP status 404: The model `nosuch` does not exist. Valid aliases: tiny.",
	"vllm/error-token":        "server 200: Token id 5000000 is out of vocabulary", // in the stream
	"vllm/messages":           "ok: 8 chunks; input 5, output 8, cached 0",
	"vllm/responses":          "ok: 8 chunks; input 5, output 8, cached 0",
	"vllm/tokens-by-five":     "ok: 5 chunks; input 3, output 18, cached 0; tokens of chunks [1 5 5 5 2]",
	"vllm/tokens":             "ok: 8 chunks; input 100, output 8, cached 0",
	"vllm/tokens-cached":      "ok: 8 chunks; input 100, output 8, cached 96",
	"vllm/token-ids":          "ok: 8 chunks; input 100, output 8, cached 96",
}

// However the network cuts a response, the client finds the same in it.
func TestEngineResponses(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/engines/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := strings.CutPrefix(strings.TrimSuffix(filepath.ToSlash(path), ".txt"), "testdata/engines/")
		kind, _, _ := strings.Cut(filepath.Base(name), "-")
		if kind == "models" {
			continue
		}
		found++
		for _, sizes := range [][]byte{{0}, {6}, {255, 255}} { // pieces of 1, 7 and 256 bytes
			if got := summaryOf(fed(cutAt(text, sizes), io.EOF)); got != engineAnswers[name] {
				t.Errorf("%s in pieces of %d bytes:\n got %s\nwant %s", name, int(sizes[0])+1, got, engineAnswers[name])
			}
		}
	}
	ids, err := os.ReadFile("testdata/engines/vllm/token-ids.txt")
	if err != nil {
		t.Fatal(err)
	}
	a := newFed()
	a.stream.kept = &kept{wantIDs: true}
	if a.Feed(ids, poll.Arrival{}); len(a.stream.kept.ids) != 8 {
		t.Errorf("%d ids of 8 tokens are kept", len(a.stream.kept.ids))
	}
	if found != len(engineAnswers) {
		t.Errorf("%d responses, %d expectations", found, len(engineAnswers))
	}
}

// Real lists of models have one, which needs no flag.
func TestEngineModels(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"llamacpp", "vllm"} {
		list, err := os.ReadFile(filepath.Join("testdata", "engines", engine, "models.txt"))
		if err != nil {
			t.Fatal(err)
		}
		c := client(t, serve(t, says(string(list)), wellBehaved).url, func(cfg *Config) { cfg.Model = "" })
		if _, err := c.Probe(context.Background()); err != nil || c.Model() != "tiny" {
			t.Errorf("%s: model %q, %v", engine, c.Model(), err)
		}
	}
}

// vLLM refuses token ids beyond its vocabulary within the stream: the probe draws
// smaller ones, and says so.
func TestEngineRefusesTokens(t *testing.T) {
	t.Parallel()
	refusal, err := os.ReadFile(filepath.Join("testdata", "engines", "vllm", "error-token.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for largest, want := range map[string]string{
		",29999]": "token ids are drawn from 937 to 7499",
		"]":       "Token id 5000000 is out of vocabulary",
	} {
		script := listing(listed("m"), func(p *peer, r *http.Request, body string) {
			if !strings.Contains(body, largest) {
				usual(p, r, body)
				return
			}
			p.say(string(refusal))
			p.Close()
		})
		notes, err := client(t, serve(t, script).url).Probe(context.Background())
		got := strings.Join(notes, "\n")
		if err != nil {
			got = err.Error()
		}
		var refused *RefusedError
		if !strings.Contains(got, want) || err != nil && (!errors.As(err, &refused) || refused.Remedy != UseSmallerIDs) {
			t.Errorf("ids that contain %q are refused: %s, want %q", largest, got, want)
		}
	}
}

// A list of models that needs a key is refused as requests are.
func TestEngineRefusesList(t *testing.T) {
	t.Parallel()
	refusal, err := os.ReadFile(filepath.Join("testdata", "engines", "llamacpp", "error-key.txt"))
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, serve(t, says(string(refusal))).url, func(cfg *Config) { cfg.Model = "" })
	_, err = c.Probe(context.Background())
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Remedy != UseKey || !strings.Contains(err.Error(), "models, as none is set: HTTP status 401: Invalid API Key") {
		t.Errorf("error %v", err)
	}
}

// summaryOf tells what the client has of a response.
func summaryOf(a *fedAnswer) string {
	class, err := a.result(nil)
	if err != nil {
		return fmt.Sprintf("%s %d: %s", class, a.status, oneLine(err.Error()))
	}
	chunks := 0
	if !a.stream.first.IsZero() {
		chunks = a.stream.gaps.n + 1
	}
	c := a.stream.counts
	text := fmt.Sprintf("ok: %d chunks; input %d, output %d, cached %d", chunks, c.Input.Value, c.Output.Value, c.Cached.Value)
	if list := a.stream.tokens.list(); list != nil {
		text += fmt.Sprint("; tokens of chunks ", list)
	}
	return text
}
