package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// Patterns of well-known models.
const (
	gpt2Pattern     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Pattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern    = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	deepseekPattern = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	eastAsian       = `[一-龥぀-ゟ゠-ヿ]+`

	// o200kPattern is that of gpt-oss, Llama 4 and MiniMax, and tekkenPattern of Mistral.
	o200kPattern  = casedWord + `+` + contractions + `?|` + capitals + `*` + contractions + `?|\p{N}{1,3}` + afterWords
	tekkenPattern = casedWord + `+|` + capitals + `*|\p{N}` + afterWords
	casedWord     = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	capitals      = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	contractions  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	afterWords    = `| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	numbers       = `\p{N}+`
	threeNumbers  = `\p{N}{1,3}`
	oneNumber     = `\p{N}`
)

// splittingAtSpaces lists patterns that do not depend on the text before a match, and do
// not match across the start of a single space.
var splittingAtSpaces = []string{
	gpt2Pattern, llama3Pattern, qwen2Pattern, deepseekPattern, eastAsian, o200kPattern, tekkenPattern, numbers, threeNumbers, oneNumber,
}

// splitter splits a text into words and calls give for each until that fails.
type splitter interface {
	split(text string, give func(word string) error) error
	// atSpaces reports whether the texts before and from a single space on may be split
	// separately.
	atSpaces() bool
}

// newSplitter returns the splitter of a pattern. removed: text between matches is dropped,
// otherwise it is words of its own.
func newSplitter(pattern string, removed bool) (splitter, error) {
	switch {
	case removed:
	case pattern == llama3Pattern:
		return scanner{digits: 3}, nil
	case pattern == qwen2Pattern:
		return scanner{digits: 1}, nil
	}
	return newBacktracking(pattern, removed)
}

// scanner splits by llama3Pattern or qwen2Pattern, which match any text.
type scanner struct{ digits int }

func (s scanner) atSpaces() bool { return true }

func (s scanner) split(text string, give func(string) error) error {
	for len(text) > 0 {
		n := s.match(text)
		if err := give(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// match returns the length of the first word of a text.
func (s scanner) match(text string) int {
	if n := contraction(text); n > 0 {
		return n
	}
	c, size := classAt(text)
	switch {
	case c == letter:
		return size + runOf(text[size:], letter)
	case c == number:
		return s.matchNumbers(text)
	case c != newline:
		if n := runOf(text[size:], letter); n > 0 {
			return size + n
		}
	}
	blank := 0
	if text[0] == ' ' {
		blank = 1
	}
	if n := runOf(text[blank:], other); n > 0 {
		n += blank
		return n + runOf(text[n:], newline)
	}
	return matchSpace(text)
}

// matchNumbers matches as many characters of \p{N} as the pattern takes.
func (s scanner) matchNumbers(text string) (n int) {
	for range s.digits {
		c, size := classAt(text[n:])
		if c != number {
			break
		}
		n += size
	}
	return n
}

// class is a character class of the patterns. A set of classes is their sum.
type class uint8

const (
	letter  class = 1 << iota // \p{L}
	number                    // \p{N}
	space                     // \s except newlines
	newline                   // [\r\n]
	other                     // [^\s\p{L}\p{N}]
)

// asciiClasses are the classes of the characters below U+0080.
var asciiClasses = func() (classes [utf8.RuneSelf]class) {
	for r := range classes {
		classes[r] = classOf(rune(r))
	}
	return classes
}()

// planeClasses returns the classes of the characters up to U+FFFF. They take some
// milliseconds, which commands without a tokenizer do not pay.
var planeClasses = sync.OnceValue(func() *[1 << 16]class {
	var classes [1 << 16]class
	for r := range classes {
		classes[r] = classOf(rune(r))
	}
	return &classes
})

// classOf returns the class of a character.
func classOf(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.Is(unicode.White_Space, r):
		return space
	}
	return other
}

// classAt returns the class and size of the first rune of s, or 0, 0.
func classAt(s string) (class, int) {
	if len(s) > 0 && s[0] < utf8.RuneSelf {
		return asciiClasses[s[0]], 1
	}
	switch r, size := utf8.DecodeRuneInString(s); {
	case size == 0:
		return 0, 0
	case r <= 0xFFFF:
		return planeClasses()[r], size
	default:
		return classOf(r), size
	}
}

// runOf returns the length of the run of runes of some classes at the start of s.
func runOf(s string, of class) (n int) {
	for n < len(s) {
		c, size := classAt(s[n:])
		if c&of == 0 {
			break
		}
		n += size
	}
	return n
}

// matchSpace matches \s*[\r\n]+|\s+(?!\S)|\s+, which leaves the last space to the next
// word.
func matchSpace(s string) int {
	n, last, ended := 0, 0, 0 // white space, its last rune, the end of its last newline
	c, size := classAt(s)
	for c&(space|newline) != 0 {
		n, last = n+size, size
		if c == newline {
			ended = n
		}
		c, size = classAt(s[n:])
	}
	switch {
	case ended > 0:
		return ended
	case n == len(s) || n == last:
		return n
	}
	return n - last
}

// contraction matches (?i:'s|'t|'re|'ve|'m|'ll|'d).
func contraction(s string) int {
	if s[0] != '\'' {
		return 0
	}
	for _, end := range [...]string{"s", "t", "re", "ve", "m", "ll", "d", longS} {
		if rest := s[1:]; len(rest) >= len(end) && strings.EqualFold(rest[:len(end)], end) {
			return 1 + len(end)
		}
	}
	return 0
}

// longS folds to s. The reference matches it in case-insensitive patterns.
const longS = "\u017f"

// backtracking is a splitter for any pattern.
type backtracking struct {
	text    string // of the pattern
	pattern *regexp2.Regexp
	removed bool
}

const (
	maxPattern = 4 << 10 // bytes
	// maxMatching is far longer than one match of a sane pattern takes.
	maxMatching = 5 * time.Second
)

func newBacktracking(pattern string, removed bool) (*backtracking, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("a pattern has %d bytes: the limit is %d", len(pattern), maxPattern)
	}
	compiled, err := regexp2.Compile(strings.ReplaceAll(pattern, "(?i:'s|", "(?i:'s|'"+longS+"|"), regexp2.Unicode)
	if err != nil {
		return nil, fmt.Errorf("pattern %.80q is not supported: %w", pattern, err)
	}
	compiled.MatchTimeout = maxMatching
	return &backtracking{pattern, compiled, removed}, nil
}

func (s *backtracking) atSpaces() bool {
	return !s.removed && slices.Contains(splittingAtSpaces, s.text)
}

func (s *backtracking) split(text string, give func(string) error) error {
	runes := []rune(text)
	done, at := 0, 0 // bytes and runes so far
	// bytes returns the length of runes in UTF-8.
	bytes := func(runes []rune) (n int) {
		for _, r := range runes {
			n += utf8.RuneLen(r)
		}
		return n
	}
	m, err := s.pattern.FindRunesMatch(runes)
	for ; m != nil && err == nil; m, err = s.pattern.FindNextMatch(m) {
		if m.Length == 0 {
			continue
		}
		start := done + bytes(runes[at:m.Index])
		end := start + bytes(runes[m.Index:m.Index+m.Length])
		if start > done && !s.removed {
			if err := give(text[done:start]); err != nil {
				return err
			}
		}
		if err := give(text[start:end]); err != nil {
			return err
		}
		done, at = end, m.Index+m.Length
	}
	if err != nil {
		return fmt.Errorf("splitting text by %.80q: %w", s.text, err)
	}
	if done < len(text) && !s.removed {
		return give(text[done:])
	}
	return nil
}
