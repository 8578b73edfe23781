package trace

import "container/heap"

// What stays together when the rows of a trace are dealt to parts.
const (
	// ByRequest keeps only rows together that wait for each other, with their sessions.
	ByRequest = "request"
	BySession = "session"
	// ByPrefix keeps sessions together, and rows that begin with the same block.
	ByPrefix = "prefix"
)

// Deals returns the names of what can stay together.
func Deals() []string { return []string{BySession, ByRequest, ByPrefix} }

// Dealer deals the rows of a trace to the parts of a run. All rows must be added
// first. It takes 4 bytes a row, and with ByPrefix about 50 bytes for each first block.
type Dealer struct {
	By       string // "" is BySession
	families forest
	blocks   map[uint64]int32 // row that began with the block first
	rows     int32
}

// Add adds the next row.
func (d *Dealer) Add(r Request) {
	row := d.rows
	d.rows++
	if d.By != ByPrefix || len(r.HashIDs) == 0 {
		return
	}
	first, known := d.blocks[r.HashIDs[0]]
	if !known {
		if d.blocks == nil {
			d.blocks = map[uint64]int32{}
		}
		d.blocks[r.HashIDs[0]] = row
		return
	}
	d.families.grow(row + 1)
	d.families.join(first, row)
}

// Deal returns the part of each row, from 0 to n-1, and the number of families.
// graph is that of the rows. A family, in the order of first rows, goes to the part
// that has the fewest rows so far, the first of several.
func (d *Dealer) Deal(graph *Graph, n int) (parts []uint16, families int) {
	d.families.grow(d.rows)
	sizes := make([]int32, d.rows)
	for row := range d.rows {
		if d.By != ByRequest || len(graph.Before(int(row))) > 0 || graph.Waiting(int(row)) > 0 {
			d.families.join(int32(graph.First(int(row))), row)
		}
	}
	for row := range d.rows {
		sizes[d.families.first(row)]++
	}
	loads := make(partLoads, n)
	for i := range loads {
		loads[i].part = uint16(i)
	}
	parts = make([]uint16, d.rows)
	for row := range d.rows {
		if first := d.families.first(row); first != row {
			parts[row] = parts[first]
			continue
		}
		families++
		parts[row] = loads[0].part
		loads[0].rows += sizes[row]
		heap.Fix(&loads, 0)
	}
	return parts, families
}

// partLoads is a heap of parts by their numbers of rows.
type partLoads []struct {
	rows int32
	part uint16
}

func (l partLoads) Len() int { return len(l) }
func (l partLoads) Less(i, j int) bool {
	return l[i].rows < l[j].rows || l[i].rows == l[j].rows && l[i].part < l[j].part
}
func (l partLoads) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *partLoads) Push(any)     {}
func (l *partLoads) Pop() any     { return nil }
