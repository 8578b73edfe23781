package analyze

import (
	"math"

	"moontide/trace"
	"moontide/trace/stats"
)

// Sessions groups requests into conversations. If any rows have session ids, it
// covers these rows.
//
// Otherwise sessions are inferred from block ids and cover the rows that have them.
// A request is the next turn of an earlier one if it is longer (by ISL) and its
// leading blocks include all full blocks of the earlier prompt. If several earlier
// requests qualify, the one with the most blocks is chosen, then the most recent;
// if that one is not shorter, the request starts a new session. A prompt without a
// full block, or with ids not chained to their prefix, has no next or previous turn.
//
// So that a shared system prompt does not join all sessions, a prompt can be an
// earlier turn only if its last full block was new with it, or with an earlier
// request that ended with it, and if at most 16 different blocks follow that block.
type Sessions struct {
	// Inferred is set if sessions were inferred from block ids.
	Inferred bool
	// Requests is the number of rows covered, Sessions the number of sessions, and
	// MultiTurn the number of sessions with more than one turn.
	Requests, Sessions, MultiTurn int
	// Of holds, for each row, the row of its session's first turn, both from 0; -1
	// for rows not covered.
	Of []int32
	// Turns is the number of turns of each session.
	Turns stats.Sample
	// Gap is the time from the arrival of a turn to that of the next one in
	// milliseconds, if both have a timestamp: think time plus response time.
	// Negative times are treated as 0.
	Gap stats.Sample
	// Delay is the think time in milliseconds of the later turns that specify it
	// (key delay), measured from the end of the previous turn. It is never
	// inferred.
	Delay stats.Sample
	// Growth is the ISL of each later turn minus that of the previous turn, in
	// tokens. It is negative if a session continues with a shorter prompt.
	Growth stats.Sample
}

const (
	none    = -1 // the previous turn of a first turn
	outside = -2 // the previous turn of a row that is not covered
)

// sessionsOf builds sessions from the row of each row's previous turn, none, or
// outside.
func sessionsOf(rows []row, previous []int32) *Sessions {
	s := &Sessions{Of: make([]int32, len(rows))}
	var gaps, growth []float64
	turns := make([]int, len(rows)) // of the session that starts here
	for i, r := range rows {
		s.Of[i] = none
		if previous[i] == outside {
			continue
		}
		s.Requests++
		if previous[i] == none {
			s.Sessions++
			s.Of[i] = int32(i)
			turns[i] = 1
			continue
		}
		before := rows[previous[i]]
		s.Of[i] = s.Of[previous[i]]
		turns[s.Of[i]]++
		growth = append(growth, float64(r.isl-before.isl))
		if gap := r.at - before.at; !math.IsNaN(gap) {
			gaps = append(gaps, max(gap, 0))
		}
	}
	var byTurns counts
	for _, n := range turns {
		if n > 0 {
			byTurns.add(n, 1)
		}
		if n > 1 {
			s.MultiTurn++
		}
	}
	s.Turns, s.Gap, s.Growth = byTurns.sample(), stats.Of(gaps), stats.Of(growth)
	return s
}

// sessionCounter tracks session ids.
type sessionCounter struct {
	latest   map[string]int32 // turn of each session
	previous []int32          // of each row, up to the last with an id
	delays   []float64
}

func (c *sessionCounter) add(row int, r trace.Request) {
	if r.SessionID == "" {
		return
	}
	if c.latest == nil {
		c.latest = map[string]int32{}
	}
	c.fill(row)
	before, later := c.latest[r.SessionID]
	if !later {
		before = none
	}
	c.previous = append(c.previous, before)
	c.latest[r.SessionID] = int32(row)
	if later && r.Delay.Set {
		c.delays = append(c.delays, r.Delay.Value)
	}
}

// fill marks the rows before row that have no entry yet as outside.
func (c *sessionCounter) fill(row int) {
	for len(c.previous) < row {
		c.previous = append(c.previous, outside)
	}
}

// result returns nil if no row has an id.
func (c *sessionCounter) result(rows []row) *Sessions {
	if c.latest == nil {
		return nil
	}
	c.fill(len(rows))
	s := sessionsOf(rows, c.previous)
	s.Delay = stats.Of(c.delays)
	return s
}
