package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds of a vocabulary. The largest in use have about 260,000 tokens.
const (
	maxID    = 1 << 22
	maxToken = 4 << 10 // bytes
)

// modelFile is the model of a tokenizer.json.
type modelFile struct {
	Type         string            `json:"type"`
	Dropout      raw               `json:"dropout"`
	Unknown      raw               `json:"unk_token"`
	Prefix       *string           `json:"continuing_subword_prefix"`
	Suffix       *string           `json:"end_of_word_suffix"`
	FuseUnknown  bool              `json:"fuse_unk"` // irrelevant: every byte is a token
	ByteFallback bool              `json:"byte_fallback"`
	IgnoreMerges bool              `json:"ignore_merges"`
	Vocab        map[string]uint32 `json:"vocab"`
	Merges       raw               `json:"merges"`
}

func (f *file) readModel(t *Tokenizer) error {
	if absent(f.Model) {
		return errors.New("no model: not a tokenizer.json")
	}
	kind, err := kindOf(f.Model)
	switch {
	case err != nil:
		return err
	case kind != "" && kind != "BPE":
		return fmt.Errorf("model %q is not supported: only byte-level BPE is", kind)
	}
	var m modelFile
	if err := strict.Unmarshal(f.Model, &m); err != nil {
		return unread("model", err)
	}
	set := func(s *string) bool { return s != nil && *s != "" }
	switch {
	case m.ByteFallback:
		return errors.New("model with byte_fallback is not supported: it is SentencePiece, not byte-level BPE")
	case !absent(m.Dropout) && string(m.Dropout) != "0.0" && string(m.Dropout) != "0":
		return errors.New("model with dropout is not supported: its encoding is random")
	case set(m.Prefix) || set(m.Suffix):
		return errors.New("model with continuing_subword_prefix or end_of_word_suffix is not supported")
	}
	if err := t.addVocabulary(m.Vocab); err != nil {
		return err
	}
	if err := t.model.addMerges(m); err != nil {
		return err
	}
	t.model.addWhole(t.texts, m.IgnoreMerges)
	return nil
}

func (t *Tokenizer) addVocabulary(vocab map[string]uint32) error {
	byID := make(map[uint32]string, len(vocab))
	last := uint32(0)
	for token, id := range vocab {
		switch other, taken := byID[id]; {
		case id > maxID || len(token) > maxToken:
			return fmt.Errorf("a token of the vocabulary has id %d and %d bytes: the limits are %d and %d", id, len(token), maxID, maxToken)
		case taken:
			return fmt.Errorf("two tokens have id %d: %.40q and %.40q", id, min(token, other), max(token, other))
		}
		byID[id] = token
		last = max(last, id)
	}
	t.texts = make([]string, int(last)+1)
	var has [256]bool
	for id, token := range byID {
		text, ok := bytesOf(token)
		if !ok {
			continue
		}
		t.texts[id] = text
		if len(text) == 1 {
			t.model.bytes[text[0]] = id
			has[text[0]] = true
		}
	}
	for b, ok := range has {
		if !ok {
			return fmt.Errorf("the vocabulary has no token for byte 0x%02x: it is not byte-level BPE", b)
		}
	}
	return nil
}

func (m *bpe) addMerges(from modelFile) error {
	pairs, err := mergePairs(from.Merges)
	if err != nil {
		return err
	}
	m.merges = make(map[pair]merged, len(pairs))
	for rank, p := range pairs {
		left, hasLeft := from.Vocab[p[0]]
		right, hasRight := from.Vocab[p[1]]
		both, hasBoth := from.Vocab[p[0]+p[1]]
		if !hasLeft || !hasRight || !hasBoth {
			return fmt.Errorf("merge %d, of %.40q and %.40q: the vocabulary lacks one of the tokens", rank, p[0], p[1])
		}
		m.merges[pair{left, right}] = merged{uint32(rank), both}
	}
	return nil
}

// mergePairs parses merges in either version of the format: "a b" or ["a", "b"].
func mergePairs(merges raw) ([][2]string, error) {
	var lists [][]string
	if strict.Unmarshal(merges, &lists) != nil {
		var lines []string
		if err := strict.Unmarshal(merges, &lines); err != nil {
			return nil, unread("the list of merges", err)
		}
		lists = make([][]string, len(lines))
		for i, line := range lines {
			lists[i] = strings.Split(line, " ")
		}
	}
	pairs := make([][2]string, len(lists))
	for i, list := range lists {
		if len(list) != 2 {
			return nil, fmt.Errorf("merge %d does not have two tokens", i)
		}
		pairs[i] = [2]string(list)
	}
	return pairs, nil
}

// addWhole finds the words that are one token: those that merge to one, nearly all
// of the vocabulary, or all of it if the model ignores merges.
func (m *bpe) addWhole(texts []string, all bool) {
	m.whole = make(map[string]uint32, len(texts))
	var e encoding
	for id, text := range texts {
		if text == "" {
			continue
		}
		e.tokens = e.tokens[:0]
		if !all {
			e.merge(m, text)
		}
		if all || len(e.tokens) == 1 && e.tokens[0] == uint32(id) {
			m.whole[text] = uint32(id)
		}
	}
}

// The tokens of a vocabulary are bytes, written in JSON as visible characters: a
// visible byte is itself, and the others are U+0100 and up, in order.

// byteOf maps a character to its byte, or to -1.
var byteOf = func() (of [256 + 68]int16) {
	for i := range of {
		of[i] = -1
	}
	next := 256
	for b := range 256 {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b {
			of[b] = int16(b)
			continue
		}
		of[next] = int16(b)
		next++
	}
	return of
}()

// bytesOf returns the bytes of a token of a vocabulary. ok is false if the token
// has other characters; no text is encoded to it.
func bytesOf(token string) (text string, ok bool) {
	out := make([]byte, 0, len(token))
	for _, c := range token {
		if int(c) >= len(byteOf) || byteOf[c] < 0 {
			return "", false
		}
		out = append(out, byte(byteOf[c]))
	}
	return string(out), len(out) > 0
}
