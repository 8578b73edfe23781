package server

import "strings"

// FinishReason is why an answer ended, as the API spells it.
type FinishReason string

const (
	FinishStop   FinishReason = "stop"   // end of the model's answer, or a stop string
	FinishLength FinishReason = "length" // the length that was asked for
	FinishAbort  FinishReason = "abort"  // the client left
)

// lengthLimits are the limits of an answer's length in tokens.
type lengthLimits struct {
	maxTokens int // less than 1 counts as 1
	minTokens int // maxTokens goes before it
	// ignoreEOS makes the answer exactly maxTokens long. Otherwise the model
	// ends it after 16 to 512 tokens, a pure function of the prompt.
	ignoreEOS bool
}

// length is the length of the answer to the prompt with the given hash.
func (l lengthLimits) length(prompt uint64) (int, FinishReason) {
	const shortest, longest = 16, 512
	most := max(l.maxTokens, 1)
	natural := max(l.minTokens, shortest+int(prompt%(longest-shortest+1)))
	if l.ignoreEOS || natural > most {
		return most, FinishLength
	}
	return natural, FinishStop
}

// stopStrings end an answer. Of several that are complete with the same token
// the first one does.
type stopStrings struct {
	strings []string
	include bool // the answer includes the one that ended it
}

const (
	maxStops     = 16
	maxStopBytes = 1 << 10
)

// finish is where and why an answer ends.
type finish struct {
	tokens int // generated
	reason FinishReason
	stop   string // the stop string that was found, or ""
	// The client gets the text of the first whole tokens, and of the next one
	// only tail.
	whole int
	tail  string
}

// finishOf returns where the answer of a seed ends.
func finishOf(seed uint64, limits lengthLimits, stops stopStrings) finish {
	tokens, reason := limits.length(seed)
	f := finish{tokens: tokens, reason: reason, whole: tokens}
	longest := 0
	for _, stop := range stops.strings {
		longest = max(longest, len(stop))
	}
	if longest == 0 {
		return f
	}
	// The words repeat after a round, so what does not come within one never
	// does. Every token has at least two bytes.
	reach := longest/2 + 2
	begin := max(0, limits.minTokens-reach)
	end := min(tokens, limits.minTokens+len(words)+reach)
	var text strings.Builder
	var starts []int // of the tokens from begin on, in text
	for k := begin; k < end; k++ {
		starts = append(starts, text.Len())
		text.WriteString(words[wordIndex(seed, k)])
		if k < limits.minTokens {
			continue
		}
		if at, stop := stops.find(text.String(), starts[k-begin]); stop != "" {
			f = finish{tokens: k + 1, reason: FinishStop, stop: stop, whole: begin}
			for i, start := range starts { // tokens that end at or before at
				tokenEnd := text.Len()
				if i+1 < len(starts) {
					tokenEnd = starts[i+1]
				}
				if tokenEnd <= at {
					f.whole++
				} else if start < at {
					f.tail = text.String()[start:at]
				}
			}
			return f
		}
	}
	return f
}

// find returns where the text ends because of a stop string that is complete
// only after more than so many bytes of it.
func (s stopStrings) find(text string, after int) (at int, stop string) {
	for _, stop := range s.strings {
		from := max(0, after-len(stop)+1)
		if i := strings.Index(text[from:], stop); i >= 0 {
			at = from + i
			if s.include {
				at += len(stop)
			}
			return at, stop
		}
	}
	return 0, ""
}
