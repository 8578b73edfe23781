package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// findCycle returns an error if rows wait for each other.
func (b *GraphBuilder) findCycle(g *Graph) error {
	left := make([]int32, b.rows) // rows that wait for each and are not removed yet
	for _, before := range g.edges {
		left[before]++
	}
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
	return b.cycleError(g, left)
}

// cycleError describes a cycle among the rows with a positive count.
func (b *GraphBuilder) cycleError(g *Graph, left []int32) error {
	waits := make([]int32, b.rows) // a row that waits for the row
	for row := range b.rows {
		for _, before := range g.Before(row) {
			if left[row] > 0 && left[before] > 0 {
				waits[before] = int32(row)
			}
		}
	}
	row := int32(slices.IndexFunc(left, func(n int32) bool { return n > 0 }))
	seen := map[int32]bool{}
	for !seen[row] {
		seen[row] = true
		row = waits[row]
	}
	cycle := map[edge]link{{waits[row], row}: {}}
	for at := waits[row]; at != row; at = waits[at] {
		cycle[edge{waits[at], at}] = link{}
	}
	for l, err := range b.links {
		if err != nil {
			return err
		}
		if len(l.rows) == 1 {
			e := edge{int32(l.row), int32(l.rows[0].row)}
			if _, in := cycle[e]; in {
				cycle[e] = l
			}
		}
	}
	const most = 8
	var names []string
	line := 0
	for at, n := row, 0; n < len(cycle); n++ {
		l := cycle[edge{waits[at], at}]
		line = max(line, l.line)
		if n < most {
			names = append(names, cmp.Or(l.name(), fmt.Sprintf("row %d", at+1)))
		}
		at = waits[at]
	}
	slices.Reverse(names)
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
