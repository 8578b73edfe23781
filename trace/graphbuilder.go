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
	rows     int
	seed     maphash.Seed
	sessions spill.Sorter // rows with a SessionID, by its hash
	// names holds request ids, and those in After, by their hashes. The lowest bit of the
	// key is set for those in After, so that they come after the rows that have the id.
	names spill.Sorter
	edges int // at most
	data  []byte
	err   error // of the sorters
}

// graphMemory is the memory of each sorter in bytes.
const graphMemory = 16 << 20

// Add adds the next row, which is on a line of a file, 0 if unknown.
func (b *GraphBuilder) Add(r Request, line int) {
	row := b.rows
	b.rows++
	if !inSession(r) {
		return
	}
	if b.data == nil {
		b.seed, b.sessions.Memory, b.names.Memory = maphash.MakeSeed(), graphMemory, graphMemory
	}
	if r.SessionID != "" {
		t := Turn{Row: row, After: r.After != nil, Delay: r.Delay, DelayKind: r.DelayKind}
		b.data = t.append(b.data[:0])
		b.sort(&b.sessions, maphash.String(b.seed, r.SessionID))
		b.edges++
	}
	name := named{row: row, line: line}
	for i, id := range r.After {
		b.data = binary.AppendUvarint(name.append(b.data[:0]), uint64(i))
		b.data = append(b.data, id...)
		b.sort(&b.names, maphash.String(b.seed, id)|1)
		b.edges++
	}
	if r.ID != "" {
		b.data = name.append(b.data[:0])
		b.sort(&b.names, maphash.String(b.seed, r.ID)&^1)
	}
}

// Skip adds a row without SessionID, ID and After.
func (b *GraphBuilder) Skip() { b.rows++ }

// sort adds data to a sorter.
func (b *GraphBuilder) sort(to *spill.Sorter, key uint64) {
	if b.err == nil {
		b.err = sorting(to.Add(key, b.data))
	}
}

// Close removes the temporary files. A builder that made its graph needs it, too.
func (b *GraphBuilder) Close() error { return errors.Join(b.sessions.Close(), b.names.Close()) }

// Turn is a row of a session.
type Turn struct {
	Row       int
	First     bool // of its session
	After     bool // it has After, and does not wait for the turn before it
	Delay     Opt[float64]
	DelayKind DelayKind
}

func (t Turn) append(b []byte) []byte {
	head := uint64(t.Row) << 2
	if t.After {
		head |= 1
	}
	if !t.Delay.Set {
		return binary.AppendUvarint(b, head)
	}
	b = binary.AppendUvarint(b, head|2)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.Delay.Value))
	return append(b, t.DelayKind...)
}

func parseTurn(b []byte) Turn {
	head, n := binary.Uvarint(b)
	t := Turn{Row: int(head >> 2), After: head&1 != 0}
	if head&2 != 0 {
		t.Delay = Some(math.Float64frombits(binary.LittleEndian.Uint64(b[n:])))
		t.DelayKind = DelayKind(b[n+8:])
	}
	return t
}

// Turns yields the rows with a SessionID, those of one after those of the other and in
// their order. No row may be added afterwards.
func (b *GraphBuilder) Turns(yield func(Turn, error) bool) {
	session := uint64(0)
	for r, err := range b.sessions.All {
		if err != nil {
			yield(Turn{}, sorting(err))
			return
		}
		t := parseTurn(r.Data)
		t.First = session != r.Key
		session = r.Key
		if !yield(t, nil) {
			return
		}
	}
}

// named is a row with a request id, or one that names it in After.
type named struct{ row, line int }

func (n named) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(n.row)), uint64(n.line))
}

func parseNamed(b []byte) (n named, rest []byte) {
	row, i := binary.Uvarint(b)
	line, k := binary.Uvarint(b[i:])
	return named{int(row), int(line)}, b[i+k:]
}

// link is a row that names another.
type link struct {
	named
	place int     // in After
	id    string  // that it names
	rows  []named // with the id: the first and, if there is one, the second
}

func (l link) compare(o link) int {
	return cmp.Or(cmp.Compare(l.row, o.row), cmp.Compare(l.place, o.place))
}

// links yields the ids in After. Its rows are valid until the next.
func (b *GraphBuilder) links(yield func(link, error) bool) {
	var rows []named
	hash := uint64(0)
	for r, err := range b.names.All {
		if err != nil {
			yield(link{}, sorting(err))
			return
		}
		if r.Key|1 != hash {
			hash, rows = r.Key|1, rows[:0]
		}
		n, rest := parseNamed(r.Data)
		if r.Key&1 == 0 {
			if len(rows) < 2 {
				rows = append(rows, n)
			}
			continue
		}
		place, i := binary.Uvarint(rest)
		if !yield(link{n, int(place), string(rest[i:]), rows}, nil) {
			return
		}
	}
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
	previous := -1
	last := func() {
		if previous >= 0 {
			g.last.add(int32(previous))
		}
	}
	for t, err := range b.Turns {
		if err != nil {
			return nil, err
		}
		if t.First {
			last()
		} else {
			g.first.join(int32(t.Row), int32(previous))
			if !t.After {
				edges = append(edges, edge{int32(t.Row), int32(previous)})
			}
		}
		previous = t.Row
	}
	last()
	edges, err := b.resolve(g, edges)
	if err != nil {
		return nil, err
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

// resolve adds the edges of rows that name others.
func (b *GraphBuilder) resolve(g *Graph, edges []edge) ([]edge, error) {
	var ambiguous *link // the first
	var lost []link
	for l, err := range b.links {
		switch {
		case err != nil:
			return nil, err
		case len(l.rows) == 0:
			g.lost++
			if lost = append(lost, l); len(lost) == 2*maxMissing {
				slices.SortFunc(lost, link.compare)
				lost = lost[:maxMissing]
			}
		case len(l.rows) > 1:
			if ambiguous == nil || l.compare(*ambiguous) < 0 {
				l.rows = slices.Clone(l.rows)
				ambiguous = &l
			}
		default:
			edges = append(edges, edge{int32(l.row), int32(l.rows[0].row)})
			g.first.join(int32(l.row), int32(l.rows[0].row))
		}
	}
	if ambiguous != nil {
		return nil, ambiguous.ambiguous()
	}
	slices.SortFunc(lost, link.compare)
	for _, l := range lost[:min(len(lost), maxMissing)] {
		g.missing = append(g.missing, LostID{l.row, l.line, l.id})
	}
	return edges, nil
}

// ambiguous is the error for an id that several rows have.
func (l link) ambiguous() *GraphError {
	text := fmt.Sprintf("after names request_id %.60q, which several rows have", l.id)
	if first, second := l.rows[0], l.rows[1]; first.line > 0 {
		text += fmt.Sprintf(": lines %d and %d", first.line, second.line)
	}
	return &GraphError{Line: l.line, Text: text}
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
	named := make(map[edge]link, len(cycle))
	for i, row := range cycle {
		named[edge{row, cycle[(i+1)%len(cycle)]}] = link{}
	}
	for l, err := range b.links {
		if err != nil {
			return err
		}
		if len(l.rows) == 1 {
			e := edge{int32(l.row), int32(l.rows[0].row)}
			if _, in := named[e]; in {
				named[e] = l
			}
		}
	}
	const most = 8
	var names []string
	line := 0
	for i, row := range cycle {
		l := named[edge{cycle[(i+len(cycle)-1)%len(cycle)], row}] // by which the row is named
		if line = max(line, l.line); i < most {
			names = append(names, cmp.Or(l.name(), fmt.Sprintf("row %d", row+1)))
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

// name returns the id for messages, "" if there is none.
func (l link) name() string {
	if l.id == "" {
		return ""
	}
	return fmt.Sprintf("%.40q", l.id)
}
