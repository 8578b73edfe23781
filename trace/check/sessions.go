package check

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/spill"
)

// fastestToken is the minimum time in ms between tokens of one response: few
// engines stream 1,000 tokens a second to one user.
const fastestToken = 1.0

// sessions checks the turns of each session, and the rows that wait for others. Rows of
// one session, or of one request id, may be anywhere in the trace, so they are sorted on
// disk.
type sessions struct {
	found  *findings
	blocks *blocks
	seed   maphash.Seed
	graph  trace.GraphBuilder
	// pairs are rows that wait for one of their session, by line, each with that one.
	pairs spill.Sorter
	data  []byte
	// unordered is set if a row names a row that is not above it, or if several rows
	// share an id. Otherwise the graph cannot have errors.
	unordered bool
}

// turn holds the facts of a row that later rows are compared with.
type turn struct {
	facts
	sessionID string // its beginning, for messages
}

// facts are the part of a turn that has a fixed size on disk.
type facts struct {
	Line      uint32 // truncated, as that of known is
	Session   uint64 // hash, 0 for none
	At, Delay trace.Opt[float64]
	ISL, OSL  int32
	Blocks    int32
	Last      uint32 // number of its last block, if it has any
	// Full is the number of the block before the last, and FullID its id. It is full,
	// while the last one may be partial and have another id in a longer prompt.
	Full   uint32
	FullID uint64
}

func newSessions(found *findings, blocks *blocks) *sessions {
	return &sessions{found: found, blocks: blocks, seed: maphash.MakeSeed(), pairs: spill.Sorter{Memory: 4 << 20}}
}

// add takes the next row, after its blocks were numbered.
func (c *sessions) add(line int, r *trace.Request) (err error) {
	switch {
	case len(r.After) > 0:
		c.waits(line, r)
	case r.After != nil || r.SessionID == "":
		c.alone(line, r)
	}
	if r.SessionID == "" && r.ID == "" && len(r.After) == 0 {
		c.graph.Skip()
		return nil
	}
	t := turn{sessionID: fmt.Sprintf("%.40s", r.SessionID), facts: facts{
		Line: uint32(line), At: r.Timestamp, Delay: r.Delay,
		ISL: int32(r.InputLength), OSL: int32(r.OutputLength), Blocks: int32(len(r.HashIDs)),
	}}
	if r.SessionID != "" {
		t.Session = maphash.String(c.seed, r.SessionID)
	}
	if t.Blocks > 0 {
		t.Last = c.blocks.numbers[t.Blocks-1]
	}
	if t.Blocks > 1 {
		t.Full, t.FullID = c.blocks.numbers[t.Blocks-2], r.HashIDs[t.Blocks-2]
	}
	c.data, err = t.append(c.data[:0])
	c.graph.Add(*r, line, c.data...)
	return err
}

// close removes the temporary files.
func (c *sessions) close() {
	c.graph.Close()
	c.pairs.Close()
}

func (t turn) append(b []byte) ([]byte, error) {
	b, err := binary.Append(b, binary.LittleEndian, &t.facts)
	return append(append(b, byte(len(t.sessionID))), t.sessionID...), err
}

// parseTurn returns the first turn in b, and what is behind it.
func parseTurn(b []byte) (t turn, rest []byte) {
	size, _ := binary.Decode(b, binary.LittleEndian, &t.facts) // written by append
	b = b[size:]
	end := 1 + int(b[0])
	t.sessionID = string(b[1:end])
	return t, b[end:]
}

// waits checks the times of a row that waits for requests that it names.
func (c *sessions) waits(line int, r *trace.Request) {
	switch {
	case !r.Timestamp.Set && !r.Delay.Set:
		c.found.add(AfterWithoutDelay, line, "after %.60q, no timestamp, no delay", r.After)
	case r.Timestamp.Set && r.Delay.Set:
		c.found.add(TimestampUnused, line, "timestamp %s, delay %s, after %.60q", ms(r.Timestamp.Value), ms(r.Delay.Value), r.After)
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

// compare compares each turn with the turn before it.
func (c *sessions) compare() error {
	var before turn
	for n, err := range c.graph.All {
		if err != nil {
			return err
		}
		t, _ := parseTurn(n.Data)
		switch {
		case n.Role == trace.HasID:
			c.unordered = c.unordered || !n.First
		case n.Role == trace.WaitsFor && (len(n.Owners) == 0 || n.Owners[0].Row >= n.Row):
			c.unordered = true
		case n.Role == trace.WaitsFor:
			if err := c.named(t, n); err != nil {
				return err
			}
		case n.First && n.HasAfter:
		case n.First:
			c.begins(t)
		case !n.HasAfter:
			c.follows(t, before)
		}
		if n.Role == trace.InSession {
			before = t
		}
	}
	return c.comparePairs()
}

// named checks a row against an earlier one that it names.
func (c *sessions) named(t turn, n *trace.NamedRow) error {
	before, _ := parseTurn(n.Owners[0].Data)
	if !t.Delay.Set {
		c.overlap(t, before, "request_id", n.ID)
	}
	if t.Session == 0 || t.Session != before.Session {
		return nil
	}
	return c.pairs.Add(uint64(t.Line), slices.Concat(n.Data, n.Owners[0].Data))
}

// comparePairs compares the prompt of each row that names rows of its session with the
// prompt of the last of these.
func (c *sessions) comparePairs() error {
	var t, latest turn
	for r, err := range c.pairs.All {
		if err != nil {
			return err
		}
		next, rest := parseTurn(r.Data)
		before, _ := parseTurn(rest)
		if next.Line != t.Line {
			c.prompt(t, latest)
			latest = turn{}
		}
		if t = next; before.Line > latest.Line {
			latest = before
		}
	}
	c.prompt(t, latest)
	return nil
}

// begins checks the times of a session's first row.
func (c *sessions) begins(t turn) {
	switch {
	case !t.At.Set:
		c.found.add(SessionNotBegun, int(t.Line), "session_id %q, no timestamp", t.sessionID)
	case t.Delay.Value > 0:
		c.found.add(DelayUnused, int(t.Line), "timestamp %s, delay %s, first of session_id %q", ms(t.At.Value), ms(t.Delay.Value), t.sessionID)
	}
}

// follows checks a turn against the previous one.
func (c *sessions) follows(t, before turn) {
	switch {
	case t.Delay.Set && t.At.Set:
		c.found.add(TimestampUnused, int(t.Line), "timestamp %s, delay %s, session_id %q", ms(t.At.Value), ms(t.Delay.Value), t.sessionID)
	case t.Delay.Set:
	case !t.At.Set:
		c.found.add(TurnWithoutDelay, int(t.Line), "session_id %q, no timestamp, no delay", t.sessionID)
	case before.At.Set && t.At.Value < before.At.Value:
		c.found.add(SessionDisorder, int(t.Line), "timestamp %s after %s on line %d, session_id %q", ms(t.At.Value), ms(before.At.Value), before.Line, t.sessionID)
	default:
		c.overlap(t, before, "session_id", t.sessionID)
	}
	c.prompt(t, before)
}

// overlap checks that a row with a timestamp begins after another can have ended, which is
// that of an id.
func (c *sessions) overlap(t, before turn, what, id string) {
	gap := t.At.Value - before.At.Value
	if t.At.Set && before.At.Set && gap < fastestToken*float64(max(before.OSL, 1)) {
		c.found.add(SessionOverlap, int(t.Line), "timestamp %s is %s ms after line %d with output_length %d, %s %q",
			ms(t.At.Value), ms(math.Round(gap*1000)/1000), before.Line, before.OSL, what, id)
	}
}

// prompt compares the prompt of a turn with that of the turn before.
func (c *sessions) prompt(t, before turn) {
	full := max(before.Blocks-1, 0)
	switch {
	case t.ISL < before.ISL:
		c.found.add(TurnShrinks, int(t.Line), "input_length %d after %d on line %d, session_id %q", t.ISL, before.ISL, before.Line, t.sessionID)
	case full == 0 || t.Blocks == 0:
	case t.Blocks < full || !c.blocks.mayHave(t.Last, int(t.Blocks-full), before.Full):
		c.found.add(TurnDiverges, int(t.Line), "block %d is not %d as on line %d, session_id %q", full, before.FullID, before.Line, t.sessionID)
	}
}

// finish checks the turns, and which rows wait for which. A replay refuses what
// [trace.GraphBuilder] does.
func (c *sessions) finish() error {
	if err := c.compare(); err != nil {
		return fmt.Errorf("sorting rows: %w", err)
	}
	if !c.unordered {
		return nil
	}
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
