package server

import "strings"

// FinishReason is the reason why an answer ended, as in the API.
type FinishReason string

const (
	FinishStop   FinishReason = "stop"   // end of the model's answer, or a stop string
	FinishLength FinishReason = "length" // the length that was asked for
	FinishAbort  FinishReason = "abort"  // the client left
)

// lengthLimits holds the limits of an answer's length in tokens.
type lengthLimits struct {
	maxTokens int // values below 1 mean 1
	minTokens int // maxTokens takes precedence
	// ignoreEOS makes the answer exactly maxTokens long. Otherwise the model
	// ends it after 16 to 512 tokens, as a pure function of the prompt.
	ignoreEOS bool
}

// length returns the answer length for the prompt with the given hash.
func (l lengthLimits) length(prompt uint64) (int, FinishReason) {
	const shortest, longest = 16, 512
	most := max(l.maxTokens, 1)
	natural := max(l.minTokens, shortest+int(prompt%(longest-shortest+1)))
	if l.ignoreEOS || natural > most {
		return most, FinishLength
	}
	return natural, FinishStop
}

// stopStrings holds the strings that end an answer. If several are completed by
// the same token, the first one ends it.
type stopStrings struct {
	strings []string
	include bool // include the stop string in the answer
}

const (
	maxStops     = 16
	maxStopBytes = 1 << 10
)

// finish describes where and why an answer ends.
type finish struct {
	tokens int // number of generated tokens
	reason FinishReason
	stop   string // stop string found, or ""
	// The client receives the text of the first whole tokens, followed by tail,
	// a part of the next one.
	whole int
	tail  string
}

// finishOf returns where the answer to a prompt ends.
func finishOf(w wording, prompt uint64, limits lengthLimits, stops stopStrings) finish {
	tokens, reason := limits.length(prompt)
	f := finish{tokens: tokens, reason: reason, whole: tokens}
	longest := 0
	for _, stop := range stops.strings {
		longest = max(longest, len(stop))
	}
	if longest == 0 {
		return f
	}
	// The words repeat after a round, so a string not found within one is never
	// found. Every token has at least two bytes.
	reach := longest/2 + 2
	begin := max(0, limits.minTokens-reach)
	end := min(tokens, max(limits.minTokens, w.turn)+len(w.words)+reach)
	var text strings.Builder
	var starts []int // positions in text of the tokens from begin on
	for k := begin; k < end; k++ {
		starts = append(starts, text.Len())
		text.WriteString(w.word(k))
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

// find returns where the text ends because of a stop string that is completed
// after more than the given number of bytes.
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
