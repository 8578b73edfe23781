package trace

import "slices"

// What stays together when the rows of a trace are divided among parts.
const (
	// ByRequest keeps only rows together that wait for each other, with their sessions.
	ByRequest = "request"
	BySession = "session"
	// ByPrefix keeps sessions together, and rows that begin with the same block.
	ByPrefix = "prefix"
)

// PartUnits returns the names of what can stay together.
func PartUnits() []string { return []string{BySession, ByRequest, ByPrefix} }

// Partition divides the rows of a trace among the parts of a run. All rows must be added
// first. It takes 4 bytes a row, and with ByPrefix about 50 bytes for each first block.
type Partition struct {
	By       string // "" is BySession
	families forest
	blocks   map[uint64]int32 // row that began with the block first
	rows     int32
}

// Add adds the next row.
func (p *Partition) Add(r Request) {
	row := p.rows
	p.rows++
	if p.By != ByPrefix || len(r.HashIDs) == 0 {
		return
	}
	first, known := p.blocks[r.HashIDs[0]]
	if !known {
		if p.blocks == nil {
			p.blocks = map[uint64]int32{}
		}
		p.blocks[r.HashIDs[0]] = row
		return
	}
	p.families.grow(row + 1)
	p.families.join(first, row)
}

// Parts returns the part of each row, from 0 to n-1, and the number of families.
// graph is that of the rows. A family, in the order of first rows, goes to the part
// that has the fewest rows so far, the first of several.
func (p *Partition) Parts(graph *Graph, n int) (parts []uint16, families int) {
	p.families.grow(p.rows)
	sizes := make([]int32, p.rows)
	for row := range p.rows {
		if p.By != ByRequest || len(graph.Before(int(row))) > 0 || graph.Waiting(int(row)) > 0 {
			p.families.join(int32(graph.First(int(row))), row)
		}
	}
	for row := range p.rows {
		sizes[p.families.first(row)]++
	}
	loads := make([]int32, n)
	parts = make([]uint16, p.rows)
	for row := range p.rows {
		first := p.families.first(row)
		if first == row {
			families++
			least := slices.Index(loads, slices.Min(loads))
			parts[row] = uint16(least)
			loads[least] += sizes[row]
		}
		parts[row] = parts[first]
	}
	return parts, families
}
