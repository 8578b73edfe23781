package format

import (
	"fmt"
	"slices"
)

// maxNotes bounds the distinct notes of one trace. Further ones are counted together.
const (
	maxNotes   = 50
	otherNotes = "other things like these"
)

// notes describe data that a reader dropped or assumed.
type notes struct {
	texts  []string       // in the order in which they first occurred
	counts map[string]int // how often; 0 if a note is about the trace as a whole
}

func (n *notes) count(text string) { n.countMany(text, 1) }

func (n *notes) countMany(text string, more int) {
	if _, known := n.counts[text]; !known && len(n.texts) >= maxNotes {
		text = otherNotes
	}
	if !slices.Contains(n.texts, text) {
		n.texts = append(n.texts, text)
	}
	n.counts[text] += more
}

// say adds a note about the trace as a whole.
func (n *notes) say(format string, values ...any) {
	n.countMany(fmt.Sprintf(format, values...), 0)
}
