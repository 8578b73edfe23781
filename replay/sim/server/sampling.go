package server

// FinishReason is why an answer ended, as the API spells it.
type FinishReason string

// The reasons: the model had said what it had to say, the answer reached the
// length that was asked for, or the client left before the end.
const (
	FinishStop   FinishReason = "stop"
	FinishLength FinishReason = "length"
	FinishAbort  FinishReason = "abort"
)

// sampling says how long an answer may be.
type sampling struct {
	// maxTokens is the most tokens to generate; less than 1 counts as 1.
	maxTokens int
	// minTokens is the least, as far as maxTokens allows it.
	minTokens int
	// ignoreEOS makes the answer exactly maxTokens long. Otherwise it has the
	// model's natural length where that is shorter: 16 to 512 tokens, a pure
	// function of the prompt.
	ignoreEOS bool
	// stops end an answer that has minTokens before that.
	stops stops
}

// length is the length of the answer to the prompt with the given hash.
func (s sampling) length(prompt uint64) (int, FinishReason) {
	const shortest, longest = 16, 512
	most := max(s.maxTokens, 1)
	natural := max(s.minTokens, shortest+int(prompt%(longest-shortest+1)))
	if s.ignoreEOS || natural > most {
		return most, FinishLength
	}
	return natural, FinishStop
}
