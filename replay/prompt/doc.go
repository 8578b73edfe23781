// Package prompt makes what a replayed request says: a prompt that has exactly
// the length its row declares and shares with other prompts exactly what the
// trace says they share.
//
// A trace holds no text. Its rows name the blocks of their prompts by id, and
// an id stands for a whole prefix: rows that begin with the same ids began
// with the same tokens. A prefix cache must find this sharing in the replay,
// all of it and no more. So the content of a block is a pure function of a
// seed, a salt and its id. No table of blocks is kept, every machine makes
// equal prompts in whatever order it makes them, and the first n tokens of a
// block are the same whether a row ends after n tokens or goes on.
//
// # What a prompt consists of
//
// Block i of a row covers the tokens [i*BlockSize, (i+1)*BlockSize) of its
// prompt. Ids beyond the row's input length are ignored. Where the ids end
// before the prompt does (a row without ids, or one whose last, partial block
// has none) the rest is the row's own: tokens that no other row has. So no
// prompt is cut short, and none shares by accident.
//
// # Three forms
//
// Token ids are exact by construction, for endpoints that accept them. For the
// others there are words: each of the 1024 words of the list is one token in
// the usual vocabularies, both at the start of a text and after a space, and
// tokenizers split before a space, so that n words are n tokens. The form was
// counted with Llama 2 and 3, Qwen 2.5 and 3, DeepSeek-V3, Mistral Nemo,
// Gemma 3, gpt-oss, cl100k and o200k. Another model may count differently:
// check against what the server reports, or give the model's own tokenizer, for
// which [NewWords] replaces the words that it cuts. Random ids decoded to text
// would not do: they do not encode to the same number of tokens again.
//
// The third form is text that means something: passages of a [Corpus], which is
// made of a dataset and the model's tokenizer. Text can be cut to exact lengths
// where it may be put together from pieces that were encoded apart. Tokenizers
// split before the space between two words, so words are such pieces; a prompt
// that ends within a word needs, too, that the beginning of the word is encoded
// to the tokens it has in the whole. Words of which that is not true are left
// out of the corpus, two in a hundred of English prose. What is left may be cut
// behind any token, and any block may follow any other.
//
// # The format
//
// Runs are comparable over time only while the same row keeps saying the same
// thing, so this is a format, and stable. All numbers are unsigned, 64 bits
// wide and wrap around; hashes take them as little-endian bytes.
//
//	base(domain, name) = XXH64(domain, seed, len(salt), salt, name), XXH64 seeded with 0
//	key(domain, name, number) = mix(base(domain, name) ^ number)
//	draw(key, j) = mix(key + (j+1)*0x9e3779b97f4a7c15)
//
// where domain is one byte, len(salt) counts bytes, and mix is the finalizer
// of splitmix64, which makes draw(key, j) the j-th output of splitmix64 seeded
// with key. There are three domains, so that what is made for one can be met
// in another only by a 64-bit collision:
//
//	'b'  blocks:  number is the block's id, name is empty, j counts from the block's start
//	'r'  rows:    number is the row's index, name is empty, j counts from the prompt's start
//	'f'  filler:  name is the filler's name, number is 0, j counts from the text's start
//
// A passage of a corpus of N tokens has the word numbers draw>>54 of the first
// four draws, each behind a space, and then the tokens of the corpus from the
// first one on that is not before draw*N>>64, by the fifth draw, and begins a
// word; behind the last token comes the first. In the domain of rows j counts,
// for passages, from where the ids end. A prompt leaves out its first space.
//
// A draw is the token id Low + (draw>>32)*(High-Low)>>32, and the word number
// draw>>54 of words.txt, counted from 0.
package prompt
