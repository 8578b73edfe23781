package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
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
	t.model.addChars(t.texts)
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
	m.merges = newTable[uint64, merged](len(pairs))
	for rank, p := range pairs {
		left, hasLeft := from.Vocab[p[0]]
		right, hasRight := from.Vocab[p[1]]
		both, hasBoth := from.Vocab[p[0]+p[1]]
		if !hasLeft || !hasRight || !hasBoth {
			return fmt.Errorf("merge %d, of %.40q and %.40q: the vocabulary lacks one of the tokens", rank, p[0], p[1])
		}
		m.setMerge(left, right, merged{uint32(rank), both})
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
	m.whole = newTable[word, uint32](len(texts))
	m.long = map[string]uint32{}
	var merged []uint32
	for id, text := range texts {
		if text == "" {
			continue
		}
		if !all {
			if merged = m.merge(merged[:0], text); len(merged) != 1 || merged[0] != uint32(id) {
				continue
			}
		}
		if len(text) > maxWord {
			m.long[text] = uint32(id)
			continue
		}
		w := loadWord(text).first(len(text))
		*m.whole.at(w.hash(), w) = slot[word, uint32]{w, uint32(id)}
	}
}

// addChars adds the characters that are tokens. Merging may begin with one if the merges
// within it have lower ranks than all merges with a neighbour: of the character, and of
// the tokens that its first and last bytes are before.
func (m *bpe) addChars(texts []string) {
	// The lowest rank of a token with a neighbour before or after it, which is ASCII or not.
	var before, after [2][]uint32
	for i := range before {
		before[i], after[i] = slices.Repeat([]uint32{noRank}, len(texts)), slices.Repeat([]uint32{noRank}, len(texts))
	}
	for _, s := range m.merges.slots {
		left, right := uint32(s.key>>32)&^(1<<31), uint32(s.key)
		if s.key == 0 || texts[left] == "" || texts[right] == "" {
			continue
		}
		l, r := texts[left], texts[right]
		lowest := &before[wide(l[len(l)-1])][right]
		*lowest = min(*lowest, s.value.rank)
		if utf8.RuneStart(r[0]) {
			lowest = &after[wide(r[0])][left]
			*lowest = min(*lowest, s.value.rank)
		}
	}
	m.chars = slices.Repeat([]char{noChar}, 1<<16)
	for id, text := range texts {
		r, size := utf8.DecodeRuneInString(text)
		if size < 2 || size < len(text) || int(r) >= len(m.chars) {
			continue
		}
		steps, highest := m.steps(text)
		if last := steps[len(steps)-1]; len(last) > 1 || last[0] != uint32(id) {
			continue
		}
		m.chars[r] = char(id) << charFlags
		for _, symbols := range steps {
			for i := range before {
				if before[i][symbols[0]] <= highest {
					m.chars[r] |= notAfter << i
				}
				if after[i][symbols[len(symbols)-1]] <= highest {
					m.chars[r] |= notBefore << i
				}
			}
		}
	}
}

// steps returns the symbols of a word before and after each merge, and the highest rank of
// the merges.
func (m *bpe) steps(word string) (steps [][]uint32, highest uint32) {
	symbols := make([]uint32, len(word))
	for i := range symbols {
		symbols[i] = m.bytes[word[i]]
	}
	for {
		steps = append(steps, symbols)
		best, at := merged{rank: noRank}, 0
		for i := range symbols {
			if to := m.mergeAt(symbols, i); to.rank < best.rank {
				best, at = to, i
			}
		}
		if best.rank == noRank {
			return steps, highest
		}
		highest = max(highest, best.rank)
		symbols = slices.Replace(slices.Clone(symbols), at, at+2, best.id)
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
