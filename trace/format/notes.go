package format

import (
	"fmt"
	"slices"
)

// note describes data that a reader dropped or assumed.
type note struct {
	text  string
	count int // how often; 0 if it is about the trace as a whole
}

func (n note) String() string {
	if n.count == 0 {
		return n.text
	}
	return fmt.Sprintf("%s: %d", n.text, n.count)
}

// maxNotes bounds the distinct notes of one trace. Further ones are counted
// together.
const (
	maxNotes   = 50
	otherNotes = "other things like these"
)

// notes keeps notes in the order in which they first occurred.
type notes struct{ list []note }

func (n *notes) count(text string) { n.countMany(text, 1) }

func (n *notes) countMany(text string, more int) {
	i := slices.IndexFunc(n.list, func(other note) bool { return other.text == text })
	switch {
	case i >= 0:
		n.list[i].count += more
	case len(n.list) < maxNotes:
		n.list = append(n.list, note{text, more})
	case text != otherNotes:
		n.countMany(otherNotes, more)
	default:
		n.list = append(n.list, note{text, more})
	}
}

// say adds a note about the trace as a whole.
func (n *notes) say(format string, values ...any) {
	n.countMany(fmt.Sprintf(format, values...), 0)
}
