package format

import (
	"fmt"
	"moontide/trace"
	"time"
)

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

// unitCheck detects milliseconds in a format whose times are seconds.
type unitCheck struct {
	rows                 int
	first, last, longest float64 // ms
}

func (c *unitCheck) add(ms float64) {
	if c.rows++; c.rows == 1 {
		c.first = ms
	} else {
		c.longest = max(c.longest, ms-c.last)
	}
	c.last = ms
}

// doubt returns the reason why the times cannot be seconds, or "".
func (c *unitCheck) doubt() string {
	span := c.last - c.first
	if gap := span / float64(c.rows-1); !trace.TooSlow(c.rows, gap, c.longest) {
		return ""
	}
	hours := func(ms float64) string {
		if h := ms / float64(time.Hour/time.Millisecond); h < 48 {
			return fmt.Sprintf("%.3g hours", h)
		} else {
			return fmt.Sprintf("%.3g days", h/24)
		}
	}
	return fmt.Sprintf("times are probably not seconds: %d rows in %s without a pause; in milliseconds they would be %s",
		c.rows, hours(span), hours(span/1000))
}
