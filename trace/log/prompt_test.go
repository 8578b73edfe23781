package log

import (
	"slices"
	"strings"
	"testing"
)

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

// The limit of the answer is found under the name that each API has for it.
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
