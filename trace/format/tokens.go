package format

import (
	"fmt"
	"unicode/utf8"
)

// tokenCounter counts the tokens of texts, or estimates them.
type tokenCounter struct {
	count func(string) (int, error) // nil to estimate
}

func (c tokenCounter) tokens(text string) (int, error) {
	if c.count == nil {
		return estimateTokens(text), nil
	}
	n, err := c.count(text)
	if err != nil {
		return 0, fmt.Errorf("counting tokens: %w", err)
	}
	return n, nil
}

// exact reports whether tokens are counted.
func (c tokenCounter) exact() bool { return c.count != nil }

// estimateTokens estimates the tokens of a text in a current vocabulary, to
// about a fifth for prose: four letters a token, and three quarters of a token
// for a character beyond ASCII.
func estimateTokens(text string) int {
	wide, ascii := 0, 0
	for _, r := range text {
		if r >= utf8.RuneSelf {
			wide++
		} else {
			ascii++
		}
	}
	return (ascii + 3*wide + 3) / 4
}
