package server

import "strings"

// ending is where and why an answer ends.
type ending struct {
	tokens int // that are generated
	reason FinishReason
	stop   string // the stop string that was found, or ""
	// The text of so many tokens is the client's, and of the next one the
	// tail. A stop string is not part of an answer.
	whole int
	tail  string
}

// stops are strings at which an answer ends, of several that are complete
// with the same token the first.
type stops struct {
	strings []string
	include bool // the one that is found is part of the answer
}

// The most stop strings of a request, and the most bytes of each.
const (
	mostStops   = 16
	longestStop = 1 << 10
)

// end is the ending of an answer whose words come from a seed.
func (s sampling) end(seed uint64) ending {
	tokens, reason := s.length(seed)
	e := ending{tokens: tokens, reason: reason, whole: tokens}
	if len(s.stops.strings) == 0 {
		return e
	}
	longest := 0
	for _, stop := range s.stops.strings {
		longest = max(longest, len(stop))
	}
	// The words come round, so what is not found within a round is never; and
	// no token is shorter than two bytes.
	reach := longest/2 + 2
	begin := max(0, s.minTokens-reach)
	end := min(tokens, s.minTokens+len(words)+reach)
	var text strings.Builder
	var starts []int
	for k := begin; k < end; k++ {
		starts = append(starts, text.Len())
		text.WriteString(words[wordIndex(seed, k)])
		if k < s.minTokens {
			continue
		}
		if at, stop := s.stops.find(text.String(), starts[k-begin]); stop != "" {
			return e.stopped(k, begin, starts, text.String(), at, stop)
		}
	}
	return e
}

// find returns where the text ends for a stop string that is complete only
// after so many bytes of it.
func (s stops) find(text string, after int) (at int, stop string) {
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

// stopped is e ended with token k, the text being only that before at. The
// text is that of the tokens from begin on, with the places where each starts.
func (e ending) stopped(k, begin int, starts []int, text string, at int, stop string) ending {
	e.tokens, e.reason, e.stop = k+1, FinishStop, stop
	e.whole = k + 1
	for e.whole > begin && starts[e.whole-1-begin] >= at {
		e.whole--
	}
	// The token that begins before at is whole if it ends there.
	if e.whole > begin {
		start, end := starts[e.whole-1-begin], len(text)
		if i := e.whole - begin; i < len(starts) {
			end = starts[i]
		}
		if at < end {
			e.whole--
			e.tail = text[start:at]
		}
	}
	return e
}
