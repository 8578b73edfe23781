package tokenizer

import (
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
)

// scanners match like their patterns. None depends on the text before a match, and
// none matches across the start of a single space.
var scanners = []scanned{
	{
		patterns: []string{gpt2Pattern},
		match:    matchGPT2,
		simple:   simpleAfter(" "),
	}, {
		patterns: []string{llama3Pattern},
		match:    func(s string) int { return matchLlama3(s, 3) },
		simple:   simpleAfter(llama3Prefixes),
	}, {
		patterns: []string{qwen2Pattern},
		match:    func(s string) int { return matchLlama3(s, 1) },
		simple:   simpleAfter(llama3Prefixes),
	}, {
		patterns: []string{`\p{N}{1,3}`, eastAsian, deepseekPattern},
		match:    matchDeepSeek,
		simple:   simpleAfter(llama3Prefixes + "'"),
	}, {
		patterns: []string{o200kPattern},
		match:    func(s string) int { return matchCased(s, true, 3) },
		simple:   simpleAfter(llama3Prefixes + "'"),
		cased:    true,
	}, {
		patterns: []string{tekkenPattern},
		match:    func(s string) int { return matchCased(s, false, 1) },
		simple:   simpleAfter(llama3Prefixes + "'"),
		cased:    true,
	},
	{patterns: []string{`\p{N}{1,3}`}, match: func(s string) int { return runOfNumbers(s, 3) }, begins: &bytesOfNumbers},
	{patterns: []string{`\p{N}+`}, match: func(s string) int { return runOfNumbers(s, len(s)) }, begins: &bytesOfNumbers},
	{patterns: []string{`\p{N}`}, match: func(s string) int { return runOfNumbers(s, 1) }, begins: &bytesOfNumbers},
}

// scannerOf returns the scanner of a sequence of patterns, nil if there is none.
func scannerOf(patterns ...string) *scanned {
	for i := range scanners {
		if slices.Equal(scanners[i].patterns, patterns) {
			return &scanners[i]
		}
	}
	return nil
}

// bytesOfNumbers holds the digits and the first bytes of non-ASCII characters.
var bytesOfNumbers = func() (begins [256]bool) {
	for b := range begins {
		begins[b] = '0' <= b && b <= '9' || b >= utf8.RuneSelf
	}
	return begins
}()

// A simple word is ASCII letters, possibly after one other ASCII character, and is
// not followed by a non-ASCII character. If case matters, only its first letter may be
// a capital, and no apostrophe follows. Most words are simple.

// llama3Prefixes are the ASCII characters of [^\r\n\p{L}\p{N}] but the apostrophe,
// which may begin a contraction.
var llama3Prefixes = func() string {
	var prefixes strings.Builder
	for b := range byte(utf8.RuneSelf) {
		if b != '\'' && classes[b]&(letter|number|newline) == 0 {
			prefixes.WriteByte(b)
		}
	}
	return prefixes.String()
}()

// simpleAfter returns the lengths from which simple words match, by the first byte: 2
// for those that may be before the letters.
func simpleAfter(prefixes string) *[256]uint8 {
	least := new([256]uint8)
	for b := range least {
		switch {
		case b < utf8.RuneSelf && classes[b]&letter != 0:
			least[b] = 1
		case strings.IndexByte(prefixes, byte(b)) >= 0:
			least[b] = 2
		default:
			least[b] = maxWord + 1
		}
	}
	return least
}

// simpleWord returns the length of the simple word of up to maxWord bytes at the
// start of a text with the first 16 bytes of w, or 0.
func (s *scanned) simpleWord(w word) int {
	bytes, before := w.low, 0
	end := notLetters(bytes) &^ 0x80 // any first byte
	if end == 0 {
		bytes, before = w.high, 8
		end = notLetters(bytes)
	}
	n, least := before+bits.TrailingZeros64(end)/8, int(s.simple[byte(w.low)])
	if n > maxWord || n < least || bytes&end&-end != 0 {
		return 0
	}
	if s.cased && (w.at(n) == '\'' || w.capitals(n, least)) {
		return 0
	}
	return n
}

// capitals reports whether one of the letters from a place on, in the first n bytes, is
// a capital.
func (w word) capitals(n, from int) bool {
	const small = 0x2020202020202020 // of letters
	letters := prefixes[n]
	return ^w.low&letters.low>>(8*from)<<(8*from)&small|^w.high&letters.high&small != 0
}

// notLetters sets the highest bit of the bytes of x that are no ASCII letters.
func notLetters(x uint64) uint64 {
	const each = 0x0101010101010101
	lower := x&(0x7f*each) | 0x20*each
	fromA, afterZ := lower+(0x80-'a')*each, lower+(0x7f-'z')*each
	return (^fromA | afterZ | x) & (0x80 * each)
}

// class is a character class of the patterns. A set of classes is their sum.
type class uint16

const (
	letter  class = 1 << iota // \p{L}
	mark                      // \p{M}
	sign                      // [\p{P}\p{S}]
	other                     // control characters and others
	number                    // \p{N}
	space                     // \s except newlines
	newline                   // [\r\n]

	toEast = 8 // shifts the class of characters that eastAsian matches

	// Letters with a case have one of these too.
	upper class = 1 << 12 // [\p{Lu}\p{Lt}]
	lower class = 1 << 13 // \p{Ll}

	letters = letter | letter<<toEast
	marks   = mark | mark<<toEast
	spaces  = space | newline
	others  = (mark | sign | other) | (mark|sign|other)<<toEast // [^\s\p{L}\p{N}]
	east    = (letter | mark | sign | other) << toEast
)

// categories are those of the classes. Later ones come first.
var categories = []struct {
	table *unicode.RangeTable
	class class
}{
	{unicode.S, sign}, {unicode.P, sign}, {unicode.N, number}, {unicode.M, mark},
	{unicode.White_Space, space}, {unicode.L, letter},
	{unicode.Lu, letter | upper}, {unicode.Lt, letter | upper}, {unicode.Ll, letter | lower},
}

// classes are those of the characters up to U+FFFF.
var classes = func() (classes [1 << 16]class) {
	for r := range classes {
		classes[r] = other
	}
	for _, c := range categories {
		for _, r := range c.table.R16 {
			for at := int(r.Lo); at <= int(r.Hi); at += int(r.Stride) {
				classes[at] = c.class
			}
		}
	}
	classes['\r'], classes['\n'] = newline, newline
	for _, r := range [...][2]rune{{'一', '龥'}, {'\u3040', '\u30ff'}} {
		for at := r[0]; at <= r[1]; at++ {
			classes[at] <<= toEast
		}
	}
	return classes
}()

// classAt returns the class and size of the first rune of s, or 0, 0.
func classAt(s string) (class, int) {
	if len(s) > 0 && s[0] < utf8.RuneSelf {
		return classes[s[0]], 1
	}
	return wideClassAt(s)
}

func wideClassAt(s string) (class, int) {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case size == 0:
		return 0, 0
	case int(r) < len(classes):
		return classes[r], size
	}
	for _, c := range slices.Backward(categories) {
		if unicode.Is(c.table, r) {
			return c.class, size
		}
	}
	return other, size
}

// runOf returns the length of the run of runes of some classes at the start of s.
func runOf(s string, of class) (n int) {
	for n < len(s) {
		if c := s[n]; c < utf8.RuneSelf {
			if classes[c]&of == 0 {
				return n
			}
			n++
			continue
		}
		c, size := wideClassAt(s[n:])
		if c&of == 0 {
			return n
		}
		n += size
	}
	return n
}

// runOfNumbers matches up to most characters of \p{N}.
func runOfNumbers(s string, most int) (n int) {
	for ; most > 0; most-- {
		c, size := classAt(s[n:])
		if c != number {
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
	case c&letters != 0:
		return size + runOf(s[size:], letters)
	case c == number:
		return runOfNumbers(s, digits)
	case c != newline:
		if n := runOf(s[size:], letters); n > 0 {
			return size + n
		}
	}
	blank := leadingSpace(s)
	if n := runOf(s[blank:], others); n > 0 {
		n += blank
		return n + runOf(s[n:], newline)
	}
	return matchSpace(s, true, 0)
}

func matchGPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	blank := leadingSpace(s)
	for _, of := range [...]class{letters, number, others} {
		if n := runOf(s[blank:], of); n > 0 {
			return blank + n
		}
	}
	return matchSpace(s, false, 0)
}

// matchDeepSeek matches its three patterns, the first of which match first: to the
// others, numbers and east Asian characters are the end of the text.
func matchDeepSeek(s string) int {
	const word = letter | mark
	c, size := classAt(s)
	switch {
	case c == number:
		return runOfNumbers(s, 3)
	case c&east != 0:
		return matchEast(s)
	case c&word != 0:
		return size + runOf(s[size:], word)
	case c == sign && s[0] < utf8.RuneSelf:
		n := 1
		for n < len(s) && 'a' <= s[n]|0x20 && s[n]|0x20 <= 'z' {
			n++
		}
		if n > 1 {
			return n
		}
	case c&(space|other) != 0:
		if n := runOf(s[size:], word); n > 0 {
			return size + n
		}
	}
	blank := leadingSpace(s)
	if n := runOf(s[blank:], sign); n > 0 {
		n += blank
		return n + runOf(s[n:], newline)
	}
	return matchSpace(s, true, number|east)
}

// matchEast matches the last pattern in a run of east Asian characters, which the second
// pattern has cut out: letters and marks, behind at most one other character, or signs.
// Other characters between such matches are one word.
func matchEast(s string) int {
	const word = (letter | mark) << toEast
	c, size := classAt(s)
	switch {
	case c&word != 0:
		return runOf(s, word)
	case c == sign<<toEast:
		return runOf(s, sign<<toEast)
	}
	rest := runOf(s, other<<toEast) // all of a size
	switch n := runOf(s[rest:], word); {
	case n == 0:
		return rest
	case rest > size:
		return rest - size
	default:
		return size + n
	}
}

func leadingSpace(s string) int {
	if s[0] == ' ' {
		return 1
	}
	return 0
}

// matchSpace matches \s+(?!\S)|\s+, which leaves the last space to the next word,
// and with newlines, \s*[\r\n]+ before them. Characters of ends are the end of s.
func matchSpace(s string, newlines bool, ends class) int {
	n, last, ended := 0, 0, 0 // white space, its last rune, the end of its last newline
	c, size := classAt(s)
	for c&spaces != 0 {
		n, last = n+size, size
		if c == newline {
			ended = n
		}
		c, size = classAt(s[n:])
	}
	switch {
	case newlines && ended > 0:
		return ended
	case n == len(s) || n == last || c&ends != 0:
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
