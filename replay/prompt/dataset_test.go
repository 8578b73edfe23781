package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
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
		got, err := collect(put(t, t.TempDir(), "s.json", text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q (%v)", name, got, want, err)
		}
	}
}

func TestBooks(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("the tide waits for no one ", 10_000)
	put(t, dir, "b.txt", "second")
	put(t, dir, "a/z.txt", long)
	put(t, dir, "notes.md", "[not a book]")
	put(t, dir, "empty.txt", "")
	texts, err := collect(dir)
	if err != nil || texts[len(texts)-1] != "second" || strings.Join(texts[:len(texts)-1], "") != long {
		t.Fatalf("%d texts, error %v", len(texts), err)
	}
	words := 0
	for _, text := range texts[:len(texts)-1] {
		if words += len(strings.Fields(text)); len(text) > bookPart {
			t.Errorf("a part of %d bytes", len(text))
		}
	}
	if words != 60_000 { // they are not split between parts
		t.Errorf("%d words, want 60000", words)
	}
	if got, err := collect(filepath.Join(dir, "b.txt")); err != nil || !slices.Equal(got, []string{"second"}) {
		t.Errorf("one book is %q (%v)", got, err)
	}
	word := strings.Repeat("x", 5*bookPart+7)
	if got, err := collect(put(t, dir, "word.txt", word)); err != nil || strings.Join(got, "") != word {
		t.Errorf("a very long word is %d parts, error %v", len(got), err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	huge := `[{"conversations":[{"value":"tide"}]},{"conversations":[{"value":"` + strings.Repeat("x", maxConversation+1<<20) + `"}]}]`
	for want, path := range map[string]string{
		"no such file":               filepath.Join(dir, "none"),
		"has no files named *.txt":   filepath.Dir(put(t, dir, "empty/x.md", "x")),
		"has no text":                put(t, dir, "empty.json", `[{"a":1}]`),
		"empty.txt has no text":      put(t, dir, "empty.txt", ""),
		"conversation 2: ":           put(t, dir, "bad.json", `[{"conversations":[]},{"conversations":7}]`),
		"conversation 1: ":           put(t, dir, "half.json", `[{"conversations":[{"value":"a`),
		"after conversation 1: EOF":  put(t, dir, "cut.json", `[{"conversations":[]}`),
		"longer than 16777216 bytes": put(t, dir, "huge.json", huge),
		"after conversation 1: ":     put(t, dir, "wrong.json", `[{"conversations":[]}}`),
		"reading dataset: ":          put(t, dir, "wrong2.json", `{"conversations":[]} x`),
		"cannot unmarshal":           put(t, dir, "strings.json", `["a"]`),
		"conversation 1: invalid c":  put(t, dir, "note.json", `[ this is no JSON ]`),
	} {
		if _, err := collect(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

// A file is read no further than needed; the rest may be invalid.
func TestNoFurtherThanAskedFor(t *testing.T) {
	var text strings.Builder
	text.WriteString("[")
	for i := range 100_000 {
		fmt.Fprintf(&text, `{"conversations":[{"value":"tide %d"}]},`, i)
	}
	path := put(t, t.TempDir(), "s.json", text.String()+"{{{")
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
		got, err := collect(put(t, t.TempDir(), "x", text))
		if err == nil && len(got) == 0 {
			t.Error("neither texts nor an error")
		}
	})
}
