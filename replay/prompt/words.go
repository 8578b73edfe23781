package prompt

import (
	_ "embed"
	"encoding/binary"
	"slices"
)

// AppendWords appends the prompt as p.Len() words of a-z, separated by spaces. It
// needs no JSON escaping. It neither starts nor ends with a space: chat templates
// strip the ends of a message, and some tokenizers add a leading space.
func (p Prompt) AppendWords(dst []byte) []byte {
	if p.length == 0 {
		return dst
	}
	for r := range p.runs() {
		dst = p.words.appendRun(dst, r)
	}
	return dst[:len(dst)-1] // drop the last space
}

// wordList is part of the format: common English words of 2 to 5 letters, sorted,
// one per line, each one token in the vocabularies listed in the package comment.
//
//go:embed words.txt
var wordList string

const (
	wordBits  = 10
	wordCount = 1 << wordBits
	maxWord   = 6 // letters
)

// wordTable holds each word packed into a number: its letters and a space from the
// lowest byte up, and their count in the highest byte. The table fits the L1
// cache, and writing a word takes one store.
type wordTable [wordCount]uint64

func packWords(list []string) *wordTable {
	packed := new(wordTable)
	for i, word := range list {
		var text [8]byte
		n := copy(text[:maxWord], word)
		text[n] = ' '
		text[7] = byte(n + 1)
		packed[i] = binary.LittleEndian.Uint64(text[:])
	}
	return packed
}

// appendWord appends a word without the trailing space.
func (t *wordTable) appendWord(dst []byte, number uint64) []byte {
	word := t[number]
	dst = binary.LittleEndian.AppendUint64(dst, word)
	return dst[:len(dst)-8+int(word>>56)-1]
}

// appendRun appends the words of a run, each with a trailing space.
func (t *wordTable) appendRun(dst []byte, r run) []byte {
	dst = slices.Grow(dst, 8*r.n)
	text, at := dst[len(dst):cap(dst)], 0
	for j := range uint64(r.n) {
		word := t[draw(r.key, r.from+j)>>(64-wordBits)]
		binary.LittleEndian.PutUint64(text[at:], word)
		at += int(word >> 56)
	}
	return dst[:len(dst)+at]
}
