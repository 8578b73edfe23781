package check

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"moontide/trace/spill"
)

// checkNamed checks the request ids, and the rows that wait for requests against these.
func (c *sessions) checkNamed() error {
	var twice turn // the first row with the id of an earlier one that others name
	ids := newIDs(&c.ids)
	defer ids.stop()
	ids.again = func(t, first turn) {
		c.found.addAnywhere(DuplicateRequestID, t.line, "request_id %.40q, as line %d", t.request, first.line)
	}
	ids.ambiguous = func(t turn) {
		if twice.line == 0 || t.line < twice.line {
			twice = t
			twice.request = slices.Clone(t.request)
		}
	}
	for r, err := range c.named.All {
		if err != nil {
			return err
		}
		t, _ := parseTurn(r.Data)
		found, err := ids.find(r.Key, t.line)
		switch {
		case err != nil:
			return err
		case !found:
			c.found.addAnywhere(MissingRequest, t.line, "after names request_id %.40q", t.request)
			continue
		}
		if err := c.waitsFor(t, ids.latest, r.Data); err != nil {
			return err
		}
		c.forward = c.forward || ids.first.line >= t.line
	}
	if err := ids.end(); err != nil {
		return err
	}
	if twice.line > 0 {
		f := c.found.of(DuplicateRequestID)
		f.Severity = Error
		f.Message = fmt.Sprintf("The row has the request_id of an earlier row, and other rows name such an id in after, for example %.40q: which row they wait for is ambiguous, so a replay refuses the trace.", twice.request)
	}
	return nil
}

// waitsFor checks a row against one that it names. data is the form of the row on disk.
func (c *sessions) waitsFor(t, before turn, data []byte) error {
	if !t.delay.Set && t.at.Set && before.at.Set {
		// It cannot begin before the other has ended.
		if gap := t.at.Value - before.at.Value; gap < fastestToken*float64(max(before.osl, 1)) {
			c.found.addAnywhere(SessionOverlap, t.line, "timestamp %s is %s ms after line %d with output_length %d, request_id %.40q", ms(t.at.Value), ms(math.Round(gap*1000)/1000), before.line, before.osl, t.request)
		}
	}
	switch {
	case t.session == 0 || t.session != before.session || before.line >= t.line:
	case t.one:
		c.prompt(t, before)
	default:
		c.row = before.append(append(c.row[:0], data...))
		return sorting(c.several.Add(uint64(t.line), c.row))
	}
	return nil
}

// checkSeveral compares the prompts of rows that name several of their session with the
// last of these.
func (c *sessions) checkSeveral() error {
	var t, latest turn
	var sessionID []byte
	for r, err := range c.several.All {
		if err != nil {
			return err
		}
		next, rest := parseTurn(r.Data)
		before, _ := parseTurn(rest)
		if next.line != t.line {
			if t.line > 0 {
				c.prompt(t, latest)
			}
			sessionID = append(sessionID[:0], next.sessionID...)
			t, latest = next, before
			t.sessionID = sessionID
		}
		if before.line > latest.line {
			latest = before
		}
	}
	if t.line > 0 {
		c.prompt(t, latest)
	}
	return nil
}

// ids finds the rows with a request id, for ids and lines in ascending order.
type ids struct {
	next func() (spill.Record, error, bool)
	stop func()
	err  error
	// upcoming is the next row, if there is one.
	upcoming turn
	key      uint64
	some     bool
	// first and latest are rows of the current id: latest is the last one before a line, or
	// else the first.
	id            uint64
	first, latest turn
	twice         turn // the second row
	found         bool // rows name the id
	// again, if set, is called for each further row of an id, and ambiguous for the second
	// one if other rows name the id.
	again     func(t, first turn)
	ambiguous func(t turn)
}

func newIDs(rows *spill.Sorter) *ids {
	s := &ids{again: func(turn, turn) {}, ambiguous: func(turn) {}}
	s.next, s.stop = iter.Pull2[spill.Record, error](rows.All)
	s.read()
	return s
}

func (s *ids) read() {
	r, err, some := s.next()
	if s.some = some && err == nil; s.some {
		s.upcoming, _ = parseTurn(r.Data)
	}
	s.key, s.err = r.Key, err
}

// step makes the upcoming row the latest one.
func (s *ids) step() {
	t := s.upcoming
	if s.first.line > 0 && s.id == s.key {
		s.again(t, s.first)
		if s.twice.line == 0 {
			s.twice = t
			s.twice.request = slices.Clone(t.request)
		}
		if s.found {
			s.ambiguous(s.twice)
		}
	} else {
		s.id, s.first, s.twice, s.found = s.key, t, turn{}, false
	}
	s.latest = t
	s.latest.sessionID, s.latest.request = nil, nil
	s.read()
}

// find finds the rows with an id that a row on a line names.
func (s *ids) find(id uint64, line int) (bool, error) {
	for s.some && (s.key < id || s.key == id && (s.first.line == 0 || s.id != id || s.upcoming.line < line)) {
		s.step()
	}
	if s.err != nil || s.first.line == 0 || s.id != id {
		return false, s.err
	}
	if s.found = true; s.twice.line > 0 {
		s.ambiguous(s.twice)
	}
	return true, nil
}

// end reads the rest.
func (s *ids) end() error {
	for s.some {
		s.step()
	}
	return s.err
}

// edge is a row that waits for another, both by line.
type edge struct{ row, before int32 }

// checkCycles reports rows that wait for each other. There are none unless a row waits for
// a later one. If so, it takes a byte for each row and 8 for each that it waits for.
func (c *sessions) checkCycles() error {
	if !c.forward {
		return nil
	}
	edges, err := c.edges()
	if err != nil {
		return err
	}
	slices.SortFunc(edges, func(a, b edge) int { return int(a.row) - int(b.row) })
	rows := findCycle(edges)
	if rows == nil {
		return nil
	}
	names, err := c.requests(rows)
	if err != nil {
		return err
	}
	const most = 8
	text := strings.Join(names[:min(len(names), most)], " after ")
	if len(rows) > most {
		text += fmt.Sprintf(", and so on: a cycle of %d", len(rows))
	} else {
		text += " after " + names[0]
	}
	c.found.addAnywhere(Cycle, int(rows[0]), "requests wait for each other: %s", text)
	return nil
}

// edges returns which rows wait for which.
func (c *sessions) edges() (edges []edge, err error) {
	before, session := 0, uint64(0)
	for r, err := range c.turns.All {
		if err != nil {
			return nil, err
		}
		t, _ := parseTurn(r.Data)
		if !t.waits && before > 0 && session == r.Key {
			edges = append(edges, edge{int32(t.line), int32(before)})
		}
		before, session = t.line, r.Key
	}
	ids := newIDs(&c.ids)
	defer ids.stop()
	for r, err := range c.named.All {
		if err != nil {
			return nil, err
		}
		t, _ := parseTurn(r.Data)
		found, err := ids.find(r.Key, t.line)
		if err != nil {
			return nil, err
		}
		if found {
			edges = append(edges, edge{int32(t.line), int32(ids.first.line)})
		}
	}
	return edges, nil
}

// requests returns the names of rows for a message: their request ids or else lines.
func (c *sessions) requests(lines []int32) ([]string, error) {
	names := map[int32]string{}
	for _, line := range lines {
		names[line] = fmt.Sprintf("line %d", line)
	}
	for r, err := range c.ids.All {
		if err != nil {
			return nil, err
		}
		if t, _ := parseTurn(r.Data); names[int32(t.line)] != "" {
			names[int32(t.line)] = fmt.Sprintf("%.40q", t.request)
		}
	}
	named := make([]string, len(lines))
	for i, line := range lines {
		named[i] = names[line]
	}
	return named, nil
}

// visit is a row on the way from one row to those that it waits for.
type visit struct {
	row  int32
	next int // its edge to follow next
}

// findCycle returns rows of which each waits for the next one, and the last one for the
// first, which has the highest line; nil if there are none. The edges are sorted by row.
func findCycle(edges []edge) []int32 {
	const onPath, done = 1, 2
	highest := int32(0)
	for _, e := range edges {
		highest = max(highest, e.row, e.before)
	}
	state := make([]uint8, highest+1)
	begin := func(row int32) visit {
		i, _ := slices.BinarySearchFunc(edges, row, func(e edge, row int32) int { return int(e.row) - int(row) })
		state[row] = onPath
		return visit{row, i}
	}
	for _, e := range edges {
		if state[e.row] != 0 || e.before < e.row {
			continue // a cycle has an edge to a later row, or to itself
		}
		path := []visit{begin(e.row)}
		for len(path) > 0 {
			top := &path[len(path)-1]
			if top.next == len(edges) || edges[top.next].row != top.row {
				state[top.row] = done
				path = path[:len(path)-1]
				continue
			}
			before := edges[top.next].before
			top.next++
			switch state[before] {
			case 0:
				path = append(path, begin(before))
			case onPath:
				return cycle(path, before)
			}
		}
	}
	return nil
}

// cycle returns the end of a path from a row on, turned so that the highest is first.
func cycle(path []visit, from int32) (rows []int32) {
	for _, v := range path {
		if v.row == from || rows != nil {
			rows = append(rows, v.row)
		}
	}
	highest := slices.Index(rows, slices.Max(rows))
	return slices.Concat(rows[highest:], rows[:highest])
}
