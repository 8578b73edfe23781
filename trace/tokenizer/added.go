package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// addedToken is a text that is always one token.
type addedToken struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"` // includes white space before it
	RStrip     bool   `json:"rstrip"` // includes white space after it
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"` // does not affect encoding
}

func (f *file) readAdded(t *Tokenizer) error {
	for _, a := range f.AddedTokens {
		switch {
		case a.SingleWord:
			return fmt.Errorf("added token %.40q with single_word is not supported", a.Content)
		case a.ID > maxID || len(a.Content) > maxToken:
			return fmt.Errorf("an added token has id %d and %d bytes: the limits are %d and %d", a.ID, len(a.Content), maxID, maxToken)
		case a.Content == "":
			return fmt.Errorf("added token %d is empty", a.ID)
		case !a.Normalized:
			t.exact.add(a)
			continue
		case t.nfc:
			a.Content = norm.NFC.String(a.Content)
		}
		t.normalized.add(a)
	}
	// Texts is used to compose text, which does not use added tokens.
	for _, a := range f.AddedTokens {
		if int(a.ID) < len(t.texts) {
			t.texts[a.ID] = ""
		}
	}
	return nil
}

// added finds added tokens in a text.
type added struct {
	first       string // first characters of tokens
	lengths     []int  // of tokens, ascending
	tokens      map[string]addedToken
	spansSpaces bool // a token has a space after its first character
}

func (s *added) add(a addedToken) {
	if s.tokens == nil {
		s.tokens = map[string]addedToken{}
	}
	s.tokens[a.Content] = a
	r, size := utf8.DecodeRuneInString(a.Content)
	if !strings.ContainsRune(s.first, r) {
		s.first += a.Content[:size]
	}
	s.lengths = append(s.lengths, len(a.Content))
	slices.Sort(s.lengths)
	s.lengths = slices.Compact(s.lengths)
	s.spansSpaces = s.spansSpaces || strings.ContainsFunc(a.Content[1:], unicode.IsSpace)
}

// next returns the first offset from place on at which a token may be, or the
// length of text.
func (s *added) next(text string, place int) int {
	if n := strings.IndexAny(text[place:], s.first); n >= 0 {
		return place + n
	}
	return len(text)
}

// at returns the longest token at an offset of text.
func (s *added) at(text string, place int) (a addedToken, ok bool) {
	for _, n := range slices.Backward(s.lengths) {
		if n <= len(text)-place {
			if a, ok = s.tokens[text[place:place+n]]; ok {
				return a, true
			}
		}
	}
	return a, false
}

// appendAdded appends the added tokens in text, and lets rest append those of each
// piece between them.
func (e *encoding) appendAdded(s *added, text string, rest func(e *encoding, piece string) error) error {
	done := 0
	for at := s.next(text, 0); at < len(text); {
		a, ok := s.at(text, at)
		if !ok {
			at = s.next(text, at+1)
			continue
		}
		start, end := at, at+len(a.Content)
		if a.LStrip {
			start = max(done, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if a.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if start > done {
			if err := rest(e, text[done:start]); err != nil {
				return err
			}
		}
		e.tokens = append(e.tokens, a.ID)
		done = end
		at = s.next(text, end)
	}
	if done < len(text) {
		return rest(e, text[done:])
	}
	return nil
}
