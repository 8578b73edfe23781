package format

import (
	"fmt"
	"unicode/utf8"
)

// counter counts the tokens of texts, or estimates them.
type counter struct {
	count func(string) (int, error) // nil where there is no tokenizer
}

// tokens returns the number of tokens of a text.
func (c counter) tokens(text string) (int, error) {
	if c.count == nil {
		return estimate(text), nil
	}
	n, err := c.count(text)
	if err != nil {
		return 0, fmt.Errorf("counting tokens: %w", err)
	}
	return n, nil
}

// exact reports whether tokens are counted.
func (c counter) exact() bool { return c.count != nil }

// estimate is the number of tokens that a text has in the vocabularies of
// today, to about a fifth for prose: four letters a token, and three quarters
// of a token for a character beyond ASCII.
func estimate(text string) int {
	wide := 0
	for _, r := range text {
		if r >= utf8.RuneSelf {
			wide++
		}
	}
	ascii := 0
	for i := range len(text) {
		if text[i] < utf8.RuneSelf {
			ascii++
		}
	}
	return (ascii + 3*wide + 3) / 4
}
