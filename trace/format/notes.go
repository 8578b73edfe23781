package format

import "fmt"

// Note is something that a reader left out or assumed.
type Note struct {
	Count int // how often; 0 where it is about the trace as a whole
	Says  string
}

// String is the note, and behind it its number.
func (n Note) String() string {
	if n.Count == 0 {
		return n.Says
	}
	return fmt.Sprintf("%s: %d", n.Says, n.Count)
}

// mostNotes bounds the different notes of one trace. What is counted beyond them
// is counted together.
const (
	mostNotes = 50
	otherwise = "other things like these"
)

// notes are kept in the order in which they were first met.
type notes struct{ list []Note }

// count counts one more of a kind.
func (n *notes) count(says string) { n.countMore(says, 1) }

func (n *notes) countMore(says string, more int) {
	for i := range n.list {
		if n.list[i].Says == says {
			n.list[i].Count += more
			return
		}
	}
	switch {
	case len(n.list) < mostNotes:
		n.list = append(n.list, Note{more, says})
	case len(n.list) == mostNotes:
		n.list = append(n.list, Note{more, otherwise})
	default:
		n.list[mostNotes].Count += more
	}
}

// say notes what holds for the trace as a whole.
func (n *notes) say(format string, values ...any) {
	if len(n.list) < mostNotes {
		n.list = append(n.list, Note{Says: fmt.Sprintf(format, values...)})
	}
}
