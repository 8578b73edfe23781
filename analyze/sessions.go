package analyze

import (
	"math"
	"slices"

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
	// milliseconds, if the trace has timestamps: think time plus response time, which
	// is estimated for turns that have a delay instead. Negative times are treated as 0.
	Gap stats.Sample
	// Delay is the think time in milliseconds of the later turns that specify it
	// (key delay), measured from the end of the previous turn. It is never
	// inferred. Think and Tool are those of one delay_kind.
	Delay, Think, Tool stats.Sample
	// Growth is the ISL of each later turn minus that of the previous turn, in
	// tokens. It is negative if a session continues with a shorter prompt.
	Growth stats.Sample
	// Relations is nil if sessions were inferred, or if no row of a session has a block
	// id.
	Relations *Relations
}

const (
	none    = -1 // the previous turn of a first turn
	outside = -2 // the previous turn of a row that is not covered
)

// sessionsOf builds sessions from the row of each row's previous turn, none, or
// outside. The rows in apart do not follow that turn.
func sessionsOf(rows *rows, previous []int32, apart map[int32]bool) *Sessions {
	s := &Sessions{Of: make([]int32, rows.len())}
	var gaps, growth stats.Collector
	turns := make([]int32, rows.len()) // of the session that starts here
	for i, r := range rows.all {
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
		before := rows.at(int(previous[i]))
		s.Of[i] = s.Of[previous[i]]
		turns[s.Of[i]]++
		if apart[int32(i)] {
			continue
		}
		growth.Add(float64(r.isl - before.isl))
		if gap := r.at - before.at; !math.IsNaN(gap) {
			gaps.Add(max(gap, 0))
		}
	}
	var byTurns counts
	for _, n := range turns {
		if n > 0 {
			byTurns.add(int(n), 1)
		}
		if n > 1 {
			s.MultiTurn++
		}
	}
	s.Turns, s.Gap, s.Growth = byTurns.sample(), gaps.Sample(), growth.Sample()
	return s
}

// sessionCounter tracks session ids and what rows wait for.
type sessionCounter struct {
	latest   map[string]tail // turn of each session
	named    map[string]tail // rows by request id
	previous []int32         // of each row, up to the last with an id
	turns    []laterTurn
	apart    map[int32]bool // rows that follow another turn than the latest, or none
	parallel int            // rows that follow none
	delays   map[trace.DelayKind][]float64
	graph    trace.GraphBuilder
	waits    bool // rows have after
	ids      bool // rows of sessions have block ids
}

func (c *sessionCounter) add(row int, r trace.Request, line func() int) {
	if r.SessionID == "" && r.ID == "" && r.After == nil {
		c.graph.Skip()
		return
	}
	c.waits = c.waits || r.After != nil
	at := 0
	if line != nil {
		at = line()
	}
	c.graph.Add(r, at)
	if c.latest == nil {
		c.latest, c.named, c.apart, c.delays = map[string]tail{}, map[string]tail{}, map[int32]bool{}, map[trace.DelayKind][]float64{}
	}
	latest, later := c.latest[r.SessionID]
	if r.Delay.Set && (later && r.After == nil || len(r.After) > 0) {
		c.delays[r.DelayKind] = append(c.delays[r.DelayKind], r.Delay.Value)
	}
	own := tailOf(r, row)
	if r.ID != "" {
		c.named[r.ID] = own
	}
	if r.SessionID == "" {
		return
	}
	c.ids = c.ids || own.blocks > 0
	c.fill(row)
	c.latest[r.SessionID] = own
	if !later {
		c.previous = append(c.previous, none)
		return
	}
	c.previous = append(c.previous, latest.row)
	before, follows := c.before(r, latest)
	if follows {
		c.turns = append(c.turns, before.next(r, row))
	} else {
		c.parallel++
	}
	if before.row != latest.row {
		c.apart[int32(row)] = true
	}
}

// before returns the turn of the same session that a row follows, if any.
func (c *sessionCounter) before(r trace.Request, latest tail) (before tail, follows bool) {
	if r.After == nil {
		return latest, true
	}
	before.row = none
	for _, id := range r.After {
		if t, known := c.named[id]; known && t.session == r.SessionID && t.row > before.row {
			before = t
		}
	}
	return before, before.row != none
}

// fill marks the rows before row that have no entry yet as outside.
func (c *sessionCounter) fill(row int) {
	for len(c.previous) < row {
		c.previous = append(c.previous, outside)
	}
}

// result returns nil if no row has an id.
func (c *sessionCounter) result(rows *rows, size trace.BlockSize) *Sessions {
	if len(c.latest) == 0 {
		return nil
	}
	c.fill(rows.len())
	s := sessionsOf(rows, c.previous, c.apart)
	s.Think, s.Tool = stats.Of(c.delays[trace.Think]), stats.Of(c.delays[trace.Tool])
	s.Delay = stats.Of(slices.Concat(c.delays[""], c.delays[trace.Think], c.delays[trace.Tool]))
	if c.ids {
		s.Relations = &Relations{Parallel: c.parallel}
		for _, t := range c.turns {
			s.Relations.add(t, rows, size.Tokens)
		}
	}
	return s
}
