package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func put(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dataset")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func collect(path string) (texts []string, err error) {
	for text, e := range ReadDataset(path) {
		if e != nil {
			return texts, e
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func TestConversations(t *testing.T) {
	const one, two = `{"id":"a","conversations":[{"from":"human","value":"Hi \"you\""},{"from":"gpt","value":"tide\né"}]}`, `{"conversations":[{"from":"human","value":"moon"}],"extra":{"x":[1]}}`
	want := []string{`Hi "you"`, "tide\né", "moon"}
	for name, text := range map[string]string{
		"array":           "[" + one + "," + two + "]",
		"indented":        " \r\n[\n\t" + one + ",\n\n\t" + two + "\n]\n",
		"byte order mark": "\uFEFF[" + one + "," + two + "]",
		"lines":           one + "\n" + two + "\n",
		"empty ones too":  `[{},{"conversations":[]},{"conversations":[{"value":""}]},` + one + "," + two + "]",
	} {
		got, err := collect(put(t, text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q (%v)", name, got, want, err)
		}
	}
}

// Plain text comes in parts that end between words.
func TestText(t *testing.T) {
	long := strings.Repeat("the tide waits for no one ", 10_000)
	texts, err := collect(put(t, long))
	words := 0
	for _, text := range texts {
		if words += len(strings.Fields(text)); len(text) > textPart {
			t.Errorf("a part of %d bytes", len(text))
		}
	}
	if err != nil || words != 60_000 || strings.Join(texts, "") != long {
		t.Errorf("%d words in %d parts, want 60000 (%v)", words, len(texts), err)
	}
	word := strings.Repeat("x", 5*textPart+7)
	if got, err := collect(put(t, word)); err != nil || strings.Join(got, "") != word {
		t.Errorf("a very long word is %d parts, error %v", len(got), err)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[{"a":1}]`: "has no text",
		"":          "has no text",
		`[{"conversations":[]},{"conversations":7}]`: "conversation 2: ",
		`[{"conversations":[{"value":"a`:             "conversation 1: unexpected EOF",
		`[{"conversations":[]}`:                      "after conversation 1: EOF",
		`[{"conversations":[]}}`:                     "after conversation 1: ",
		`{"conversations":[]} x`:                     "conversation 2: invalid c",
		`["a"]`:                                      "cannot unmarshal",
		`[{"conversations":[{"value":"tide"}]},{"conversations":[{"value":"` + strings.Repeat("x", maxConversation+1<<20) + `"}]}]`: "longer than 16777216 bytes",
	} {
		path := put(t, text)
		if _, err := collect(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.60s: error %v, want %q", text, err, want)
		}
	}
	if _, err := collect(t.TempDir()); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a folder: %v", err)
	}
}

// A file is read no further than needed; the rest may be invalid.
func TestNoFurtherThanAskedFor(t *testing.T) {
	var text strings.Builder
	text.WriteString("[")
	for i := range 100_000 {
		fmt.Fprintf(&text, `{"conversations":[{"value":"tide %d"}]},`, i)
	}
	path := put(t, text.String()+"{{{")
	n := 0
	for got, err := range ReadDataset(path) {
		if err != nil || got != fmt.Sprint("tide ", n) {
			t.Fatalf("%q, error %v", got, err)
		}
		if n++; n == 500 {
			break
		}
	}
}

func FuzzReadDataset(f *testing.F) {
	f.Add(`[{"conversations":[{"value":"a"}]}]`)
	f.Add(`{"conversations":[]}`)
	f.Add("plain")
	f.Add("\uFEFF [")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := collect(put(t, text))
		if err == nil && len(got) == 0 {
			t.Error("neither texts nor an error")
		}
	})
}
