package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// splitter splits a text into words and calls give for each until that fails.
type splitter interface {
	split(text string, give func(word string) error) error
}

// scanned is a splitter with a hand-written match, which returns the length of the
// match at the start of text, or 0.
type scanned struct {
	match   func(text string) int
	begins  *[256]bool // first bytes of matches; nil for any
	removed bool       // text between matches is dropped
}

// next returns the length of the first word of a text: a match, or the text before
// the first match.
func (s scanned) next(text string) (n int, matched bool) {
	for n < len(text) {
		if s.begins != nil && !s.begins[text[n]] {
			n++
			continue
		}
		if match := s.match(text[n:]); match > 0 {
			if n == 0 {
				return match, true
			}
			return n, false
		}
		_, size := utf8.DecodeRuneInString(text[n:])
		n += size
	}
	return n, false
}

func (s scanned) split(text string, give func(string) error) error {
	for len(text) > 0 {
		n, matched := s.next(text)
		if matched || !s.removed {
			if err := give(text[:n]); err != nil {
				return err
			}
		}
		text = text[n:]
	}
	return nil
}

// backtracking is a splitter for any pattern.
type backtracking struct {
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
	compiled, err := regexp2.Compile(pattern, regexp2.Unicode)
	if err != nil {
		return nil, fmt.Errorf("pattern %.80q is not supported: %w", pattern, err)
	}
	compiled.MatchTimeout = maxMatching
	return &backtracking{compiled, removed}, nil
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
		return fmt.Errorf("splitting text by %.80q: %w", s.pattern.String(), err)
	}
	if done < len(text) && !s.removed {
		return give(text[done:])
	}
	return nil
}

// Patterns of well-known models.
const (
	gpt2Pattern     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Pattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern    = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	deepseekPattern = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	eastAsian       = `[一-龥぀-ゟ゠-ヿ]+`
)

// scanners match like their patterns. None depends on the text before a match, and
// none matches across the start of a single space.
var scanners = map[string]scanned{
	gpt2Pattern:     {match: matchGPT2},
	llama3Pattern:   {match: func(s string) int { return matchLlama3(s, 3) }},
	qwen2Pattern:    {match: func(s string) int { return matchLlama3(s, 1) }},
	deepseekPattern: {match: matchDeepSeek},
	eastAsian:       {match: matchEastAsian, begins: bytesOfRunes('\u3040', '\u9fa5')},
	`\p{N}{1,3}`:    {match: func(s string) int { return runOf(s, number, 3) }, begins: bytesOfNumbers},
	`\p{N}+`:        {match: func(s string) int { return runOf(s, number, len(s)) }, begins: bytesOfNumbers},
	`\p{N}`:         {match: func(s string) int { return runOf(s, number, 1) }, begins: bytesOfNumbers},
}

// bytesOfNumbers holds the digits and the first bytes of non-ASCII characters.
var bytesOfNumbers = func() *[256]bool {
	begins := bytesOfRunes(utf8.RuneSelf, unicode.MaxRune)
	for b := '0'; b <= '9'; b++ {
		begins[b] = true
	}
	return begins
}()

// bytesOfRunes returns the set of first bytes of a range of characters.
func bytesOfRunes(first, last rune) *[256]bool {
	begins := new([256]bool)
	for b := int(utf8.AppendRune(nil, first)[0]); b <= int(utf8.AppendRune(nil, last)[0]); b++ {
		begins[b] = true
	}
	return begins
}

// class is a character class of the patterns; 0 for control characters and others.
type class uint8

const (
	letter      class = 1 << iota // \p{L}
	mark                          // \p{M}
	number                        // \p{N}
	space                         // \s
	newline                       // [\r\n]
	punctuation                   // \p{P}
	symbol                        // \p{S}
)

var asciiClass = func() (classes [utf8.RuneSelf]class) {
	for r := range classes {
		classes[r] = unicodeClass(rune(r))
	}
	return classes
}()

func unicodeClass(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case r == '\r' || r == '\n':
		return space | newline
	case unicode.IsSpace(r):
		return space
	case unicode.IsMark(r):
		return mark
	case unicode.IsNumber(r):
		return number
	case unicode.IsPunct(r):
		return punctuation
	case unicode.IsSymbol(r):
		return symbol
	}
	return 0
}

// classAt returns the class and size of the first rune of s, or 0, 0.
func classAt(s string) (class, int) {
	if len(s) == 0 {
		return 0, 0
	}
	if c := s[0]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, size := utf8.DecodeRuneInString(s)
	return unicodeClass(r), size
}

// runOf returns the length of the run of up to most runes of some classes at the
// start of s.
func runOf(s string, of class, most int) (n int) {
	for ; most > 0; most-- {
		c, size := classAt(s[n:])
		if c&of == 0 {
			break
		}
		n += size
	}
	return n
}

// runOfOther matches [^\s\p{L}\p{N}]*.
func runOfOther(s string) (n int) {
	for n < len(s) {
		c, size := classAt(s[n:])
		if c&(space|letter|number) != 0 {
			break
		}
		n += size
	}
	return n
}

func matchLlama3(s string, digits int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	c, size := classAt(s)
	switch {
	case c&letter != 0:
		return size + runOf(s[size:], letter, len(s))
	case c&number != 0:
		return runOf(s, number, digits)
	case c&newline == 0:
		if n := runOf(s[size:], letter, len(s)); n > 0 {
			return size + n
		}
	}
	blank := leadingSpace(s)
	if n := runOfOther(s[blank:]); n > 0 {
		n += blank
		return n + runOf(s[n:], newline, len(s))
	}
	return matchSpace(s, true)
}

func matchGPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	blank := leadingSpace(s)
	for _, of := range [...]class{letter, number} {
		if n := runOf(s[blank:], of, len(s)); n > 0 {
			return blank + n
		}
	}
	if n := runOfOther(s[blank:]); n > 0 {
		return blank + n
	}
	return matchSpace(s, false)
}

func matchDeepSeek(s string) int {
	if '!' <= s[0] && s[0] <= '~' && asciiClass[s[0]]&(punctuation|symbol) != 0 {
		n := 1
		for n < len(s) && 'a' <= s[n]|0x20 && s[n]|0x20 <= 'z' {
			n++
		}
		if n > 1 {
			return n
		}
	}
	const word = letter | mark
	c, size := classAt(s)
	switch {
	case c&word != 0:
		return size + runOf(s[size:], word, len(s))
	case c&(newline|punctuation|symbol) == 0:
		if n := runOf(s[size:], word, len(s)); n > 0 {
			return size + n
		}
	}
	blank := leadingSpace(s)
	if n := runOf(s[blank:], punctuation|symbol, len(s)); n > 0 {
		n += blank
		return n + runOf(s[n:], newline, len(s))
	}
	return matchSpace(s, true)
}

func matchEastAsian(s string) (n int) {
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if !('\u4e00' <= r && r <= '\u9fa5' || '\u3040' <= r && r <= '\u30ff') {
			break
		}
		n += size
	}
	return n
}

func leadingSpace(s string) int {
	if s[0] == ' ' {
		return 1
	}
	return 0
}

// matchSpace matches \s+(?!\S)|\s+, which leaves the last space to the next word,
// and with newlines, \s*[\r\n]+ before them.
func matchSpace(s string, newlines bool) int {
	n, last, ended := 0, 0, 0 // white space, its last rune, the end of its last newline
	for {
		c, size := classAt(s[n:])
		if c&space == 0 {
			break
		}
		n, last = n+size, size
		if c&newline != 0 {
			ended = n
		}
	}
	switch {
	case newlines && ended > 0:
		return ended
	case n == len(s) || n == last:
		return n
	}
	return n - last
}

// contraction matches 's|'t|'re|'ve|'m|'ll|'d.
func contraction(s string, anyCase bool) int {
	if s[0] != '\'' || len(s) < 2 {
		return 0
	}
	for _, end := range [...]string{"s", "t", "re", "ve", "m", "ll", "d"} {
		got := s[1:min(1+len(end), len(s))]
		if got == end || anyCase && strings.EqualFold(got, end) {
			return 1 + len(end)
		}
	}
	// The long s folds to s.
	if anyCase && strings.HasPrefix(s[1:], "\u017f") {
		return 1 + len("\u017f")
	}
	return 0
}
