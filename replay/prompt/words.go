package prompt

import (
	_ "embed"
	"encoding/binary"
	"slices"
	"strings"
)

// The list is part of the format: its words are common English ones of 2 to 5
// letters, sorted, one a line. Each is one token in the vocabularies that the
// package comment names, with and without a space before it.
//
//go:embed words.txt
var wordList string

const (
	wordBits  = 10
	wordCount = 1 << wordBits
)

// wordTable holds each word as one number: its letters and a space in the order
// of the text from the lowest byte up, and the length of this in the highest.
// The whole table fits the first-level cache, and a word is one store.
type wordTable [wordCount]uint64

// longestWord is what a number has room for.
const longestWord = 6

var words = packWords(strings.Fields(wordList))

func packWords(list []string) *wordTable {
	packed := new(wordTable)
	for i, word := range list {
		var text [8]byte
		n := copy(text[:longestWord], word)
		text[n] = ' '
		text[7] = byte(n + 1)
		packed[i] = binary.LittleEndian.Uint64(text[:])
	}
	return packed
}

// appendWord appends word number i, without the space behind it.
func (t *wordTable) appendWord(dst []byte, i uint64) []byte {
	word := t[i]
	dst = binary.LittleEndian.AppendUint64(dst, word)
	return dst[:len(dst)-8+int(word>>56)-1]
}

// appendWords appends the words of a run, each with a space behind it.
func (t *wordTable) appendWords(dst []byte, r run) []byte {
	dst = slices.Grow(dst, 8*r.n)
	text, at := dst[len(dst):cap(dst)], 0
	for j := range uint64(r.n) {
		word := t[draw(r.key, r.from+j)>>(64-wordBits)]
		binary.LittleEndian.PutUint64(text[at:], word)
		at += int(word >> 56)
	}
	return dst[:len(dst)+at]
}
