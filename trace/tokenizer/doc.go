// Package tokenizer encodes text into a model's tokens in pure Go. It reads the
// tokenizer.json of Hugging Face's tokenizers.
//
//	t, err := tokenizer.Open("tokenizer.json")
//	if err != nil { ... }
//	ids, err := t.Append(nil, "Hello, world")
//
// The result is that of the reference implementation with add_special_tokens off.
//
// # Supported files
//
// Byte-level BPE, as in Llama 3 and 4, Qwen 2.5 and 3, DeepSeek-V3, gpt-oss, Mistral, GPT-2
// and most later models. Encoding has four steps:
//
//	added tokens   texts that are one token each, such as <|im_end|>, are cut out
//	normalizer     none, or NFC
//	pre-tokenizer  the rest is split into words: Split, Digits, ByteLevel
//	model          the bytes of each word are merged, pair by pair
//
// [Open] rejects a file with any other step, and the error names it: approximate
// counts would be worse than none. SentencePiece vocabularies (Metaspace,
// byte_fallback, Unigram), as in Llama 2 and Gemma, are rejected.
//
// There is one known difference from the reference: with NFC, a run of more than
// 30 combining marks gets the joiners of the Stream-Safe Text Format.
//
// # Speed
//
// The patterns of Llama 3 and Qwen are split by a scanner, at about 50 MB/s for English.
// All others are split by a backtracking engine, at about 5 MB/s.
package tokenizer
