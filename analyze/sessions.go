package analyze

import (
	"math"
	"slices"
	"strconv"

	"moontide/trace"
	"moontide/trace/block"
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
func sessionsOf(rows *rows, previous func(row int) int32, apart map[int32]bool) *Sessions {
	s := &Sessions{Of: make([]int32, rows.len())}
	var gaps, growth stats.Collector
	turns := make([]int32, rows.len()) // of the session that starts here
	for i, r := range rows.all {
		s.Of[i] = none
		last := previous(i)
		if last == outside {
			continue
		}
		s.Requests++
		if last == none {
			s.Sessions++
			s.Of[i] = int32(i)
			turns[i] = 1
			continue
		}
		before := rows.at(int(last))
		s.Of[i] = s.Of[last]
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
	sessions, requests names
	latest             block.List[tail]  // turn of each session, by number
	named              block.List[tail]  // rows by the number of their request id
	previous           block.List[int32] // of each row, up to the last with an id
	turns              block.List[laterTurn]
	apart              map[int32]bool // rows that follow another turn than the latest, or none
	parallel           int            // rows that follow none
	delays             map[trace.DelayKind][]float64
	graph              trace.GraphBuilder
	graphed            bool // rows are added to graph
	waits              bool // rows have after
	some               bool // rows have session ids
	ids                bool // rows of sessions have block ids
}

func (c *sessionCounter) add(row int, r *trace.Request, line func() int) known {
	is := known{session: none, request: none}
	if r.SessionID == "" && r.ID == "" && r.After == nil {
		c.addToGraph(row, r, none, line)
		return is
	}
	var latest tail
	if r.SessionID != "" {
		is.session = int32(c.sessions.number(r.SessionID))
		latest = *slot(&c.latest, uint32(is.session))
		is.later = latest.row > 0
	}
	c.addToGraph(row, r, is.session, line)
	c.waits = c.waits || r.After != nil
	if r.Delay.Set && (is.later && r.After == nil || len(r.After) > 0) {
		if c.delays == nil {
			c.delays = map[trace.DelayKind][]float64{}
		}
		c.delays[r.DelayKind] = append(c.delays[r.DelayKind], r.Delay.Value)
	}
	own := tailOf(r, row, is.session)
	if is.session != none {
		c.follow(row, r, latest)
		*slot(&c.latest, uint32(is.session)) = own
	}
	if r.ID != "" {
		is.request = int32(c.requests.number(r.ID))
		*slot(&c.named, uint32(is.request)) = own
	}
	return is
}

// follow takes a row of a session and the latest turn of it, if there is one.
func (c *sessionCounter) follow(row int, r *trace.Request, latest tail) {
	c.some, c.ids = true, c.ids || len(r.HashIDs) > 0
	c.fill(row)
	c.previous.Add(latest.row - 1) // none if there is none
	if latest.row == 0 {
		return
	}
	before, follows := c.before(r, latest)
	if follows {
		c.turns.Add(before.next(r, row))
	} else {
		c.parallel++
	}
	if before.row != latest.row {
		if c.apart == nil {
			c.apart = map[int32]bool{}
		}
		c.apart[int32(row)] = true
	}
}

// before returns the turn of the same session that a row follows, if any.
func (c *sessionCounter) before(r *trace.Request, latest tail) (before tail, follows bool) {
	if r.After == nil {
		return latest, true
	}
	for _, id := range r.After {
		if t := *slot(&c.named, c.requests.number(id)); t.row > before.row && t.session == latest.session {
			before = t
		}
	}
	return before, before.row > 0
}

// fill marks the rows before row that have no entry yet as outside.
func (c *sessionCounter) fill(row int) {
	for c.previous.Len() < row {
		c.previous.Add(outside)
	}
}

// addToGraph adds a row to the graph, which is made from the first row on that has a
// request id or waits for others: it takes much memory.
func (c *sessionCounter) addToGraph(row int, r *trace.Request, session int32, line func() int) {
	if r.ID != "" || r.After != nil {
		c.beginGraph(row)
	}
	if !c.graphed {
		return
	}
	number := 0
	if line != nil {
		number = line()
	}
	c.graph.Add(trace.Request{SessionID: sessionName(session), ID: r.ID, After: r.After}, number)
}

// beginGraph adds the first rows to the graph, unless it has them.
func (c *sessionCounter) beginGraph(rows int) {
	if c.graphed {
		return
	}
	c.graphed = true
	c.fill(rows)
	sessions := make([]int32, rows) // of each row
	next := int32(0)
	for row := range rows {
		switch previous := *c.previous.At(uint32(row)); previous {
		case outside:
			sessions[row] = none
		case none:
			sessions[row] = next
			next++
		default:
			sessions[row] = sessions[previous]
		}
		c.graph.Add(trace.Request{SessionID: sessionName(sessions[row])}, 0)
	}
}

// sessionName returns an id for the session with a number.
func sessionName(number int32) string {
	if number == none {
		return ""
	}
	return strconv.Itoa(int(number))
}

// result returns nil if no row has an id. It frees what it was made from.
func (c *sessionCounter) result(rows *rows, size trace.BlockSize) *Sessions {
	if !c.some {
		return nil
	}
	c.fill(rows.len())
	s := sessionsOf(rows, func(row int) int32 { return *c.previous.At(uint32(row)) }, c.apart)
	s.Think, s.Tool = stats.Of(c.delays[trace.Think]), stats.Of(c.delays[trace.Tool])
	s.Delay = stats.Of(slices.Concat(c.delays[""], c.delays[trace.Think], c.delays[trace.Tool]))
	if c.ids {
		s.Relations = &Relations{Parallel: c.parallel}
		for t := range c.turns.All {
			s.Relations.add(t, rows, size.Tokens)
		}
	}
	c.previous, c.turns = block.List[int32]{}, block.List[laterTurn]{}
	return s
}
