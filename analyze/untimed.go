package analyze

import (
	"moontide/trace"
	"moontide/trace/block"
)

// Untimed counts the later turns of sessions, and the other rows that wait for others,
// that have a delay instead of a timestamp. When they are sent depends on the answers
// before them, so their place among the rows is only an estimate, and so is their
// arrival; see [trace.Graph.SendTimes].
type Untimed struct {
	Turns int
	// Misplaced is the number of those that cannot have been sent where they are:
	// even if answers took no time, the next row with a timestamp came before.
	Misplaced int
}

// untimedCounter finds untimed turns.
type untimedCounter struct {
	Untimed
	sent  block.List[float64] // earliest time of the latest turn of each session
	named block.List[float64] // and of rows, both by number in sessionCounter
	// since holds the earliest times of the untimed turns since the last row with a
	// timestamp.
	since  []float64
	delays map[int32]float64 // of untimed turns, by row
}

// add takes a row. requests numbers the ids in after.
func (c *untimedCounter) add(row int, r *trace.Request, is known, requests *names) {
	if r.Timestamp.Set {
		for _, earliest := range c.since {
			if earliest > r.Timestamp.Value {
				c.Misplaced++
			}
		}
		c.since = c.since[:0]
	}
	before, later := 0.0, is.later
	if later {
		before = *slot(&c.sent, uint32(is.session))
	}
	if r.After != nil {
		before, later = 0, len(r.After) > 0
		for _, id := range r.After {
			before = max(before, *slot(&c.named, requests.number(id)))
		}
	}
	at := r.Timestamp.Value
	if later && !r.Timestamp.Set {
		at = before + r.Delay.Value
		c.Turns++
		if c.delays == nil {
			c.delays = map[int32]float64{}
		}
		c.delays[int32(row)] = r.Delay.Value
		c.since = append(c.since, at)
	}
	if is.session != none {
		*slot(&c.sent, uint32(is.session)) = at
	}
	if is.request != none {
		*slot(&c.named, uint32(is.request)) = at
	}
}
