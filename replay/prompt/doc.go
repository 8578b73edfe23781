// Package prompt generates the prompts of a replay. A prompt has exactly the
// length of its row, and shares exactly the prefixes given by the trace with other
// prompts.
//
//	p := prompt.Source{Seed: 1}.Prompt(request, row)
//	body = p.AppendJSONTokens(body) // or AppendText
//
// A trace has no text: its rows identify the blocks of their prompts by id, and an
// id identifies the whole prefix. The content of a block is a pure function of a
// seed, a salt and its id: no table is needed, every machine generates the same
// prompts in any order, and a part of a block is a prefix of it.
//
// Block i of a row covers the tokens [i*BlockSize, (i+1)*BlockSize) of its prompt.
// Ids beyond the input length are ignored. If the ids end before the prompt does
// (no ids, or none for a partial last block), the rest is unique to the row.
//
// # Token ids, words, text
//
// Token ids are exact by construction, for endpoints that accept them.
//
// Words: each of 1024 words is one token in common vocabularies, at the start of a
// text and after a space, and tokenizers split before a space, so n words are n
// tokens. This was verified with Llama 2 and 3, Qwen 2.5 and 3, DeepSeek-V3,
// Mistral Nemo, Gemma 3, gpt-oss, cl100k and o200k. For another model, compare
// with the usage reported by the server, or replace the words that it splits
// ([NewWords]). Random ids decoded to text would not work: encoding the text again
// gives a different number of tokens.
//
// Text: passages of a dataset ([NewCorpus]), cut to exact lengths. This requires
// words that are encoded independently of the following text, and whose
// beginnings, wherever cut, are encoded to the same tokens as in the whole word.
// Other words, about 2 % of English prose, are dropped.
//
// # Format
//
// Runs are comparable only if the same row always has the same prompt, so this is
// a stable format. All numbers are unsigned 64-bit, wrap around, and are hashed as
// little-endian bytes.
//
//	base(domain, name) = XXH64(domain, seed, len(salt), salt, name), XXH64 seeded with 0
//	key(domain, name, number) = mix(base(domain, name) ^ number)
//	draw(key, j) = mix(key + (j+1)*0x9e3779b97f4a7c15)
//
// domain is one byte, len(salt) counts bytes, and mix is the finalizer of
// splitmix64: draw(key, j) is the j-th output of splitmix64 seeded with key. The
// domains are distinct, up to 64-bit collisions:
//
//	'b'  blocks:  number is the block's id, name is empty, j counts from the block's start
//	'r'  rows:    number is the row's index, name is empty, j counts from the prompt's start
//	'f'  filler:  name is the filler's name, number is 0, j counts from the text's start
//
// A draw is the token id Low + (draw>>32)*(High-Low)>>32, and the word number
// draw>>54 of words.txt, counted from 0.
//
// A passage of a corpus of N tokens starts with the words of its first four draws,
// each after a space. The tokens of the corpus follow, from the first one at or
// after draw*N>>64 (the fifth draw) that begins a word; after the last token comes
// the first. For a row's own tokens, j counts, in passages, from where the ids
// end. A prompt omits its first space.
package prompt
