package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

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
