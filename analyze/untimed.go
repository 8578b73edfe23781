package analyze

import "moontide/trace"

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
	sent  map[string]float64 // earliest time of the latest turn of each session
	named map[string]float64 // and of rows by request id
	// since holds the earliest times of the untimed turns since the last row with a
	// timestamp.
	since  []float64
	delays map[int32]float64 // of untimed turns, by row
}

func (c *untimedCounter) add(row int, r trace.Request) {
	if r.Timestamp.Set {
		for _, earliest := range c.since {
			if earliest > r.Timestamp.Value {
				c.Misplaced++
			}
		}
		c.since = c.since[:0]
	}
	if r.SessionID == "" && r.ID == "" && r.After == nil {
		return
	}
	if c.sent == nil {
		c.sent, c.named, c.delays = map[string]float64{}, map[string]float64{}, map[int32]float64{}
	}
	before, later := c.sent[r.SessionID]
	if r.After != nil {
		before, later = 0, len(r.After) > 0
		for _, id := range r.After {
			before = max(before, c.named[id])
		}
	}
	at := r.Timestamp.Value
	if later && !r.Timestamp.Set {
		at = before + r.Delay.Value
		c.Turns++
		c.delays[int32(row)] = r.Delay.Value
		c.since = append(c.since, at)
	}
	if r.SessionID != "" {
		c.sent[r.SessionID] = at
	}
	if r.ID != "" {
		c.named[r.ID] = at
	}
}
