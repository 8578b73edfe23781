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

// words holds each word as one number: its letters and a space in the order
// of the text from the lowest byte up, and the length of this in the highest.
// The whole list fits the first-level cache, and a word is one store.
var words = packWords(wordList)

func packWords(list string) *[wordCount]uint64 {
	packed := new([wordCount]uint64)
	for i := range packed {
		word, rest, _ := strings.Cut(list, "\n")
		list = rest
		var text [8]byte
		n := copy(text[:6], word)
		text[n] = ' '
		text[7] = byte(n + 1)
		packed[i] = binary.LittleEndian.Uint64(text[:])
	}
	return packed
}

// appendWords appends the words of a run, each with a space behind it.
func appendWords(dst []byte, r run) []byte {
	dst = slices.Grow(dst, 8*r.n)
	text, at := dst[len(dst):cap(dst)], 0
	for j := range uint64(r.n) {
		word := words[draw(r.key, r.from+j)>>(64-wordBits)]
		binary.LittleEndian.PutUint64(text[at:], word)
		at += int(word >> 56)
	}
	return dst[:len(dst)+at]
}
