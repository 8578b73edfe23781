package trace

import (
	"cmp"
	"encoding/binary"
	"errors"
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
		g, err := b.Graph()
		if lost := g.LostIDs(); whole && len(lost) > 0 {
			err = lost[0].AsError()
		}
		if err != nil {
			yield(Request{}, err)
		}
	}
}

// GraphBuilder makes the Graph of a trace. It holds 32 MiB of rows and puts others into
// temporary files (see package spill). The zero value is ready to use.
type GraphBuilder struct {
	rows  int
	seed  maphash.Seed
	named [2]spill.Sorter // rows by sessions, and by request ids
	edges int             // at most
	data  []byte
	err   error // of a sorter
}

// graphMemory is the memory of each sorter in bytes.
const graphMemory = 16 << 20

// Role is the reason why a row is under a name.
type Role uint8

const (
	InSession Role = iota // its SessionID
	HasID                 // its ID
	WaitsFor              // one of its After
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
	Owners []NamedRow
	Data   []byte // as added
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
		b.seed, b.named[0].Memory, b.named[1].Memory = maphash.MakeSeed(), graphMemory, graphMemory
	}
	if r.SessionID != "" {
		b.sort(&n, InSession, r.SessionID)
		b.edges++
	}
	if r.ID != "" {
		b.sort(&n, HasID, r.ID)
	}
	for n.place, n.ID = range r.After {
		b.sort(&n, WaitsFor, n.ID)
		b.edges++
	}
}

// Skip adds a row without SessionID, ID and After.
func (b *GraphBuilder) Skip() { b.rows++ }

// sort adds a row under a name. The lowest bit of the key makes the rows that wait for a
// request come after those that have its id.
func (b *GraphBuilder) sort(n *NamedRow, role Role, name string) {
	b.data = n.append(b.data[:0])
	to, key := &b.named[min(role, 1)], maphash.String(b.seed, name)&^1
	if role == WaitsFor {
		key++
	}
	if b.err == nil {
		b.err = sorting(to.Add(key, b.data))
	}
}

// Close removes the temporary files. A builder that made its graph needs it, too.
func (b *GraphBuilder) Close() error { return errors.Join(b.named[0].Close(), b.named[1].Close()) }

// Which parts a row has in a temporary file: bits beside its number.
const (
	hasAfter = 1 << iota
	hasDelay
	hasID
	storedBits = iota
)

func (n *NamedRow) append(b []byte) []byte {
	head := uint64(n.Row) << storedBits
	if n.HasAfter {
		head |= hasAfter
	}
	if n.Delay.Set {
		head |= hasDelay
	}
	waits := n.ID != "" || n.place > 0
	if waits {
		head |= hasID
	}
	b = binary.AppendVarint(binary.AppendUvarint(b, head), int64(n.Line-n.Row))
	if n.Delay.Set {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n.Delay.Value))
		b = append(append(b, byte(len(n.DelayKind))), n.DelayKind...)
	}
	if waits {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n.place)), uint64(len(n.ID)))
		b = append(b, n.ID...)
	}
	return append(b, n.Data...)
}

// parse is the inverse of append.
func (n *NamedRow) parse(b []byte) {
	head, i := binary.Uvarint(b)
	line, size := binary.Varint(b[i:])
	i += size
	*n = NamedRow{Row: int(head >> storedBits), HasAfter: head&hasAfter != 0}
	n.Line = int(line) + n.Row
	if head&hasDelay != 0 {
		end := i + 9 + int(b[i+8])
		n.Delay, n.DelayKind = Some(math.Float64frombits(binary.LittleEndian.Uint64(b[i:]))), DelayKind(b[i+9:end])
		i = end
	}
	if head&hasID != 0 {
		place, size := binary.Uvarint(b[i:])
		length, size2 := binary.Uvarint(b[i+size:])
		i += size + size2
		n.place, n.ID = int(place), string(b[i:i+int(length)])
		i += int(length)
	}
	n.Data = b[i:]
}

// All yields the rows under each name in their order: those of sessions, then those of
// request ids, where rows that have an id are before those that wait for it. Each is valid
// until the next. No row may be added afterwards.
func (b *GraphBuilder) All(yield func(*NamedRow, error) bool) {
	var n NamedRow
	for i := range b.named {
		var owners []NamedRow
		name, role := uint64(1), InSession // no name has this number
		for r, err := range b.named[i].All {
			if err != nil {
				yield(nil, sorting(err))
				return
			}
			n.parse(r.Data)
			if n.First = r.Key&^1 != name; n.First {
				name, owners = r.Key&^1, owners[:0]
			}
			if i > 0 {
				role = HasID + Role(r.Key&1)
			}
			if n.Role = role; role == WaitsFor {
				n.Owners = owners
			} else if role == HasID && len(owners) < 2 {
				owners = append(owners, n)
				owners[len(owners)-1].Data = slices.Clone(n.Data)
			}
			if !yield(&n, nil) {
				return
			}
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
			g.lost++
			if lost = append(lost, *n); len(lost) == 2*maxMissing {
				slices.SortFunc(lost, NamedRow.compare)
				lost = lost[:maxMissing]
			}
		case len(n.Owners) == 1:
			wait(n.Row, n.Owners[0].Row)
		case ambiguous == nil || n.compare(*ambiguous) < 0:
			first := *n
			first.Owners = slices.Clone(n.Owners)
			ambiguous = &first
		}
	}
	if previous >= 0 {
		g.last.add(int32(previous))
	}
	if n := ambiguous; n != nil {
		text := fmt.Sprintf("after names request_id %.60q, which several rows have", n.ID)
		if first, second := n.Owners[0], n.Owners[1]; first.Line > 0 {
			text += fmt.Sprintf(": lines %d and %d", first.Line, second.Line)
		}
		return nil, &GraphError{Line: n.Line, Text: text}
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

// index sorts the edges by row.
func (g *Graph) index(edges []edge, rows int) {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(int(a.row)-int(b.row), int(a.before)-int(b.before)) })
	edges = slices.Compact(edges)
	g.starts, g.edges = make([]uint32, rows+1), make([]int32, len(edges))
	for i, e := range edges {
		g.starts[e.row+1]++
		g.edges[i] = e.before
	}
	for row := range rows {
		g.starts[row+1] += g.starts[row]
	}
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
				named[e] = *n
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
