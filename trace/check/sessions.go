package check

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"

	"moontide/trace"
	"moontide/trace/spill"
)

// fastestToken is the minimum time in ms between tokens of one answer: few
// engines stream 1,000 tokens a second to one user.
const fastestToken = 1.0

// sessions checks the turns of each session, and the rows that wait for others. Rows of one
// session, or of one request id, may be anywhere in the trace, so they are sorted on disk.
type sessions struct {
	found  *findings
	blocks *blocks
	seed   maphash.Seed
	turns  spill.Sorter // rows by session
	ids    spill.Sorter // rows by request id
	named  spill.Sorter // rows by the ids in after
	// several holds, by line, rows that name several rows of their session, with each.
	several spill.Sorter
	forward bool   // a row waits for a later one
	row     []byte // to be reused
}

// turnMemory is the memory of each sorter in bytes.
const turnMemory = 16 << 20

func newSessions(found *findings, blocks *blocks) *sessions {
	c := &sessions{found: found, blocks: blocks, seed: maphash.MakeSeed()}
	for _, s := range c.sorters() {
		s.Memory = turnMemory
	}
	return c
}

func (c *sessions) sorters() []*spill.Sorter {
	return []*spill.Sorter{&c.turns, &c.ids, &c.named, &c.several}
}

func (c *sessions) close() {
	for _, s := range c.sorters() {
		s.Close()
	}
}

// add takes the next row, after its blocks were numbered.
func (c *sessions) add(line int, r *trace.Request) error {
	if r.DelayKind != "" && !r.Delay.Set {
		c.found.add(KindWithoutDelay, line, "delay_kind %s, no delay", r.DelayKind)
	}
	switch {
	case len(r.After) > 0:
		c.waits(line, r)
	case r.After != nil || r.SessionID == "":
		c.alone(line, r)
	}
	if r.SessionID == "" && r.ID == "" && r.After == nil {
		return nil
	}
	t := c.turn(line, r)
	var errs []error
	if r.SessionID != "" {
		errs = append(errs, c.sort(&c.turns, t.session, t))
	}
	for _, id := range r.After {
		t.request = inMessage(id)
		errs = append(errs, c.sort(&c.named, maphash.String(c.seed, id), t))
	}
	if r.ID != "" {
		t.request = inMessage(r.ID)
		errs = append(errs, c.sort(&c.ids, maphash.String(c.seed, r.ID), t))
	}
	return errors.Join(errs...)
}

func (c *sessions) turn(line int, r *trace.Request) turn {
	t := turn{
		line: line, at: r.Timestamp, delay: r.Delay, isl: r.InputLength, osl: r.OutputLength,
		waits: r.After != nil, one: len(r.After) == 1, blocks: len(r.HashIDs), sessionID: inMessage(r.SessionID),
	}
	if r.SessionID != "" {
		t.session = maphash.String(c.seed, r.SessionID)
	}
	if t.blocks > 0 {
		t.last = c.blocks.numbers[t.blocks-1]
	}
	if t.blocks > 1 {
		t.before, t.beforeID = c.blocks.numbers[t.blocks-2], r.HashIDs[t.blocks-2]
	}
	return t
}

func (c *sessions) sort(to *spill.Sorter, key uint64, t turn) error {
	c.row = t.append(c.row[:0])
	return sorting(to.Add(key, c.row))
}

func sorting(err error) error {
	if err != nil {
		return fmt.Errorf("sorting rows: %w", err)
	}
	return nil
}

// waits checks the times of a row that waits for requests that it names.
func (c *sessions) waits(line int, r *trace.Request) {
	if !r.Timestamp.Set && !r.Delay.Set {
		c.found.add(AfterWithoutDelay, line, "after %.60q, no timestamp, no delay", r.After)
	}
	if r.Timestamp.Set && r.Delay.Set {
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

// finish checks the rows against those of their session and those that they wait for.
func (c *sessions) finish() error {
	var before turn
	var session uint64
	for r, err := range c.turns.All {
		if err != nil {
			return err
		}
		t, _ := parseTurn(r.Data)
		switch {
		case t.waits: // not for the turn before
		case before.line > 0 && session == r.Key:
			c.follows(t, before)
		default:
			c.begins(t)
		}
		before, session = t, r.Key
	}
	if err := c.checkNamed(); err != nil {
		return err
	}
	if err := c.checkSeveral(); err != nil {
		return err
	}
	return c.checkCycles()
}

// begins checks the times of a session's first row.
func (c *sessions) begins(t turn) {
	switch {
	case !t.at.Set:
		c.found.addAnywhere(SessionNotBegun, t.line, "session_id %.40q, no timestamp", t.sessionID)
	case t.delay.Value > 0:
		c.found.addAnywhere(DelayUnused, t.line, "timestamp %s, delay %s, first of session_id %.40q", ms(t.at.Value), ms(t.delay.Value), t.sessionID)
	}
}

// follows checks a turn against the previous one.
func (c *sessions) follows(t, before turn) {
	switch {
	case t.delay.Set && t.at.Set:
		c.found.addAnywhere(TimestampUnused, t.line, "timestamp %s, delay %s, session_id %.40q", ms(t.at.Value), ms(t.delay.Value), t.sessionID)
	case t.delay.Set:
	case !t.at.Set:
		c.found.addAnywhere(TurnWithoutDelay, t.line, "session_id %.40q, no timestamp, no delay", t.sessionID)
	case before.at.Set:
		c.overlap(t, before)
	}
	c.prompt(t, before)
}

// prompt compares the prompt of a turn with that of the turn before.
func (c *sessions) prompt(t, before turn) {
	switch {
	case t.isl < before.isl:
		c.found.addAnywhere(TurnShrinks, t.line, "input_length %d after %d on line %d, session_id %.40q", t.isl, before.isl, before.line, t.sessionID)
	case before.full() == 0 || t.blocks == 0:
	case t.blocks < before.full() || !c.blocks.mayHave(t.last, t.blocks-before.full(), before.before):
		c.found.addAnywhere(TurnDiverges, t.line, "block %d is not %d as on line %d, session_id %.40q", before.full(), before.beforeID, before.line, t.sessionID)
	}
}

func (c *sessions) overlap(t, before turn) {
	gap := t.at.Value - before.at.Value
	switch {
	case gap < 0:
		c.found.addAnywhere(SessionDisorder, t.line, "timestamp %s after %s on line %d, session_id %.40q", ms(t.at.Value), ms(before.at.Value), before.line, t.sessionID)
	case gap < fastestToken*float64(max(before.osl, 1)):
		c.found.addAnywhere(SessionOverlap, t.line, "timestamp %s is %s ms after line %d with output_length %d, session_id %.40q", ms(t.at.Value), ms(math.Round(gap*1000)/1000), before.line, before.osl, t.sessionID)
	}
}
