package record

import (
	"fmt"
	"slices"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// RecordedKey is the key of a row's object with what was recorded of its answer: see [Recorded].
const RecordedKey = "recorded"

// reasoningKeys are the keys with the tokens of an answer that are reasoning, in a
// row or in its object recorded.
var reasoningKeys = []string{"reasoning_tokens", "reasoning_output_tokens", "reasoning_length", "thinking_tokens", "reason_tokens"}

// IsReasoningKey reports whether the value of a key counts the tokens of an answer that
// are reasoning.
func IsReasoningKey(key string) bool { return slices.Contains(reasoningKeys, key) }

// ReasoningTokens reads such a value. It fails unless that is null or the number of some
// or all of the tokens of the answer; null is absent.
func ReasoningTokens(raw []byte, output int) (n trace.Opt[int], err error) {
	if string(raw) == "null" {
		return n, nil
	}
	number := jsonscan.New(raw)
	tokens := number.Int(output)
	if !number.Done() {
		return n, fmt.Errorf("%.60s is not a number of tokens from 0 to %d", raw, output)
	}
	return trace.Some(tokens), nil
}
