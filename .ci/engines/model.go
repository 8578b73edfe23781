package main

import (
	"path/filepath"

	"moontide/.ci/results"
)

// model describes a tiny Llama without trained weights.
type model struct {
	name       string
	vocabulary int
	words      int // of two syllables, one token each; the rest is of three syllables
}

// Prompts of usual token ids and words suit the first model. The second has fewer
// token ids than the default range and too few words.
var (
	tiny  = model{"tiny", 32_000, 10_000}
	small = model{"small", 2_000, 700}
)

const maxPositions = 32_768

// specials end the vocabulary.
var specials = []string{"<|user|>", "<|assistant|>", "<|system|>", "<|tool|>", "<think>", "</think>", "<|end|>"}

// The chat template adds tokens to a message, one of them before it.
const (
	templateBefore = 1
	templateTokens = 2
	chatTemplate   = `{% if tools %}<|system|>{% for t in tools %}{{ t | tojson }}{% endfor %}{% endif %}` +
		`{% for m in messages %}{{ '<|' + m['role'] + '|>' }}` +
		`{% if m['reasoning_content'] %}{{ '<think>' + m['reasoning_content'] + '</think>' }}{% endif %}` +
		`{% if m['content'] is string %}{{ m['content'] }}{% endif %}` +
		`{% for t in m['tool_calls'] or [] %}{{ '<tool_call>{"name": "' + t['function']['name'] + '", "arguments": ' + (t['function']['arguments'] | tojson) + '}</tool_call>' }}{% endfor %}` +
		`{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}`
)

// make writes the model's folder as Hugging Face lays it out, without weights.
func (m model) make(models string) (dir string, err error) {
	vocabulary, merges := m.tokens()
	end := len(vocabulary) - 1
	dir = filepath.Join(models, m.name)
	return dir, results.Tokenizer{Vocabulary: vocabulary, Merges: merges, Specials: specials,
		Config: results.Object{"model_max_length": maxPositions, "chat_template": chatTemplate},
	}.Write(dir, map[string]results.Object{"config.json": {
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "vocab_size": m.vocabulary,
		"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": maxPositions, "rms_norm_eps": 1e-5,
		"rope_theta": 10000.0, "tie_word_embeddings": true, "eos_token_id": end, "bos_token_id": nil,
		"hidden_act": "silu", "torch_dtype": "bfloat16",
	}})
}

// tokens returns the vocabulary by id and the merges of its tokens: bytes,
// syllables, words of two syllables with and without a space before them, and words
// of three with one.
func (m model) tokens() (vocabulary []string, merges [][2]string) {
	const space = "\u0120" // how byte-level tokenizers write it
	vocabulary = byteSymbols()
	merge := func(a, b string) {
		vocabulary = append(vocabulary, a+b)
		merges = append(merges, [2]string{a, b})
	}
	var syllables []string
	for _, consonant := range "bcdfghjklmnpqrstvwxz" {
		for _, vowel := range "aeiou" {
			merge(string(consonant), string(vowel))
			syllables = append(syllables, string(consonant)+string(vowel))
		}
	}
	for _, s := range syllables {
		merge(space, s)
	}
	n := len(syllables)
	for _, before := range []string{space, ""} { // the first words merge before others
		for i := range m.words {
			merge(before+syllables[i%n], syllables[i/n])
		}
	}
	for i := 0; len(vocabulary) < m.vocabulary-len(specials); i++ {
		w := i % m.words
		merge(space+syllables[w%n]+syllables[w/n], syllables[i/m.words])
	}
	return append(vocabulary, specials...), merges
}

// byteSymbols returns the 256 bytes as GPT-2 writes them.
func byteSymbols() (symbols []string) {
	other := rune(256)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			symbols = append(symbols, string(b))
		} else {
			symbols = append(symbols, string(other))
			other++
		}
	}
	return symbols
}
