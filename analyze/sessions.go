package analyze

import (
	"math"
	"slices"

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
	Inferred  bool `json:"inferred"`
	Sessions  int  `json:"sessions"`
	MultiTurn int  `json:"multi_turn"` // sessions with more than one turn
	Requests  int  `json:"requests"`   // rows covered
	// Of holds, for each row, the row of its session's first turn, both from 0; -1
	// for rows not covered.
	Of []int32 `json:"-"`
	// Turns is the number of turns of each session.
	Turns stats.Sample `json:"turns"`
	// Gap is the time from the arrival of a turn to that of the next one in
	// milliseconds, if the trace has timestamps: think time plus response time, which
	// is estimated for turns that have a delay instead. Negative times are treated as 0.
	Gap stats.Sample `json:"gap_ms"`
	// Delay is the think time in milliseconds of the later turns that specify it
	// (key delay), measured from the end of the previous turn. It is never
	// inferred. Think and Tool are those of one delay_kind.
	Delay stats.Sample `json:"delay_ms"`
	Think stats.Sample `json:"think_ms"`
	Tool  stats.Sample `json:"tool_ms"`
	// Growth is the ISL of each later turn minus that of the previous turn, in
	// tokens. It is negative if a session continues with a shorter prompt.
	Growth stats.Sample `json:"growth"`
	// Relations counts the later turns by their prompts, whose block ids have to be
	// chained to their prefixes. It is nil if sessions were inferred, or if no row of a
	// session has a block id.
	Relations *block.Relations `json:"relations"`
}

const (
	none    = -1 // the previous turn of a first turn
	outside = -2 // the previous turn of a row that is not covered
)

// sessionsOf builds sessions from the row of each row's previous turn, none, or
// outside; it overwrites previous.
func sessionsOf(rows *rows, previous []int32) *Sessions {
	s := &Sessions{Of: previous}
	var gaps, growth stats.Collector
	turns := make([]int32, rows.len()) // of the session that starts here
	for i, r := range rows.all {
		last := previous[i]
		if last == outside {
			s.Of[i] = none
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
		growth.Add(float64(r.isl - before.isl))
		if gap := r.at() - before.at(); !math.IsNaN(gap) {
			gaps.Add(max(gap, 0))
		}
	}
	for _, n := range turns {
		if n > 1 {
			s.MultiTurn++
		}
	}
	s.Turns, s.Gap, s.Growth = countsOf(turns), gaps.Sample(), growth.Sample()
	return s
}

// sessionCounter collects sessions and what rows wait for.
type sessionCounter struct {
	builder trace.GraphBuilder
	named   bool // rows have session ids
	waits   bool // rows have after
	timed   bool // rows have a timestamp
	untimed bool // rows have none
	delays  delays
}

func (c *sessionCounter) add(r *trace.Request, line func() int) {
	c.timed = c.timed || r.Timestamp.Set
	c.untimed = c.untimed || !r.Timestamp.Set
	if r.SessionID == "" && r.ID == "" && r.After == nil {
		c.builder.Skip()
		return
	}
	number := 0
	if line != nil {
		number = line()
	}
	c.builder.Add(*r, number)
	c.named = c.named || r.SessionID != ""
	c.waits = c.waits || r.After != nil
	if len(r.After) > 0 && r.SessionID == "" {
		c.delays.add(r.Delay, r.DelayKind)
	}
}

// graph returns nil if all times are known and rows do not wait for others.
func (c *sessionCounter) graph() (*trace.Graph, error) {
	if !c.waits && !c.untimed {
		return nil, nil
	}
	return c.builder.Graph()
}

// result returns nil if no row has a session id.
func (c *sessionCounter) result(rows *rows, prompts *prefixCounter, size block.Size) (*Sessions, error) {
	if !c.named {
		return nil, nil
	}
	previous := slices.Repeat([]int32{outside}, rows.len())
	relations, ids := &block.Relations{}, false
	latest := int32(none) // turn of the session
	for t, err := range c.builder.All {
		if err != nil {
			return nil, err
		}
		if t.Role != trace.InSession {
			break
		}
		r := rows.at(t.Row)
		ids = ids || r.hasIDs
		if !t.First && !t.HasAfter || r.hasAfter {
			c.delays.add(t.Delay, t.DelayKind)
		}
		if t.First {
			latest = none
		} else {
			relations.Add(prompts.relation(rows, t.Row, int(latest), size.Tokens))
		}
		previous[t.Row], latest = latest, int32(t.Row)
	}
	s := sessionsOf(rows, previous)
	s.Delay, s.Think, s.Tool = c.delays.all.Sample(), c.delays.think.Sample(), c.delays.tool.Sample()
	if ids {
		s.Relations = relations
	}
	return s, nil
}

// delays are those of the rows that have one, and those of each kind.
type delays struct{ all, think, tool stats.Collector }

func (d *delays) add(delay trace.Opt[float64], kind trace.DelayKind) {
	if !delay.Set {
		return
	}
	d.all.Add(delay.Value)
	switch kind {
	case trace.Think:
		d.think.Add(delay.Value)
	case trace.Tool:
		d.tool.Add(delay.Value)
	}
}
