package prompt

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
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
	// WordCount is the number of words in a list.
	WordCount = 1 << wordBits
	wordBits  = 10
	maxWord   = 6 // letters
)

// wordTable holds each word packed into a number: its letters and a space from the
// lowest byte up, and their count in the highest byte. The table fits the L1
// cache, and writing a word takes one store.
type wordTable [WordCount]uint64

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

// Encoder is the part of a model's tokenizer that prompts need.
type Encoder interface {
	// Append appends the tokens of text to dst.
	Append(dst []uint32, text string) ([]uint32, error)
	// Text returns the text of a token.
	Text(id uint32) (text string, ok bool)
	// Texts yields the texts of the vocabulary, always in the same order.
	Texts() iter.Seq[string]
	// SplitsAtSpaces reports whether words with a leading space are encoded
	// independently of each other.
	SplitsAtSpaces() bool
	// SHA256 identifies the tokenizer.
	SHA256() string
}

// Words is a list of [WordCount] words of one token each, some of them repeated if the
// vocabulary has fewer. A nil *Words is the list of this package, which suits common
// vocabularies.
type Words struct {
	Replaced  int    // words of this package's list that are not one token
	Distinct  int    // different words: WordCount, or as many as the vocabulary has
	Tokenizer string // SHA256 of the tokenizer that they were chosen for

	packed *wordTable
}

var usualWords = packWords(strings.Fields(wordList))

func (w *Words) table() *wordTable {
	if w == nil {
		return usualWords
	}
	return w.packed
}

// plainWord matches words like those of the list.
var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ [a-z]{2,6}$`) })

// minWords is the number of different words below which prompts that share nothing
// could begin alike.
const minWords = 64

// NewWords chooses words for a vocabulary: the list of this package, with words
// that are not one token replaced by others, in alphabetical order. If there are
// too few, they are repeated in turn.
func NewWords(enc Encoder) (*Words, error) {
	chosen, distinct := strings.Fields(wordList), WordCount
	var wrong []int
	for i, word := range chosen {
		switch one, err := isOneToken(enc, word); {
		case err != nil:
			return nil, err
		case !one:
			wrong = append(wrong, i)
		}
	}
	if len(wrong) > 0 {
		others, err := otherWords(enc, chosen)
		if err != nil {
			return nil, err
		}
		if distinct = min(WordCount, WordCount-len(wrong)+len(others)); distinct < minWords {
			return nil, fmt.Errorf("the vocabulary has only %d suitable words of one token; %d are needed", distinct, minWords)
		}
		if len(others) < len(wrong) {
			for i, word := range chosen {
				if !slices.Contains(wrong, i) {
					others = append(others, word)
				}
			}
		}
		for n, i := range wrong {
			chosen[i] = others[n%len(others)]
		}
	}
	ids, err := enc.Append(nil, strings.Join(chosen, " "))
	switch {
	case err != nil:
		return nil, err
	case len(ids) != WordCount:
		return nil, errors.New("the tokenizer does not split text at spaces, so no words are one token each")
	}
	return &Words{len(wrong), distinct, enc.SHA256(), packWords(chosen)}, nil
}

// otherWords returns the single-token words that are not in the list.
func otherWords(enc Encoder, list []string) ([]string, error) {
	var others []string
	for text := range enc.Texts() {
		if !plainWord().MatchString(text) || slices.Contains(list, text[1:]) {
			continue
		}
		switch one, err := isOneToken(enc, text[1:]); {
		case err != nil:
			return nil, err
		case one:
			others = append(others, text[1:])
		}
	}
	slices.Sort(others)
	return slices.Compact(others), nil
}

// isOneToken reports whether a word is one token at the start of a text and after
// a space.
func isOneToken(enc Encoder, word string) (bool, error) {
	ids, err := enc.Append(nil, word)
	if err != nil || len(ids) != 1 {
		return false, err
	}
	ids, err = enc.Append(ids[:0], " "+word)
	return len(ids) == 1, err
}
