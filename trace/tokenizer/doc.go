// Package tokenizer turns text into the tokens of a model, from the model's own
// tokenizer.json in the format of Hugging Face's tokenizers, without any other
// program.
//
// [Open] reads a file, [Tokenizer.Append] encodes. What it says is what the
// reference implementation says with add_special_tokens off: no token that the
// text does not name is put before or behind it.
//
// # What is read
//
// Byte-level BPE, which is what Llama 3, Qwen 2.5 and 3, DeepSeek-V3, GPT-2
// and most models after them use. Encoding has four steps:
//
//	added tokens   texts that are one token each, such as <|im_end|>, are cut out
//	normalizer     none, or NFC
//	pre-tokenizer  the rest is split into words: Split, Digits, ByteLevel
//	model          the bytes of each word are merged, pair by pair
//
// A file that asks for anything else is refused, and the error names it: a
// count that is nearly right is worse than none. SentencePiece vocabularies
// (Metaspace, byte_fallback, Unigram), as of Llama 2 and Gemma, are refused.
//
// One difference to the reference is known: with NFC, a run of more than 30
// combining marks gets the joiners of the Stream-Safe Text Format.
//
// # Speed
//
// The patterns of the well-known models are split by scanners written by hand,
// any other by a backtracking engine that is ten times slower. Both say the
// same; see [Tokenizer.SplitsAtSpaces] for what is known of the first only.
package tokenizer
