package log

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A time may be a date, or a number whose unit is found by its size.
func TestParseTime(t *testing.T) {
	want := time.Date(2023, 11, 14, 22, 13, 20, 250_000_000, time.UTC)
	for _, text := range []string{
		"1700000000.25", "1700000000250", "1700000000250000", "1700000000250000000", "1.70000000025e9",
		"2023-11-14T22:13:20.25Z", "2023-11-14T23:13:20.250000+01:00", "2023-11-14 22:13:20.250000", "2023-11-14T22:13:20.250", "2023-11-14 22:13:20.25+00:00",
	} {
		if got, ok := parseTime([]byte(text), "time"); !ok || !got.Equal(want) {
			t.Errorf("%s is read as %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"0", "0.0", "0001-01-01T00:00:00Z"} {
		if got, ok := parseTime([]byte(text), "time"); !ok || !got.IsZero() {
			t.Errorf("%q is read as %v, %v, not as no time", text, got, ok)
		}
	}
	for _, text := range []string{"yesterday", "5", "-1700000000", "NaN", "Inf", "1e300", "1969-12-31T00:00:00Z", "99999999999"} {
		if got, ok := parseTime([]byte(text), "time"); ok {
			t.Errorf("%s is read as %v", text, got)
		}
	}
	if _, ok := parseTime([]byte("1700000000"), "nanos"); ok {
		t.Error("seconds are taken for nanoseconds")
	}
}

// Usage is read as each server writes it: the input includes cached tokens.
func TestUsage(t *testing.T) {
	for usage, want := range map[string][4]int{
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}`: {9, 4, 3, 2},
		`{"input_tokens":9,"output_tokens":4,"input_tokens_details":{"cached_tokens":3}}`:                                                          {9, 4, 3, 0},
		`{"input_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4,"output_tokens":4}`:                                         {9, 4, 3, 0},
		`{"prompt_tokens":9,"cache_read_input_tokens":3,"completion_tokens":"4"}`:                                                                  {9, 4, 3, 0},
		`{}`: {},
	} {
		m, err := membersOf([]byte(usage))
		if err != nil {
			t.Fatal(err)
		}
		var wrong error
		f := &fields{members: m, err: &wrong}
		var u Usage
		u.read(f)
		if got := [4]int{u.Input.Value, u.Output.Value, u.Cached.Value, u.Reasoning.Value}; got != want || wrong != nil {
			t.Errorf("%s is read as %v: %v", usage, got, wrong)
		}
	}
}

// Only names and paths of calls that generate text are requests.
func TestGenerates(t *testing.T) {
	for name, want := range map[string]bool{
		"acompletion": true, "atext_completion": true, "aresponses": true, "anthropic_messages": true, "/v1/chat/completions": true,
		"http://gw/v1/messages?beta=true": true, "chat": true, "generate_content": true,
		"aembedding": false, "/v1/embeddings": false, "arerank": false, "image_generation": false, "aget_responses": false, "/v1/files": false, "create_batch": false,
	} {
		if generates(name) != want {
			t.Errorf("%s generates text: %v", name, !want)
		}
	}
}

// idsOf returns the ids of a text prompt of which the server counts a number of blocks.
func idsOf(t *testing.T, text string, count int) []uint64 {
	t.Helper()
	cfg := Config{Key: Key{1}, BlockSize: 16}
	r := NewReader(cfg)
	call, err := r.Read(Completions, []byte(`{"prompt":"`+text+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(r.Hash(call).fit(cfg.Key.Keys().Blocks, count))
}

// However many blocks the server counts, prompts share ids exactly as far as they are
// equal by text, and only equal prompts share the last.
func TestIDsOfACount(t *testing.T) {
	const block = 64 // bytes
	prompt := strings.Repeat("a", 5*block)
	other := strings.Repeat("a", 5*block-1) + "b"
	longer := prompt + "c"
	for _, count := range []int{0, 1, 3, 4, 5, 6, 9} {
		ids := idsOf(t, prompt, count)
		if len(ids) != count || !slices.Equal(ids, idsOf(t, prompt, count)) {
			t.Errorf("%d blocks: %v", count, ids)
		}
		if count == 0 {
			continue
		}
		for _, p := range []string{other, longer} {
			same := idsOf(t, p, count)
			if ids[count-1] == same[count-1] {
				t.Errorf("%d blocks: %q ends as %q does", count, p[len(p)-2:], prompt[len(prompt)-2:])
			}
			if n := min(count-1, 4); !slices.Equal(ids[:n], same[:n]) {
				t.Errorf("%d blocks: %v and %v do not share %d", count, ids, same, n)
			}
		}
		if all := slices.Sorted(slices.Values(ids)); len(slices.Compact(all)) != count {
			t.Errorf("%d blocks: an id comes twice in %v", count, ids)
		}
	}
}

// The limit of the response is found under the name that each API has for it.
func TestMaxTokens(t *testing.T) {
	for api, body := range map[string]string{
		Completions: `{"prompt":"a","max_tokens":7}`, Chat: `{"messages":[],"max_completion_tokens":7}`,
		Responses: `{"input":"a","max_output_tokens":7}`, Messages: `{"messages":[],"max_tokens":7}`,
		Generate: `{"text":"a","sampling_params":{"max_new_tokens":7}}`,
	} {
		if call, err := NewReader(Config{Key: Key{1}}).Read(api, []byte(body)); err != nil || call.MaxTokens != 7 {
			t.Errorf("%s: %+v, %v", api, call, err)
		}
	}
}

// A request continues the longest prompt that its own one begins with, but no equal one,
// wherever blocks end.
func TestContinuedPrompts(t *testing.T) {
	const block = 64 // bytes
	for size := block - 1; size <= block+1; size++ {
		reader, sessions := NewReader(Config{Key: Key{1}, BlockSize: 16}), NewSessions(10)
		joined := func(fresh, prompt string) string {
			call, err := reader.Read(Completions, []byte(`{"prompt":"`+prompt+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			turn := &Turn{ID: fresh}
			sessions.Join(turn, "", reader.Hash(call), fresh)
			return turn.Session()
		}
		prompt := strings.Repeat("a", size)
		got := joined("1", prompt) + joined("2", prompt) + joined("3", prompt+"b") + joined("4", prompt+"bc") + joined("5", "b")
		if got != "12225" {
			t.Errorf("prompts of %d bytes join the sessions %s, want 12225", size, got)
		}
	}
}

func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	a, err := OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if b, err := OpenKey(path); err != nil || b != a || a == (Key{}) {
		t.Errorf("%v, the same key: %v", err, b == a)
	}
	os.Chmod(path, 0o644)
	if _, err := OpenKey(path); err == nil {
		t.Error("a key that others can read is used")
	}
	os.Chmod(path, 0o600)
	os.WriteFile(path, []byte("secret"), 0o600)
	if _, err := OpenKey(path); err == nil {
		t.Error("a text that is no key is used")
	}
}

// BenchmarkIDs measures hashing token ids, of 4 bytes each.
func BenchmarkIDs(b *testing.B) {
	for _, tokens := range []int{512, 16} {
		b.Run(fmt.Sprintf("block=%d", tokens), func(b *testing.B) {
			prompt := make([]byte, 1<<20)
			r := NewReader(Config{Key: Key{1}, BlockSize: tokens})
			b.SetBytes(int64(len(prompt)))
			b.ReportAllocs()
			for b.Loop() {
				r.Hash(&Call{Model: "m", content: prompt, tokens: true})
			}
		})
	}
}
