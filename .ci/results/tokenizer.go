package results

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Object is a JSON object.
type Object = map[string]any

// Tokenizer is a byte-level tokenizer of Hugging Face's layout.
type Tokenizer struct {
	Vocabulary []string // by id
	Merges     [][2]string
	Specials   []string // of the vocabulary
	Config     Object   // more keys of tokenizer_config.json
}

// Write writes the tokenizer's files, and others by name, to a folder.
func (t Tokenizer) Write(dir string, others map[string]Object) error {
	ids := Object{}
	for i, token := range t.Vocabulary {
		ids[token] = i
	}
	var added []Object
	for _, name := range t.Specials {
		added = append(added, Object{"id": ids[name], "content": name, "special": !strings.Contains(name, "think"),
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
	}
	bytes := Object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	config := Object{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": t.Specials[len(t.Specials)-1], "clean_up_tokenization_spaces": false}
	for key, value := range t.Config {
		config[key] = value
	}
	files := map[string]Object{
		"tokenizer.json": {
			"version": "1.0", "added_tokens": added, "pre_tokenizer": bytes, "decoder": bytes,
			"truncation": nil, "padding": nil, "normalizer": nil, "post_processor": nil,
			"model": Object{"type": "BPE", "vocab": ids, "merges": append([][2]string{}, t.Merges...), "dropout": nil, "unk_token": nil,
				"continuing_subword_prefix": nil, "end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false},
		},
		"tokenizer_config.json": config,
	}
	for name, content := range others {
		files[name] = content
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		data, err := json.Marshal(content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
