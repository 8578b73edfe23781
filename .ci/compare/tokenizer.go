package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// writeTokenizer writes a tokenizer with a token for every printable ASCII
// character, and returns its folder. The rivals need one for their prompts. The
// endpoint counts its own tokens and takes no time for prompts.
func writeTokenizer(dir string) (string, error) {
	type object = map[string]any
	vocabulary := object{"\u0120": 0} // how byte-level tokenizers write a space
	for c := '!'; c <= '~'; c++ {
		vocabulary[string(c)] = len(vocabulary)
	}
	var special []object
	for _, name := range []string{"<s>", "</s>"} {
		special = append(special, object{"id": len(vocabulary), "content": name, "special": true,
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
		vocabulary[name] = len(vocabulary)
	}
	bytes := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	dir = filepath.Join(dir, "tokenizer")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, content := range map[string]object{
		"tokenizer.json": {
			"version": "1.0", "added_tokens": special, "pre_tokenizer": bytes, "decoder": bytes,
			"truncation": nil, "padding": nil, "normalizer": nil, "post_processor": nil,
			"model": object{"type": "BPE", "vocab": vocabulary, "merges": []string{}, "dropout": nil, "unk_token": nil,
				"continuing_subword_prefix": nil, "end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false},
		},
		"tokenizer_config.json": {
			"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
			"model_max_length": 1_000_000, "clean_up_tokenization_spaces": false,
		},
	} {
		data, err := json.Marshal(content)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}
