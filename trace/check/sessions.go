package check

import (
	"hash/maphash"
	"math"

	"moontide/trace"
)

// fastestToken is the minimum time in ms between tokens of one answer: few
// engines stream 1,000 tokens a second to one user.
const fastestToken = 1.0

// sessions checks the turns of each session, and the rows that wait for others.
type sessions struct {
	found  *findings
	blocks *blocks
	seed   maphash.Seed
	latest map[uint64]turn // by the hash of the session
	named  map[uint64]turn // by the hash of the request id
	graph  trace.GraphBuilder
}

// turn is what is known of a row that later ones may follow.
type turn struct {
	line     int
	session  uint64 // hash, 0 for none
	at       trace.Opt[float64]
	isl, osl int
	full     int // blocks that are known to be full: all but the last
	// last is the number of the last full block, and lastID its id. The block after it may
	// be partial, and have another id in a longer prompt.
	last   uint32
	lastID uint64
}

func newSessions(found *findings, blocks *blocks) *sessions {
	return &sessions{found: found, blocks: blocks, seed: maphash.MakeSeed(), latest: map[uint64]turn{}, named: map[uint64]turn{}}
}

// add takes the next row, after its blocks were numbered.
func (c *sessions) add(line int, r *trace.Request) {
	c.graph.Add(*r, line)
	t := turn{line: line, at: r.Timestamp, isl: r.InputLength, osl: r.OutputLength, full: max(len(r.HashIDs)-1, 0)}
	if t.full > 0 {
		t.last, t.lastID = c.blocks.numbers[t.full-1], r.HashIDs[t.full-1]
	}
	before, later := turn{}, false
	if r.SessionID != "" {
		t.session = maphash.String(c.seed, r.SessionID)
		before, later = c.latest[t.session]
		c.latest[t.session] = t
	}
	switch {
	case len(r.After) > 0:
		c.waits(line, r, t)
	case r.After != nil || r.SessionID == "":
		c.alone(line, r)
	case later:
		c.follows(r, t, before)
	default:
		c.begins(line, r)
	}
	if r.ID != "" {
		c.named[maphash.String(c.seed, r.ID)] = t
	}
}

// waits checks a row that waits for requests that it names.
func (c *sessions) waits(line int, r *trace.Request, t turn) {
	switch {
	case !r.Timestamp.Set && !r.Delay.Set:
		c.found.add(AfterWithoutDelay, line, "after %.60q, no timestamp, no delay", r.After)
	case r.Timestamp.Set && r.Delay.Set:
		c.found.add(TimestampUnused, line, "timestamp %s, delay %s, after %.60q", ms(r.Timestamp.Value), ms(r.Delay.Value), r.After)
	}
	var latest turn // of the same session
	for _, id := range r.After {
		before, known := c.named[maphash.String(c.seed, id)]
		if !known {
			continue // the graph finds those that no row has
		}
		if !r.Delay.Set {
			c.overlap(t, before, "request_id", id)
		}
		if t.session != 0 && before.session == t.session && before.line > latest.line {
			latest = before
		}
	}
	if latest.line > 0 {
		c.prompt(r, t, latest)
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
func (c *sessions) follows(r *trace.Request, t, before turn) {
	switch {
	case r.Delay.Set && t.at.Set:
		c.found.add(TimestampUnused, t.line, "timestamp %s, delay %s, session_id %.40q", ms(t.at.Value), ms(r.Delay.Value), r.SessionID)
	case r.Delay.Set:
	case !t.at.Set:
		c.found.add(TurnWithoutDelay, t.line, "session_id %.40q, no timestamp, no delay", r.SessionID)
	case before.at.Set && t.at.Value < before.at.Value:
		c.found.add(SessionDisorder, t.line, "timestamp %s after %s on line %d, session_id %.40q", ms(t.at.Value), ms(before.at.Value), before.line, r.SessionID)
	default:
		c.overlap(t, before, "session_id", r.SessionID)
	}
	c.prompt(r, t, before)
}

// overlap checks that a row with a timestamp begins after another can have ended, which is
// that of an id.
func (c *sessions) overlap(t, before turn, what, id string) {
	gap := t.at.Value - before.at.Value
	if t.at.Set && before.at.Set && gap < fastestToken*float64(max(before.osl, 1)) {
		c.found.add(SessionOverlap, t.line, "timestamp %s is %s ms after line %d with output_length %d, %s %.40q",
			ms(t.at.Value), ms(math.Round(gap*1000)/1000), before.line, before.osl, what, id)
	}
}

// prompt compares the prompt of a turn with that of the turn before.
func (c *sessions) prompt(r *trace.Request, t, before turn) {
	blocks := len(r.HashIDs)
	switch {
	case t.isl < before.isl:
		c.found.add(TurnShrinks, t.line, "input_length %d after %d on line %d, session_id %.40q", t.isl, before.isl, before.line, r.SessionID)
	case before.full == 0 || blocks == 0:
	case blocks < before.full || !c.blocks.mayHave(blocks-before.full, before.last):
		c.found.add(TurnDiverges, t.line, "block %d is not %d as on line %d, session_id %.40q", before.full, before.lastID, before.line, r.SessionID)
	}
}

// finish checks which rows wait for which. A replay refuses what [trace.GraphBuilder] does.
func (c *sessions) finish() error {
	defer c.graph.Close()
	graph, err := c.graph.Graph()
	if wrong, ok := err.(*trace.GraphError); ok {
		kind := DuplicateRequestID
		if wrong.Cycle {
			kind = Cycle
		}
		c.found.add(kind, wrong.Line, "%s", wrong.Text)
		return nil
	}
	if err != nil {
		return err
	}
	for _, lost := range graph.LostIDs() {
		c.found.add(MissingRequest, lost.Line, "after names request_id %.40q", lost.ID)
	}
	if graph.Lost() > 0 {
		c.found.of(MissingRequest).Count = graph.Lost()
	}
	return nil
}
