package sessions

import (
	"cmp"
	"fmt"
	"slices"
)

const (
	// longShare is the share of the requests or of the prompts' tokens from which
	// sessions that are unlike all others are clients of their own, and longTimes by
	// how much they are larger.
	longShare, longTimes = .05, 4
)

// longSessions are a few sessions that are much larger than all others. They are too
// few for a model of all sessions to draw any like them, but their turns may be enough
// for a client of their own.
type longSessions struct {
	rows     []bool // whether each row is in one of them
	sessions int
	requests int
}

// findLongSessions finds them. There may be none.
func (f *fitter) findLongSessions() (found longSessions) {
	session := f.sessionOfRows()
	n := int(slices.Max(session)) + 1
	requests, tokens, allTokens := make([]int, n), make([]int, n), 0
	for i, s := range session {
		requests[s]++
		tokens[s] += f.rows[i].isl
		allTokens += f.rows[i].isl
	}
	size := func(s int) float64 { // as a share of the trace
		return max(float64(requests[s])/float64(len(f.rows)), float64(tokens[s])/float64(max(allTokens, 1)))
	}
	order := indices(n)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	long := 0
	for long < n && size(order[long]) >= longShare {
		long++
	}
	if long == 0 || long >= minRequests || long == n || size(order[long-1]) < longTimes*size(order[long]) {
		return longSessions{}
	}
	found = longSessions{rows: make([]bool, len(f.rows)), sessions: long}
	for i, s := range session {
		if found.rows[i] = slices.Contains(order[:long], int(s)); found.rows[i] {
			found.requests++
		}
	}
	return found
}

// divideByLength makes the long sessions a client, if there are enough requests in and
// outside of them.
func (f *fitter) divideByLength(long longSessions) bool {
	if min(long.requests, len(f.rows)-long.requests) < f.minClient() {
		return false
	}
	for i := range f.rows {
		f.rows[i].client = int32(indicator(long.rows[i]))
	}
	f.divideInto("usual", "long")
	return true
}

// noteLongSessions notes how long sessions are modelled.
func (f *fitter) noteLongSessions(long longSessions, divided bool) {
	if long.sessions == 0 {
		return
	}
	sessions := "sessions are"
	if long.sessions == 1 {
		sessions = "session is"
	}
	how := fmt.Sprintf("may be missing from what is drawn, as a model keeps what at least %d do", minRequests)
	if divided {
		how = "have a client of their own, \"long\": its sessions are drawn from the turns of all of them"
	}
	f.note("%d %s much larger than all others, with %d of %d requests: they %s", long.sessions, sessions, long.requests, len(f.rows), how)
}
