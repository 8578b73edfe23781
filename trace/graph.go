package trace

import (
	"fmt"
	"hash/maphash"
	"sync"
)

// Graph holds which rows of a trace wait for which: a row with After waits for the
// requests that it names, any other later turn of a session for the turn before it.
// Rows are numbered from 0. It takes 12 bytes a row of a trace that has sessions or
// After, and 8 more once Waiting or Size was called. The nil Graph has no edges. It is
// immutable and safe for concurrent use.
type Graph struct {
	starts  []uint32 // of the edges of each row, and their end
	edges   []int32  // rows waited for
	first   forest   // first row of each row's session
	last    rowSet   // the last rows of each SessionID
	missing []LostID
	lost    int

	count   sync.Once
	waiting []int32 // number of rows that wait for each row
	sizes   []int32 // number of rows of the session with this first row
}

// LostID is an id in After that no row has.
type LostID struct {
	Row, Line int // of the row with After; Line is 0 if unknown
	ID        string
}

// AsError returns the error for a trace that must have all of its rows.
func (l LostID) AsError() *GraphError {
	return &GraphError{Line: l.Line, Text: fmt.Sprintf("after names request_id %.60q, which no row has", l.ID)}
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
	if g == nil || row >= len(g.first) {
		return 0
	}
	g.count.Do(g.countRows)
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
	if g == nil || first >= len(g.first) {
		return 1
	}
	g.count.Do(g.countRows)
	return int(g.sizes[first])
}

func (g *Graph) countRows() {
	g.waiting, g.sizes = make([]int32, len(g.first)), make([]int32, len(g.first))
	for _, before := range g.edges {
		g.waiting[before]++
	}
	for _, first := range g.first {
		g.sizes[first]++
	}
}

// Last reports whether a row is the last one with its SessionID.
func (g *Graph) Last(row int) bool {
	return g != nil && g.last.has(int32(row))
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
	Line  int // 0 if unknown
	Text  string
	Cycle bool // rows wait for each other
}

func (e *GraphError) Error() string { return e.Text }

// Earlier finds the rows that a row waits for among those before it, without reading the
// rest of the trace. The zero value is ready to use.
type Earlier struct {
	rows          int32
	seed          maphash.Seed
	sessions, ids map[uint64]int32 // the latest row of a session, the first of a request id, by hash
}

// Add adds the next row and returns the rows before it that it waits for.
func (e *Earlier) Add(r Request) (before []int32) {
	row := e.rows
	e.rows++
	if !inSession(r) {
		return nil
	}
	if e.ids == nil {
		e.seed, e.ids, e.sessions = maphash.MakeSeed(), map[uint64]int32{}, map[uint64]int32{}
	}
	if r.SessionID != "" {
		session := maphash.String(e.seed, r.SessionID)
		if previous, later := e.sessions[session]; later && r.After == nil {
			before = append(before, previous)
		}
		e.sessions[session] = row
	}
	for _, id := range r.After {
		if known, ok := e.ids[maphash.String(e.seed, id)]; ok {
			before = append(before, known)
		}
	}
	if r.ID != "" {
		hash := maphash.String(e.seed, r.ID)
		if _, twice := e.ids[hash]; !twice {
			e.ids[hash] = row
		}
	}
	return before
}
