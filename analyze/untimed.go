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

// untimedOf finds untimed turns. It takes 8 bytes a row.
func untimedOf(rows *rows, graph *trace.Graph) (u Untimed) {
	earliest := make([]float64, rows.len())
	// since holds the earliest times of the untimed turns since the last row with a
	// timestamp.
	var since []float64
	for i, r := range rows.all {
		if r.timed {
			earliest[i] = r.ms
			for _, at := range since {
				if at > r.ms {
					u.Misplaced++
				}
			}
			since = since[:0]
			continue
		}
		before := graph.Before(i)
		if len(before) == 0 && !r.hasAfter {
			continue
		}
		u.Turns++
		for _, b := range before { // those of later rows are still 0
			earliest[i] = max(earliest[i], earliest[b])
		}
		earliest[i] += r.ms
		since = append(since, earliest[i])
	}
	return u
}

// estimateTimes gives the rows that wait for others and have no timestamp the time
// at which they would be sent. Without any timestamp, nothing is known about times.
func (c *collector) estimateTimes(graph *trace.Graph) (u Untimed) {
	if graph == nil || !c.sessions.untimed {
		return u
	}
	if u = untimedOf(&c.rows, graph); u.Turns == 0 || !c.sessions.timed {
		return u
	}
	graph.SendTimes(0, c.rows.len(), 0, func(i int) trace.Due {
		r := c.rows.at(i)
		return trace.Due{At: &r.ms, Timed: r.timed, OSL: int(r.osl)}
	})
	for _, r := range c.rows.all {
		if !r.timed {
			r.timed, r.estimated = true, true
		}
	}
	return u
}
