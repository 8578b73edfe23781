package tokenizer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Anything unknown is rejected by name.
func TestRefused(t *testing.T) {
	base := string(variants(t).text(t, "llama3", false))
	step := func(s string) func(map[string]any) {
		return func(f map[string]any) { f["pre_tokenizer"] = json.RawMessage(s) }
	}
	model := func(key string, value any) func(map[string]any) {
		return func(f map[string]any) { f["model"].(map[string]any)[key] = value }
	}
	added := func(s string) func(map[string]any) {
		return func(f map[string]any) { f["added_tokens"] = json.RawMessage(s) }
	}
	const level = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}`
	for name, tc := range map[string]struct {
		edit func(map[string]any)
		want string
	}{
		"Metaspace":           {step(`{"type":"Metaspace","replacement":"_"}`), `pre-tokenizer "Metaspace" is not supported`},
		"no pre-tokenizer":    {step(`null`), "not SentencePiece"},
		"no ByteLevel":        {step(`{"type":"Digits","individual_digits":true}`), "no ByteLevel"},
		"behind ByteLevel":    {step(`{"type":"Sequence","pretokenizers":[` + level + `,{"type":"Digits","individual_digits":true}]}`), `"Digits" after ByteLevel`},
		"prefix space":        {step(`{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":false}`), "add_prefix_space"},
		"prefix space unsaid": {step(`{"type":"ByteLevel"}`), "add_prefix_space"},
		"unknown option":      {step(`{"type":"ByteLevel","add_prefix_space":false,"use_magic":true}`), "use_magic"},
		"a literal":           {step(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"String":" "},"behavior":"Isolated","invert":false},` + level + `]}`), "without a Regex"},
		"merged":              {step(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a"},"behavior":"MergedWithNext","invert":false},` + level + `]}`), `"MergedWithNext"`},
		"removed":             {step(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a"},"behavior":"Removed","invert":false},` + level + `]}`), `"Removed"`},
		"bad pattern":         {step(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated","invert":false},` + level + `]}`), `pattern "(a" is not supported`},
		"possessive pattern":  {step(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a++"},"behavior":"Isolated","invert":false},` + level + `]}`), `is not supported`},
		"endless pattern":     {step(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"` + strings.Repeat("a", maxPattern+1) + `"},"behavior":"Isolated","invert":false},` + level + `]}`), "4096"},
		"deep":                {step(strings.Repeat(`{"type":"Sequence","pretokenizers":[`, 9) + level + strings.Repeat(`]}`, 9)), "too many steps"},
		"lower case":          {func(f map[string]any) { f["normalizer"] = json.RawMessage(`{"type":"Lowercase"}`) }, `normalizer "Lowercase"`},
		"NFKC": {func(f map[string]any) {
			f["normalizer"] = json.RawMessage(`{"type":"Sequence","normalizers":[{"type":"NFKC"}]}`)
		}, `normalizer "NFKC"`},
		"Unigram":             {model("type", "Unigram"), `model "Unigram"`},
		"no model":            {func(f map[string]any) { f["model"] = nil }, "no model"},
		"byte fallback":       {model("byte_fallback", true), "SentencePiece"},
		"dropout":             {model("dropout", 0.1), "is random"},
		"prefix":              {model("continuing_subword_prefix", "##"), "continuing_subword_prefix"},
		"suffix":              {model("end_of_word_suffix", "</w>"), "end_of_word_suffix"},
		"unknown member":      {model("magic", 1), "magic"},
		"not of bytes":        {model("vocab", map[string]int{"a": 0}), "no token for byte"},
		"two of one id":       {model("vocab", map[string]int{"a": 1, "b": 1}), `"a" and "b"`},
		"large id":            {model("vocab", map[string]int{"a": 1 << 30}), "4194304"},
		"negative id":         {model("vocab", map[string]int{"a": -1}), "model is not that of a tokenizer.json"},
		"long token":          {model("vocab", map[string]int{strings.Repeat("a", maxToken+1): 1}), "4096"},
		"merge of three":      {model("merges", []string{"a b c"}), "merge 0 does not have two"},
		"merge of one":        {model("merges", [][]string{{"a"}}), "merge 0 does not have two"},
		"merges of numbers":   {model("merges", []int{1}), "list of merges"},
		"merge of what?":      {model("merges", []string{"a qqqq"}), `merge 0, of "a" and "qqqq"`},
		"single word":         {added(`[{"id":900,"content":"x","single_word":true}]`), `added token "x" with single_word`},
		"empty added token":   {added(`[{"id":900,"content":""}]`), "added token 900 is empty"},
		"added with large id": {added(`[{"id":4294967295,"content":"x"}]`), "4194304"},
		"another file":        {func(f map[string]any) { clear(f); f["choices"] = 1 }, "choices"},
	} {
		var f map[string]any
		if err := json.Unmarshal([]byte(base), &f); err != nil {
			t.Fatal(err)
		}
		tc.edit(f)
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	for _, text := range []string{"", "[]", "{", "null", "version https://git-lfs.github.com/spec/v1\n"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is a tokenizer", text)
		}
	}
}

func TestOpen(t *testing.T) {
	text := variants(t).text(t, "qwen2", true)
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(path)
	if err != nil || len(a.SHA256()) != 64 {
		t.Fatalf("digest %q, error %v", a.SHA256(), err)
	}
	if b, err := Parse(append(text, ' ')); err != nil || a.SHA256() == b.SHA256() {
		t.Errorf("files that differ have one digest (%v)", err)
	}
	if _, err := Open(path + "x"); err == nil || !strings.Contains(err.Error(), path+"x") {
		t.Errorf("error %v", err)
	}
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("error %v", err)
	}
}

// Parsing any file terminates with a working tokenizer or an error.
func FuzzParse(f *testing.F) {
	all := variants(f)
	for name := range all.Variants {
		text := all.text(f, name, true)
		f.Add(text)
		f.Add(bytes.Replace(text, []byte("Isolated"), []byte("Removed"), 1))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if tok, err := Parse(text); err == nil {
			tok.Append(nil, "the moon's 12 tides\n")
		}
	})
}
