package format

import "fmt"

// Note describes data that a reader dropped or assumed.
type Note struct {
	Count int // how often; 0 if it is about the trace as a whole
	Text  string
}

// String returns the text and the count.
func (n Note) String() string {
	if n.Count == 0 {
		return n.Text
	}
	return fmt.Sprintf("%s: %d", n.Text, n.Count)
}

// maxNotes bounds the distinct notes of one trace. Further ones are counted
// together.
const (
	maxNotes   = 50
	otherNotes = "other things like these"
)

// notes keeps notes in the order in which they first occurred.
type notes struct{ list []Note }

func (n *notes) count(text string) { n.countMany(text, 1) }

func (n *notes) countMany(text string, more int) {
	for i := range n.list {
		if n.list[i].Text == text {
			n.list[i].Count += more
			return
		}
	}
	switch {
	case len(n.list) < maxNotes:
		n.list = append(n.list, Note{more, text})
	case len(n.list) == maxNotes:
		n.list = append(n.list, Note{more, otherNotes})
	default:
		n.list[maxNotes].Count += more
	}
}

// say adds a note about the trace as a whole.
func (n *notes) say(format string, values ...any) {
	if len(n.list) < maxNotes {
		n.list = append(n.list, Note{Text: fmt.Sprintf(format, values...)})
	}
}
