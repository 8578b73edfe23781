package analyze

import (
	"math"

	"moontide/trace"
	"moontide/trace/stats"
)

// Sessions is which requests are turns of one conversation. Where rows have a
// session id it covers these rows, and a session is the rows of an id in their
// order.
//
// Else it is inferred from the block ids and covers the rows that have them. A
// request is the next turn of an earlier one if it is longer (by ISL) and its
// leading blocks hold all full blocks of the earlier prompt, whose partial last
// block has changed its id by growing. Of several such requests the one that
// has most blocks is the turn before, and of equals the most recent; if that is
// not shorter, the request repeats it and starts a session of its own. A prompt
// with less than a full block, or whose ids cannot be chained to their prefix, is
// nobody's next turn or previous one.
//
// Two rules keep a system prompt, which all sessions start with, from joining
// them. A prompt counts as an earlier turn only if its last full block was new
// with it, or with an earlier request whose last full block it was, too; and
// only if at most 16 different blocks ever follow that block.
type Sessions struct {
	// Inferred says that the sessions come from block ids.
	Inferred bool
	// Requests is the number of rows that are turns, Sessions that of sessions,
	// and MultiTurn that of sessions with more than one turn.
	Requests, Sessions, MultiTurn int
	// Of is, for each row of the trace, the row of its session's first turn,
	// both from 0; -1 for a row that is not a turn.
	Of []int32
	// Turns is the number of turns of each session.
	Turns stats.Sample
	// Gap is the time from the arrival of a turn's previous turn to its own
	// arrival in milliseconds, where both have a timestamp: the think time and
	// the time that the answer before took. A time that runs backwards counts
	// as 0.
	Gap stats.Sample
	// Delay is the think time itself in milliseconds: from the end of the
	// previous turn to this turn, for later turns that state it (key delay). It
	// is never inferred.
	Delay stats.Sample
	// Growth is the ISL of each later turn less that of its previous turn, in
	// tokens. It is negative where a session id goes on with a shorter prompt.
	Growth stats.Sample
}

// maxWays is how many different blocks may follow a prompt that has a next
// turn. A user who goes back to a turn and asks differently makes another way
// on, and so does an agent that asks several things at once; these are few. A
// system prompt has as many ways on as there are conversations.
const maxWays = 16

// none is the previous turn of a first turn.
const none = -1

// sessionsOf gathers what links between rows tell. previous has, for each row, the
// row of its previous turn, or none; a row that is not covered is not a turn.
func sessionsOf(rows []row, previous []int32, covered func(i int) bool) *Sessions {
	s := &Sessions{Of: make([]int32, len(rows))}
	var gaps, growth []float64
	turns := make([]int, len(rows)) // of the session that starts here
	for i, r := range rows {
		s.Of[i] = -1
		if !covered(i) {
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
	var with []int // sessions, by their number of turns
	for _, n := range turns {
		if n > 0 {
			with = count(with, n)
		}
		if n > 1 {
			s.MultiTurn++
		}
	}
	s.Turns, s.Gap, s.Growth = ofCounts(with), stats.Of(gaps), stats.Of(growth)
	return s
}

// sessionCounter follows session ids.
type sessionCounter struct {
	latest   map[string]int32 // turn of each session
	previous []int32          // of each row, up to the last that has an id
	delays   []float64
}

// outside marks rows without an id.
const outside = -2

// add follows a row, whose index it is told.
func (c *sessionCounter) add(i int, r trace.Request) {
	if r.SessionID == "" {
		return
	}
	if c.latest == nil {
		c.latest = map[string]int32{}
	}
	for len(c.previous) < i {
		c.previous = append(c.previous, outside)
	}
	before, later := c.latest[r.SessionID]
	if !later {
		before = none
	}
	c.previous = append(c.previous, before)
	c.latest[r.SessionID] = int32(i)
	if later && r.Delay.Set {
		c.delays = append(c.delays, r.Delay.Value)
	}
}

// result is nil where no row has an id.
func (c *sessionCounter) result(rows []row) *Sessions {
	if c.previous == nil {
		return nil
	}
	s := sessionsOf(rows, c.previous, func(i int) bool {
		return i < len(c.previous) && c.previous[i] != outside
	})
	s.Delay = stats.Of(c.delays)
	return s
}
