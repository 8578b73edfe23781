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

// maxChildren is the maximum number of different blocks that may follow the end of
// a prompt that has a next turn. Edits and branching agents create a few; a system
// prompt has one per conversation.
const maxChildren = 16

// turnFinder finds previous turns from block ids, in row order.
type turnFinder struct {
	*prefixCounter
	rows *rows
	size int // of a block, in tokens
	// turns has, for each row whose last full block was new with it, that block
	// and the latest row that ended with it.
	turns []turn
}

type turn struct {
	end    uint32
	latest int32 // or none
}

// sessions infers sessions from block ids; it returns nil if there are none.
func (c *prefixCounter) sessions(rows *rows, size block.Size) *Sessions {
	if c.total == 0 {
		return nil
	}
	f := turnFinder{prefixCounter: c, rows: rows, size: size.Tokens, turns: make([]turn, rows.len())}
	previous := make([]int32, rows.len())
	for i := range previous {
		f.turns[i].latest, previous[i] = none, outside
	}
	for i, runs := range c.runs.byRow {
		previous[i] = none
		if len(runs) != 1 { // not chained
			continue
		}
		if before := f.previous(runs[0]); before != none && rows.at(int(before)).isl < rows.at(i).isl {
			previous[i] = before
		}
		f.end(i, runs[0])
	}
	s := sessionsOf(rows, previous)
	s.Inferred = true
	return s
}

// previous walks up the path of a prompt to the first block at which an earlier
// turn ends, and returns the latest row that ended there, or none.
func (f *turnFinder) previous(r run) int32 {
	for r.seen > 0 {
		at := r.above
		r = f.runWith(at)
		if t := f.turns[r.row]; t.latest != none && t.end <= at {
			return t.latest
		}
	}
	return none
}

// end records the last full block of row i. If an earlier row introduced that
// block, it is recorded only if that row ended there too.
func (f *turnFinder) end(i int, r run) {
	full := min(int(f.rows.at(i).isl)/f.size, int(r.seen+r.fresh))
	if own := full - int(r.seen); own > 0 {
		if end := r.first + uint32(own-1); f.children(r, end) <= maxChildren {
			f.turns[i] = turn{end: end, latest: int32(i)}
		}
		return
	}
	if full == 0 {
		return
	}
	at := f.above(r.above, int(r.seen)-full)
	if t := &f.turns[f.runWith(at).row]; t.latest != none && t.end == at {
		t.latest = int32(i)
	}
}

// children returns the number of children of a block that was new in a run: the
// next one of the run, and the first of each run of new blocks below it.
func (c *prefixCounter) children(r run, number uint32) int {
	n := 0
	if s := c.repeatedBlock(number); s != nil {
		n = int(s.runs)
	}
	if number+1 < r.end() {
		n++
	}
	return n
}

// relation returns how the prompt of a row relates to that of the row before in its
// session. A block has size tokens.
func (c *prefixCounter) relation(rows *rows, row, before, size int) block.Relation {
	return block.RelationOf(int(rows.at(row).isl), int(rows.at(before).isl), size, func(index int) (same, known bool) {
		last, known := c.blockAt(uint32(before), index)
		own, ownKnown := c.blockAt(uint32(row), index)
		return own == last, known && ownKnown
	})
}

// blockAt returns the number of the block at an index, from 0, of a row's prompt, and
// whether it has one.
func (c *prefixCounter) blockAt(row uint32, index int) (number uint32, ok bool) {
	for i := c.runs.firstOf(row); int(i) < c.runs.list.Len(); i++ {
		r := *c.runs.list.At(i)
		switch {
		case r.row != row:
			return 0, false
		case index < int(r.seen):
			return c.above(r.above, int(r.seen)-1-index), true
		case index < int(r.seen+r.fresh):
			return r.first + uint32(index) - uint32(r.seen), true
		}
		index -= int(r.seen + r.fresh)
	}
	return 0, false
}

// above returns the block that is a number of blocks before another in chained prompts.
func (c *prefixCounter) above(number uint32, up int) uint32 {
	for r := c.runWith(number); up > int(number-r.first) && r.seen > 0; r = c.runWith(number) {
		up -= int(number-r.first) + 1
		number = r.above
	}
	return number - uint32(up)
}
