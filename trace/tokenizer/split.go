package tokenizer

import (
	"fmt"
	"time"
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
	patterns []string // the splits that it replaces
	match    func(text string) int
	begins   *[256]bool // first bytes of matches; nil for any
	// simple has the lengths from which simple words match, by their first byte; see
	// simpleWord. It is nil if no simple word matches.
	simple  *[256]uint8
	cased   bool // words end before some capitals
	removed bool // text between matches is dropped
}

// next returns the length of the first word of a text: a match, or the text before
// the first match.
func (s *scanned) next(text string) (n int, matched bool) {
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

func (s *scanned) split(text string, give func(string) error) error {
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
