package sessions

import (
	"cmp"
	"slices"
)

const (
	// longShare is the share of the requests from which sessions that are unlike all
	// others are noted, and longTimes by how much they are longer.
	longShare, longTimes = .05, 4
)

// noteLongSessions notes a few sessions that are much longer than all others. They are
// too few to learn from.
func (f *fitter) noteLongSessions() {
	root := make([]int32, len(f.rows))
	turns := make([]int, len(f.rows))
	for i := range f.rows {
		root[i] = int32(i)
		if p := f.rows[i].parent; p != none && p < int32(i) {
			root[i] = root[p]
		}
		turns[root[i]]++
	}
	slices.SortFunc(turns, func(a, b int) int { return cmp.Compare(b, a) })
	long := 0
	for long < len(turns) && float64(turns[long]) >= longShare*float64(len(f.rows)) {
		long++
	}
	if long == 0 || long >= minRequests || long == len(turns) || turns[long-1] < longTimes*max(1, turns[long]) {
		return
	}
	all := 0
	for _, n := range turns[:long] {
		all += n
	}
	sessions := "sessions are"
	if long == 1 {
		sessions = "session is"
	}
	f.note("%d %s much longer than all others and may be missing from what is drawn: %d of %d requests; a model keeps what at least %d do", long, sessions, all, len(f.rows), minRequests)
}
