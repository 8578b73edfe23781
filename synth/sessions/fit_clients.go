package sessions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	// A client has at least minClientRequests requests, or maxClientShare of a
	// source with few requests; others are pooled.
	minClientRequests, fewestClientRequests, clientShare = 100, 20, .05
	// maxFitted is the largest number of clients that a fit finds.
	maxFitted = 64
	// minNamed is the share of the requests that clients must have for another key
	// to divide those of the keys before it.
	minNamed = .8
	// maxChanging is the share of the requests of a session that may have another
	// value of a key than the first.
	maxChanging = .01
)

// restName is the name of the client that stands for those with few requests.
const restName = "rest"

// part is a client of the source.
type part struct {
	name   string
	values []string // of the client keys
}

// findSessions finds the first row of the session of each row, in order of reading.
func (f *fitter) findSessions() {
	defer f.graph.Close()
	graph, _ := f.graph.Graph() // without one, every row is a session
	for i := range f.rows {
		f.rows[i].first = int32(graph.First(i))
	}
}

// divideByKeys finds the clients that the rows name, at most limit, and sets the
// client of each row, before these are sorted. Each key divides the clients of the
// keys before it if most of them then still have enough requests.
func (f *fitter) divideByKeys(limit int) {
	groups := grouping{of: make([]int32, len(f.rows)), values: [][]string{nil}, sizes: []int{len(f.rows)}}
	for _, key := range f.keys.inOrder() {
		column := f.keys[key]
		finer := groups.divide(column, f.rows)
		kept, n := finer.largest(limit, f.minClient())
		switch several := len(finer.values) > 1; {
		case several && limit == 1 || len(kept) == 0:
		case n < int(minNamed*float64(len(f.rows))) && (len(groups.values) > 1 || len(kept) < 2):
		case f.changing(column) > int(maxChanging*float64(len(f.rows))):
			f.note("%s changes within sessions, so it does not name clients", key)
		default:
			groups = finer
			f.file.ClientKeys = append(f.file.ClientKeys, clientKey{key, column.kind()})
		}
	}
	if len(f.file.ClientKeys) > 0 {
		f.keep(groups, limit)
	}
}

// minClient returns the minimum number of requests of a client.
func (f *fitter) minClient() int {
	return max(fewestClientRequests, min(minClientRequests, int(clientShare*float64(len(f.rows)))))
}

// changing returns the number of rows whose value is not that of the first row of
// their session.
func (f *fitter) changing(c *keyColumn) (n int) {
	for i := range f.rows {
		if c.at(i) != c.at(int(f.rows[i].first)) {
			n++
		}
	}
	return n
}

// keep makes the largest groups clients and pools the others.
func (f *fitter) keep(g grouping, limit int) {
	kept, n := g.largest(limit, f.minClient())
	if rest := len(f.rows) - n; rest > 0 || len(kept) == 0 {
		for len(kept) > 0 && (rest < f.minClient() || len(kept) == limit) { // too few for a client
			last := kept[len(kept)-1]
			kept = kept[:len(kept)-1]
			rest += g.sizes[last]
		}
	}
	place := make([]int32, len(g.values)) // of each group among the clients
	for i := range place {
		place[i] = int32(len(kept))
	}
	for i, group := range kept {
		place[group] = int32(i)
		f.addPart(strings.Join(g.values[group], "/"), g.values[group])
	}
	pooled := 0
	for i := range f.rows {
		f.rows[i].client = place[g.of[i]]
		if int(f.rows[i].client) == len(kept) {
			pooled++
		}
	}
	if pooled > 0 {
		f.addPart(restName, nil)
		f.note("%d clients with few requests are pooled as %q: %d of %d requests", len(g.values)-len(kept), restName, pooled, len(f.rows))
	}
}

// addPart adds a client. Its name is unique.
func (f *fitter) addPart(name string, values []string) {
	for slices.ContainsFunc(f.parts, func(p part) bool { return p.name == name }) {
		name += "'"
	}
	f.parts = append(f.parts, part{name, values})
}

// note adds a note on what the model does not keep.
func (f *fitter) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// rowsOf returns the rows of a client in order of time, with references to each
// other. A row that continues one of another client starts a session or continues
// one of its own: lost counts those that then share fewer blocks.
func (f *fitter) rowsOf(client int32) (rows []row, lost int) {
	place := make([]int32, len(f.rows))
	for i := range f.rows {
		place[i] = none
		if f.rows[i].client == client {
			place[i] = int32(len(rows))
			rows = append(rows, f.rows[i])
		}
	}
	for i := range rows {
		for _, other := range []*int32{&rows[i].before, &rows[i].follows} {
			if *other != none {
				*other = place[*other]
			}
		}
	}
	shared := make([]int, len(rows))
	for i := range rows {
		shared[i] = rows[i].shared
	}
	f.link(rows)
	for i := range rows {
		switch r := &rows[i]; {
		case r.start != nil: // of a sub-agent
			r.shared = shared[i]
		case r.shared < shared[i]:
			lost++
		}
	}
	return rows, lost
}

// grouping divides rows into groups.
type grouping struct {
	of     []int32    // the group of each row
	values [][]string // of the keys, of each group
	sizes  []int
}

// divide divides each group by the values of a column in the first rows of
// sessions.
func (g *grouping) divide(column *keyColumn, rows []row) grouping {
	type pair struct{ group, value int32 }
	finer := grouping{of: make([]int32, len(g.of))}
	numbers := make(map[pair]int32)
	for i, group := range g.of {
		p := pair{group, column.at(int(rows[i].first))}
		n, ok := numbers[p]
		if !ok {
			n = int32(len(finer.values))
			numbers[p] = n
			finer.values = append(finer.values, append(slices.Clone(g.values[group]), nameOf(column.values[p.value])))
			finer.sizes = append(finer.sizes, 0)
		}
		finer.of[i] = n
		finer.sizes[n]++
	}
	return finer
}

// largest returns at most limit groups with at least least rows and a value of
// every key, the largest first, and the number of their rows.
func (g *grouping) largest(limit, least int) (groups []int, rows int) {
	for i, n := range g.sizes {
		if n >= least && !slices.Contains(g.values[i], "") {
			groups = append(groups, i)
		}
	}
	slices.SortStableFunc(groups, func(a, b int) int {
		return cmp.Or(cmp.Compare(g.sizes[b], g.sizes[a]), slices.Compare(g.values[a], g.values[b]))
	})
	groups = groups[:min(len(groups), limit)]
	for _, i := range groups {
		rows += g.sizes[i]
	}
	return groups, rows
}
