package trace

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// Graph holds which rows of a trace wait for which: a row with After waits for the
// requests that it names, any other later turn of a session for the turn before it.
// Rows are numbered from 0. It takes 20 bytes a row of a trace that has sessions or
// After. The nil Graph has no edges. It is immutable and safe for concurrent use.
type Graph struct {
	starts  []uint32 // of the edges of each row, and their end
	edges   []int32  // rows waited for
	waiting []int32  // number of rows that wait for each row
	first   forest   // first row of each row's session
	sizes   []int32  // number of rows of the session with this first row
	last    []uint64 // bit set of the last rows of each SessionID
	missing []LostID
	lost    int
}

// LostID is an id in After that no row has.
type LostID struct {
	Row, Line int // of the row with After; Line is 0 if unknown
	ID        string
}

// AsError returns the error for a trace that must have all of its rows.
func (l LostID) AsError() *GraphError {
	return &GraphError{l.Row, l.Line, fmt.Sprintf("after names request_id %.60q, which no row has", l.ID)}
}

// Before returns the rows that a row waits for, in ascending order. The caller must
// not change them.
func (g *Graph) Before(row int) []int32 {
	if g == nil || row+1 >= len(g.starts) {
		return nil
	}
	return g.edges[g.starts[row]:g.starts[row+1]]
}

// Waiting returns the number of rows that wait for a row.
func (g *Graph) Waiting(row int) int {
	if g == nil || row >= len(g.waiting) {
		return 0
	}
	return int(g.waiting[row])
}

// First returns the first row of the session of a row. Rows are of one session if
// they have the same SessionID or if one waits for the other, so that an agent and
// its sub-agents are one session. A row without either is a session of its own.
func (g *Graph) First(row int) int {
	if g == nil || row >= len(g.first) {
		return row
	}
	return int(g.first[row])
}

// Size returns the number of rows of the session with a first row.
func (g *Graph) Size(first int) int {
	if g == nil || first >= len(g.sizes) {
		return 1
	}
	return int(g.sizes[first])
}

// Last reports whether a row is the last one with its SessionID.
func (g *Graph) Last(row int) bool {
	return g != nil && row/64 < len(g.last) && g.last[row/64]>>(row%64)&1 == 1
}

// Lost returns the number of ids in After that no row has: their rows are missing
// from the trace. LostIDs returns the first of them.
func (g *Graph) Lost() int {
	if g == nil {
		return 0
	}
	return g.lost
}

// LostIDs returns the first ids in After that no row has, at most 100.
func (g *Graph) LostIDs() []LostID {
	if g == nil {
		return nil
	}
	return g.missing
}

const maxMissing = 100

// GraphError reports rows that can never be sent, or an id in After that several
// rows have.
type GraphError struct {
	Row, Line int // Line is 0 if unknown
	Text      string
}

func (e *GraphError) Error() string { return e.Text }

// CheckGraph adds the rows of a stream to b with their lines, 0 if unknown. It ends
// the stream with a [*GraphError] if rows wait for each other or for one of several
// rows with the same id; if whole is set, also if they wait for one that is missing.
func CheckGraph(reqs Requests, b *GraphBuilder, line func() int, whole bool) Requests {
	return func(yield func(Request, error) bool) {
		for r, err := range reqs {
			if err == nil {
				b.Add(r, line())
			}
			if !yield(r, err) {
				return
			}
		}
		if err := b.check(whole); err != nil {
			yield(Request{}, err)
		}
	}
}

func (b *GraphBuilder) check(whole bool) error {
	g, err := b.Graph()
	if lost := g.LostIDs(); err == nil && whole && len(lost) > 0 {
		return lost[0].AsError()
	}
	return err
}

// GraphBuilder makes the Graph of a trace. The zero value is ready to use.
type GraphBuilder struct {
	rows     int
	seed     maphash.Seed
	sessions map[uint64]int32 // latest row of each session, by the hash of its id
	ids      map[uint64]named // by the hash of the id
	links    []link           // in order of rows
	graph    Graph
}

type named struct {
	row, line int32
	again     int32 // line or number of another row with the same id, 0 if none
}

// link is an edge: a row waits for another, or for the one with an id.
type link struct {
	row, before int32 // before is -1 if id is set
	line        int32
	id          string
}

// Add adds the next row, which is on a line of a file, 0 if unknown. It returns the
// rows before it that it waits for, as far as they are known: an id may be that of a
// later row.
func (b *GraphBuilder) Add(r Request, line int) (before []int32) {
	row := int32(b.rows)
	b.rows++
	if r.SessionID == "" && r.ID == "" && r.After == nil {
		return nil
	}
	if b.ids == nil {
		b.seed, b.ids, b.sessions = maphash.MakeSeed(), map[uint64]named{}, map[uint64]int32{}
	}
	if r.SessionID != "" {
		session := maphash.String(b.seed, r.SessionID)
		previous, later := b.sessions[session]
		b.sessions[session] = row
		if later {
			b.join(row, previous)
			if r.After == nil {
				b.links = append(b.links, link{row: row, before: previous})
				before = append(before, previous)
			}
		}
	}
	for _, id := range r.After {
		if known, ok := b.ids[maphash.String(b.seed, id)]; ok {
			before = append(before, known.row)
		}
		b.links = append(b.links, link{row: row, before: -1, line: int32(line), id: id})
	}
	if r.ID != "" {
		b.name(r.ID, row, int32(line))
	}
	return before
}

// Skip adds a row without SessionID, ID and After.
func (b *GraphBuilder) Skip() { b.rows++ }

func (b *GraphBuilder) name(id string, row, line int32) {
	hash := maphash.String(b.seed, id)
	known, twice := b.ids[hash]
	if !twice {
		b.ids[hash] = named{row: row, line: line}
		return
	}
	known.again = max(line, 1)
	b.ids[hash] = known
}

// join makes two rows part of one session.
func (b *GraphBuilder) join(a, c int32) {
	b.graph.first.grow(max(a, c) + 1)
	b.graph.first.join(a, c)
}

// Graph returns the graph of the rows. It fails with a [*GraphError] if rows wait
// for each other, or if an id in After is that of several rows. The builder cannot be
// used afterwards.
func (b *GraphBuilder) Graph() (*Graph, error) {
	g := &b.graph
	if len(b.sessions) > 0 {
		g.last = make([]uint64, (b.rows+63)/64)
		for _, row := range b.sessions {
			g.last[row/64] |= 1 << (row % 64)
		}
	}
	if len(b.links) == 0 && len(g.first) == 0 {
		return g, nil
	}
	forward := false
	for i := range b.links {
		l := &b.links[i]
		if l.before < 0 {
			if err := b.resolve(l); err != nil {
				return nil, err
			}
		}
		forward = forward || l.before >= l.row
	}
	b.links = slices.DeleteFunc(b.links, func(l link) bool { return l.before < 0 })
	b.index()
	if forward {
		if err := b.findCycle(); err != nil {
			return nil, err
		}
	}
	g.sizes = make([]int32, len(g.first))
	for row := range g.first {
		g.first[row] = g.first.first(int32(row))
		g.sizes[g.first[row]]++
	}
	return g, nil
}

// resolve finds the row that an id names.
func (b *GraphBuilder) resolve(l *link) error {
	known, ok := b.ids[maphash.String(b.seed, l.id)]
	switch {
	case !ok:
		if b.graph.lost++; len(b.graph.missing) < maxMissing {
			b.graph.missing = append(b.graph.missing, LostID{int(l.row), int(l.line), l.id})
		}
		return nil
	case known.again > 0:
		return &GraphError{int(l.row), int(l.line), fmt.Sprintf("after names request_id %.60q, which several rows have%s", l.id, places(known))}
	}
	l.before = known.row
	b.join(l.row, known.row)
	return nil
}

func places(n named) string {
	if n.line == 0 {
		return ""
	}
	return fmt.Sprintf(": lines %d and %d", n.line, n.again)
}

// index sorts the links by row.
func (b *GraphBuilder) index() {
	g := &b.graph
	g.starts = make([]uint32, b.rows+1)
	g.waiting = make([]int32, b.rows)
	g.edges = make([]int32, 0, len(b.links))
	at := 0
	for row := range b.rows {
		g.starts[row] = uint32(len(g.edges))
		from := len(g.edges)
		for ; at < len(b.links) && int(b.links[at].row) == row; at++ {
			g.edges = append(g.edges, b.links[at].before)
		}
		own := g.edges[from:]
		slices.Sort(own)
		own = slices.Compact(own)
		g.edges = g.edges[:from+len(own)]
		for _, before := range own {
			g.waiting[before]++
		}
	}
	g.starts[b.rows] = uint32(len(g.edges))
}

// findCycle returns an error if rows wait for each other.
func (b *GraphBuilder) findCycle() error {
	g := &b.graph
	left := slices.Clone(g.waiting) // rows that wait and are not removed yet
	var ready []int32
	for row, n := range left {
		if n == 0 {
			ready = append(ready, int32(row))
		}
	}
	removed := 0
	for len(ready) > 0 {
		row := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		removed++
		for _, before := range g.Before(int(row)) {
			if left[before]--; left[before] == 0 {
				ready = append(ready, before)
			}
		}
	}
	if removed == b.rows {
		return nil
	}
	// Every remaining row is waited for by another remaining row, so following these
	// edges backwards ends in a cycle.
	return b.cycleError(left)
}

// cycleError describes a cycle among the rows with a positive count.
func (b *GraphBuilder) cycleError(left []int32) error {
	waits := make([]int, len(left)) // number of a link to the row, from 1
	for i, l := range b.links {
		if left[l.row] > 0 && left[l.before] > 0 {
			waits[l.before] = i + 1
		}
	}
	row := int32(slices.IndexFunc(left, func(n int32) bool { return n > 0 }))
	seen := map[int32]bool{}
	for !seen[row] {
		seen[row] = true
		row = b.links[waits[row]-1].row
	}
	const most = 8
	var names []string
	line, length := 0, 0
	for at := row; length == 0 || at != row; length++ {
		l := b.links[waits[at]-1]
		line = max(line, int(l.line))
		if len(names) < most {
			names = append(names, l.name())
		}
		at = l.row
	}
	slices.Reverse(names)
	text := strings.Join(names, " after ")
	if length > most {
		text += fmt.Sprintf(", and so on: a cycle of %d", length)
	} else {
		text += " after " + names[0]
	}
	return &GraphError{int(row), line, "requests wait for each other: " + text}
}

// name returns the row that is waited for, for messages.
func (l link) name() string {
	if l.id == "" {
		return fmt.Sprintf("row %d", l.before+1)
	}
	return fmt.Sprintf("%.40q", l.id)
}
