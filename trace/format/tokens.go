package format

import (
	"fmt"
	"unicode/utf8"
)

// tokenCounter counts the tokens of a text; nil estimates them.
type tokenCounter func(text string) (int, error)

func (c tokenCounter) tokens(text string) (int, error) {
	if c == nil {
		return estimateTokens(text), nil
	}
	n, err := c(text)
	if err != nil {
		return 0, fmt.Errorf("counting tokens: %w", err)
	}
	return n, nil
}

// estimateTokens estimates the tokens of a text in a current vocabulary, to
// about a fifth for prose: four letters a token, and three quarters of a token
// for a character beyond ASCII.
func estimateTokens(text string) int {
	quarters := 0
	for _, r := range text {
		if quarters++; r >= utf8.RuneSelf {
			quarters += 2
		}
	}
	return (quarters + 3) / 4
}
