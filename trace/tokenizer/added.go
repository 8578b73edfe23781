package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// addedToken is a text that is one token wherever it occurs.
type addedToken struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"` // takes the white space before it along
	RStrip     bool   `json:"rstrip"` // and that behind it
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"` // of no matter to encoding
}

func (f *file) readAdded(t *Tokenizer) error {
	for _, a := range f.AddedTokens {
		switch {
		case a.SingleWord:
			return fmt.Errorf("added token %.40q with single_word is not supported", a.Content)
		case a.ID > maxID || len(a.Content) > maxToken:
			return fmt.Errorf("an added token has id %d and %d bytes: %d and %d are the most", a.ID, len(a.Content), maxID, maxToken)
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
	// The texts of added tokens are no words that a text could be made of.
	for _, a := range f.AddedTokens {
		if int(a.ID) < len(t.texts) {
			t.texts[a.ID] = ""
		}
	}
	return nil
}

// added are added tokens to be found in a text.
type added struct {
	first [256]bool // bytes that one begins with
	// By the first byte: how long the tokens are, the longest first. Of those
	// that begin at one place the longest is meant.
	lengths     [256][]int
	tokens      map[string]addedToken
	spansSpaces bool // one has a space that is not its first character
}

func (s *added) add(a addedToken) {
	if s.tokens == nil {
		s.tokens = map[string]addedToken{}
	}
	s.tokens[a.Content] = a
	b := a.Content[0]
	s.first[b] = true
	if !slices.Contains(s.lengths[b], len(a.Content)) {
		s.lengths[b] = append(s.lengths[b], len(a.Content))
		slices.Sort(s.lengths[b])
		slices.Reverse(s.lengths[b])
	}
	s.spansSpaces = s.spansSpaces || strings.ContainsFunc(a.Content[1:], unicode.IsSpace)
}

// at returns the token that text has at a place.
func (s *added) at(text string, place int) (a addedToken, ok bool) {
	for _, n := range s.lengths[text[place]] {
		if n <= len(text)-place {
			if a, ok = s.tokens[text[place:place+n]]; ok {
				return a, true
			}
		}
	}
	return a, false
}

// cut gives what text consists of in turn: pieces that are tokens and those,
// never empty, that are none.
func (s *added) cut(text string, give func(piece string, id uint32, isToken bool)) {
	done := 0
	for i := 0; s.tokens != nil && i < len(text); {
		if !s.first[text[i]] {
			i++
			continue
		}
		a, ok := s.at(text, i)
		if !ok {
			i++
			continue
		}
		start, end := i, i+len(a.Content)
		i = end
		if a.LStrip {
			start = max(done, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if a.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if start > done {
			give(text[done:start], 0, false)
		}
		give(text[start:end], a.ID, true)
		done = end
		i = max(i, end)
	}
	if done < len(text) {
		give(text[done:], 0, false)
	}
}
