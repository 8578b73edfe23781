package trace

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"moontide/trace/spill"
)

// CheckGraph adds the rows of a stream to b with their lines, 0 if unknown. It ends
// the stream with a [*GraphError] if rows wait for each other or for one of several
// rows with the same id; if whole is set, also if they wait for one that is missing.
func CheckGraph(reqs Requests, b *GraphBuilder, line func() int, whole bool) Requests {
	return func(yield func(Request, error) bool) {
		defer b.Close()
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

// GraphBuilder makes the Graph of a trace. It holds 32 MiB of rows and puts others into
// temporary files (see package spill). The zero value is ready to use.
type GraphBuilder struct {
	rows  int
	seed  maphash.Seed
	named spill.Sorter // rows by their names: see keyOf
	edges int          // at most
	data  []byte
	err   error // of the sorter
}

// graphMemory is the memory of the sorter in bytes.
const graphMemory = 32 << 20

// Role is the reason why a row is under a name.
type Role uint8

const (
	InSession Role = iota // its SessionID
	_
	HasID    // its ID
	WaitsFor // one of its After
)

// NamedRow is a row under the name of a session or a request.
type NamedRow struct {
	Role      Role
	Row, Line int
	First     bool // under its name
	HasAfter  bool // it does not wait for the turn before it
	Delay     Opt[float64]
	DelayKind DelayKind
	ID        string // that it waits for
	// Owners are the first two rows that have the request id which this row waits for.
	// They are valid until the next row.
	Owners []NamedRow
	Data   []byte // as added; valid until the next row
	place  int    // in After
}

// Add adds the next row, which is on a line of a file, 0 if unknown. data comes back with
// each of its names.
func (b *GraphBuilder) Add(r Request, line int, data ...byte) {
	n := NamedRow{Row: b.rows, Line: line, HasAfter: r.After != nil, Delay: r.Delay, DelayKind: r.DelayKind, Data: data}
	b.rows++
	if !inSession(r) {
		return
	}
	if b.data == nil {
		b.seed, b.named.Memory = maphash.MakeSeed(), graphMemory
	}
	if r.SessionID != "" {
		b.sort(n, InSession, r.SessionID)
		b.edges++
	}
	if r.ID != "" {
		b.sort(n, HasID, r.ID)
	}
	for n.place, n.ID = range r.After {
		b.sort(n, WaitsFor, n.ID)
		b.edges++
	}
}

// Skip adds a row without SessionID, ID and After.
func (b *GraphBuilder) Skip() { b.rows++ }

// sort adds a row under a name. The lowest bits of the key are the role, so that the rows
// that wait for a request come after those that have its id.
func (b *GraphBuilder) sort(n NamedRow, role Role, name string) {
	b.data = n.append(b.data[:0])
	if b.err == nil {
		b.err = sorting(b.named.Add(maphash.String(b.seed, name)&^3|uint64(role), b.data))
	}
}

// Close removes the temporary files. A builder that made its graph needs it, too.
func (b *GraphBuilder) Close() error { return b.named.Close() }

func (n NamedRow) append(b []byte) []byte {
	head := uint64(n.Row) << 2
	if n.HasAfter {
		head |= 1
	}
	if n.Delay.Set {
		head |= 2
	}
	b = binary.AppendUvarint(b, head)
	if n.Delay.Set {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n.Delay.Value))
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n.Line)), uint64(n.place))
	for _, text := range []string{n.ID, string(n.DelayKind)} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return append(b, n.Data...)
}

func parseNamedRow(b []byte) (n NamedRow) {
	number := func() int {
		x, size := binary.Uvarint(b)
		b = b[size:]
		return int(x)
	}
	text := func() (s string) {
		size := number()
		s, b = string(b[:size]), b[size:]
		return s
	}
	head := number()
	n.Row, n.HasAfter = head>>2, head&1 != 0
	if head&2 != 0 {
		n.Delay = Some(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		b = b[8:]
	}
	n.Line, n.place = number(), number()
	n.ID, n.DelayKind = text(), DelayKind(text())
	n.Data = b
	return n
}

// All yields the rows under each name in their order, those that have a request id before
// those that wait for it. No row may be added afterwards.
func (b *GraphBuilder) All(yield func(NamedRow, error) bool) {
	var owners []NamedRow
	name := uint64(math.MaxUint64)
	for r, err := range b.named.All {
		if err != nil {
			yield(NamedRow{}, sorting(err))
			return
		}
		n := parseNamedRow(r.Data)
		if n.Role, n.First = Role(r.Key&3), r.Key>>1 != name; n.First {
			name, owners = r.Key>>1, owners[:0]
		}
		if n.Role == WaitsFor {
			n.Owners = owners
		} else if n.Role == HasID && len(owners) < 2 {
			owner := n
			owner.Data = slices.Clone(n.Data)
			owners = append(owners, owner)
		}
		if !yield(n, nil) {
			return
		}
	}
}

func (n NamedRow) compare(o NamedRow) int {
	return cmp.Or(cmp.Compare(n.Row, o.Row), cmp.Compare(n.place, o.place))
}

// edge is a row that waits for another.
type edge struct{ row, before int32 }

// Graph returns the graph of the rows. It fails with a [*GraphError] if rows wait
// for each other, or if an id in After is that of several rows. No row may be added
// afterwards.
func (b *GraphBuilder) Graph() (*Graph, error) {
	g := &Graph{}
	if b.err != nil {
		return nil, b.err
	}
	if b.edges == 0 {
		return g, nil
	}
	g.first.grow(int32(b.rows))
	edges := make([]edge, 0, b.edges)
	wait := func(row, before int) {
		edges = append(edges, edge{int32(row), int32(before)})
		g.first.join(int32(row), int32(before))
	}
	previous := -1 // row of the session
	var lost []NamedRow
	var ambiguous *NamedRow // the first
	for n, err := range b.All {
		switch {
		case err != nil:
			return nil, err
		case n.Role == InSession:
			switch {
			case n.First && previous >= 0:
				g.last.add(int32(previous))
			case n.First:
			case n.HasAfter:
				g.first.join(int32(n.Row), int32(previous))
			default:
				wait(n.Row, previous)
			}
			previous = n.Row
		case n.Role != WaitsFor:
		case len(n.Owners) == 0:
			n.Data = nil
			g.lost++
			if lost = append(lost, n); len(lost) == 2*maxMissing {
				slices.SortFunc(lost, NamedRow.compare)
				lost = lost[:maxMissing]
			}
		case len(n.Owners) == 1:
			wait(n.Row, n.Owners[0].Row)
		case ambiguous == nil || n.compare(*ambiguous) < 0:
			n.Owners = slices.Clone(n.Owners)
			ambiguous = &n
		}
	}
	if previous >= 0 {
		g.last.add(int32(previous))
	}
	if ambiguous != nil {
		return nil, ambiguous.ambiguous()
	}
	slices.SortFunc(lost, NamedRow.compare)
	for _, n := range lost[:min(len(lost), maxMissing)] {
		g.missing = append(g.missing, LostID{n.Row, n.Line, n.ID})
	}
	g.index(edges, b.rows)
	if slices.ContainsFunc(edges, func(e edge) bool { return e.before >= e.row }) {
		if err := b.findCycle(g); err != nil {
			return nil, err
		}
	}
	for row := range g.first {
		g.first[row] = g.first.first(int32(row))
	}
	return g, nil
}

// ambiguous is the error for an id that several rows have.
func (n NamedRow) ambiguous() *GraphError {
	text := fmt.Sprintf("after names request_id %.60q, which several rows have", n.ID)
	if first, second := n.Owners[0], n.Owners[1]; first.Line > 0 {
		text += fmt.Sprintf(": lines %d and %d", first.Line, second.Line)
	}
	return &GraphError{Line: n.Line, Text: text}
}

// index sorts the edges by row.
func (g *Graph) index(edges []edge, rows int) {
	g.starts = make([]uint32, rows+1)
	for _, e := range edges {
		g.starts[e.row]++
	}
	n := uint32(0)
	for row := range g.starts {
		n += g.starts[row]
		g.starts[row] = n
	}
	g.edges = make([]int32, len(edges))
	for _, e := range edges {
		g.starts[e.row]--
		g.edges[g.starts[e.row]] = e.before
	}
	end := uint32(0)
	for row := range rows {
		own := g.edges[g.starts[row]:g.starts[row+1]]
		slices.Sort(own)
		own = slices.Compact(own)
		g.starts[row] = end
		end += uint32(copy(g.edges[end:], own))
	}
	g.starts[rows] = end
	g.edges = g.edges[:end]
}

// findCycle returns an error if rows wait for each other.
func (b *GraphBuilder) findCycle(g *Graph) error {
	type visit struct{ row, edge int32 } // edge is the next of the row to follow
	const entered, left = 1, 2
	state := make([]byte, b.rows)
	var path []visit // each row waits for the next
	for row := range int32(b.rows) {
		if state[row] == 0 {
			path = append(path, visit{row: row})
		}
		for len(path) > 0 {
			last := &path[len(path)-1]
			state[last.row] = entered
			if before := g.Before(int(last.row)); int(last.edge) == len(before) {
				state[last.row] = left
				path = path[:len(path)-1]
			} else if next := before[last.edge]; state[next] == entered {
				start := slices.IndexFunc(path, func(v visit) bool { return v.row == next })
				cycle := make([]int32, 0, len(path)-start)
				for _, v := range path[start:] {
					cycle = append(cycle, v.row)
				}
				return b.cycleError(cycle)
			} else if last.edge++; state[next] == 0 {
				path = append(path, visit{row: next})
			}
		}
	}
	return nil
}

// cycleError describes a cycle: each row waits for the next, and the last for the first.
func (b *GraphBuilder) cycleError(cycle []int32) error {
	named := make(map[edge]NamedRow, len(cycle))
	for i, row := range cycle {
		named[edge{row, cycle[(i+1)%len(cycle)]}] = NamedRow{}
	}
	for n, err := range b.All {
		if err != nil {
			return err
		}
		if len(n.Owners) == 1 {
			e := edge{int32(n.Row), int32(n.Owners[0].Row)}
			if _, in := named[e]; in {
				named[e] = n
			}
		}
	}
	const most = 8
	var names []string
	line := 0
	for i, row := range cycle {
		n := named[edge{cycle[(i+len(cycle)-1)%len(cycle)], row}] // by which the row is named
		name := fmt.Sprintf("row %d", row+1)
		if n.ID != "" {
			name = fmt.Sprintf("%.40q", n.ID)
		}
		if line = max(line, n.Line); i < most {
			names = append(names, name)
		}
	}
	text := strings.Join(names, " after ")
	if len(cycle) > most {
		text += fmt.Sprintf(", and so on: a cycle of %d", len(cycle))
	} else {
		text += " after " + names[0]
	}
	return &GraphError{line, "requests wait for each other: " + text, true}
}
