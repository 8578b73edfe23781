package server

import "testing"

func TestAnswerLength(t *testing.T) {
	const natural = 16 + 99 // of a prompt whose hash is 99
	for _, tt := range []struct {
		name string
		s    lengthLimits
		hash uint64
		want int
		why  FinishReason
	}{
		{"natural", lengthLimits{maxTokens: 1000}, 99, natural, FinishStop},
		{"shortest", lengthLimits{maxTokens: 1000}, 0, 16, FinishStop},
		{"longest", lengthLimits{maxTokens: 1000}, 496, 512, FinishStop},
		{"then again the shortest", lengthLimits{maxTokens: 1000}, 497, 16, FinishStop},
		{"ends where it was going to", lengthLimits{maxTokens: natural}, 99, natural, FinishStop},
		{"cut", lengthLimits{maxTokens: natural - 1}, 99, natural - 1, FinishLength},
		{"no end of its own", lengthLimits{maxTokens: 1000, ignoreEOS: true}, 99, 1000, FinishLength},
		{"at least", lengthLimits{maxTokens: 1000, minTokens: 700}, 99, 700, FinishStop},
		{"at least less than natural", lengthLimits{maxTokens: 1000, minTokens: 20}, 99, natural, FinishStop},
		{"zero value", lengthLimits{}, 99, 1, FinishLength},
	} {
		if got, why := tt.s.length(tt.hash); got != tt.want || why != tt.why {
			t.Errorf("%s: %d tokens, %s; want %d, %s", tt.name, got, why, tt.want, tt.why)
		}
	}
}
