package check

import (
	"math"

	"moontide/trace"
)

// fastestToken is the minimum time in ms between tokens of one answer: few
// engines stream 1,000 tokens a second to one user.
const fastestToken = 1.0

// sessions checks the turns of each session, and the rows that wait for others.
type sessions struct {
	found   *findings
	latest  map[string]turn
	named   map[string]turn   // rows by request_id
	waiting map[string][]turn // rows that wait for a later one, by its request_id
}

// turn is a row that others may wait for: the latest of a session, or a named one.
type turn struct {
	session  string
	line     int
	at       trace.Opt[float64]
	isl, osl int
	// full is the number of its blocks that are known to be full, and id the
	// last of them. The last block may be partial and have another id in a
	// longer prompt.
	full int
	id   uint64
}

func (c *sessions) add(line int, r *trace.Request) {
	before, later := c.latest[r.SessionID]
	switch {
	case len(r.After) > 0:
		c.waits(line, r)
	case r.After != nil || r.SessionID == "":
		c.alone(line, r)
	case later:
		c.follows(line, r, before)
	default:
		c.begins(line, r)
	}
	if r.SessionID == "" && r.ID == "" {
		return
	}
	t := turn{session: r.SessionID, line: line, at: r.Timestamp, isl: r.InputLength, osl: r.OutputLength}
	if n := len(r.HashIDs); n > 1 {
		t.full, t.id = n-1, r.HashIDs[n-2]
	}
	if r.SessionID != "" {
		c.latest[r.SessionID] = t
	}
	if r.ID != "" {
		c.named[r.ID] = t
		c.awaited(r.ID, t)
	}
}

// waits checks a row that waits for requests that it names.
func (c *sessions) waits(line int, r *trace.Request) {
	if !r.Timestamp.Set && !r.Delay.Set {
		c.found.add(AfterWithoutDelay, line, "after %.60q, no timestamp, no delay", r.After)
	}
	if r.Timestamp.Set && r.Delay.Set {
		c.found.add(TimestampUnused, line, "timestamp %s, delay %s, after %.60q", ms(r.Timestamp.Value), ms(r.Delay.Value), r.After)
	}
	var continued turn // of the rows of this session, the last
	for _, id := range r.After {
		before, known := c.named[id]
		switch {
		case known && before.session == r.SessionID && before.line > continued.line:
			continued = before
			fallthrough
		case known:
			c.early(line, r.Timestamp, r.Delay.Set, before, id)
		case r.Timestamp.Set && !r.Delay.Set:
			c.waiting[id] = append(c.waiting[id], turn{line: line, at: r.Timestamp})
		}
	}
	if continued.line > 0 && r.SessionID != "" {
		c.prompt(line, r, continued)
	}
}

// awaited checks the rows that have waited for a later row.
func (c *sessions) awaited(id string, t turn) {
	for _, w := range c.waiting[id] {
		c.early(w.line, w.at, false, t, id)
	}
	delete(c.waiting, id)
}

// early checks that a row does not begin before one that it names can have ended.
func (c *sessions) early(line int, at trace.Opt[float64], delayed bool, before turn, id string) {
	if delayed || !at.Set || !before.at.Set {
		return
	}
	if gap := at.Value - before.at.Value; gap < fastestToken*float64(max(before.osl, 1)) {
		c.found.add(SessionOverlap, line, "timestamp %s is %s ms after line %d with output_length %d, request_id %.40q", ms(at.Value), ms(math.Round(gap*1000)/1000), before.line, before.osl, id)
	}
}

// alone checks the times of a row that waits for no other.
func (c *sessions) alone(line int, r *trace.Request) {
	switch {
	case r.Timestamp.Set && r.Delay.Value > 0:
		c.found.add(DelayUnused, line, "timestamp %s, delay %s, no session_id", ms(r.Timestamp.Value), ms(r.Delay.Value))
	case r.Timestamp.Set:
	case r.Delay.Set:
		c.found.add(DelayWithoutSession, line, "delay %s, no timestamp, no session_id", ms(r.Delay.Value))
	default:
		c.found.add(NoTime, line, "no timestamp, no delay")
	}
}

// begins checks the times of a session's first row.
func (c *sessions) begins(line int, r *trace.Request) {
	switch {
	case !r.Timestamp.Set:
		c.found.add(SessionNotBegun, line, "session_id %.40q, no timestamp", r.SessionID)
	case r.Delay.Value > 0:
		c.found.add(DelayUnused, line, "timestamp %s, delay %s, first of session_id %.40q", ms(r.Timestamp.Value), ms(r.Delay.Value), r.SessionID)
	}
}

// follows checks a turn against the previous one.
func (c *sessions) follows(line int, r *trace.Request, before turn) {
	switch {
	case r.Delay.Set && r.Timestamp.Set:
		c.found.add(TimestampUnused, line, "timestamp %s, delay %s, session_id %.40q", ms(r.Timestamp.Value), ms(r.Delay.Value), r.SessionID)
	case r.Delay.Set:
	case !r.Timestamp.Set:
		c.found.add(TurnWithoutDelay, line, "session_id %.40q, no timestamp, no delay", r.SessionID)
	case before.at.Set:
		c.overlap(line, r, before)
	}
	c.prompt(line, r, before)
}

// prompt compares the prompt of a turn with that of the turn before.
func (c *sessions) prompt(line int, r *trace.Request, before turn) {
	switch {
	case r.InputLength < before.isl:
		c.found.add(TurnShrinks, line, "input_length %d after %d on line %d, session_id %.40q", r.InputLength, before.isl, before.line, r.SessionID)
	case before.full == 0 || len(r.HashIDs) == 0:
	case len(r.HashIDs) < before.full || r.HashIDs[before.full-1] != before.id:
		c.found.add(TurnDiverges, line, "block %d is not %d as on line %d, session_id %.40q", before.full, before.id, before.line, r.SessionID)
	}
}

func (c *sessions) overlap(line int, r *trace.Request, before turn) {
	gap := r.Timestamp.Value - before.at.Value
	switch {
	case gap < 0:
		c.found.add(SessionDisorder, line, "timestamp %s after %s on line %d, session_id %.40q", ms(r.Timestamp.Value), ms(before.at.Value), before.line, r.SessionID)
	case gap < fastestToken*float64(max(before.osl, 1)):
		c.found.add(SessionOverlap, line, "timestamp %s is %s ms after line %d with output_length %d, session_id %.40q", ms(r.Timestamp.Value), ms(math.Round(gap*1000)/1000), before.line, before.osl, r.SessionID)
	}
}
