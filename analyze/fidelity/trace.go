package fidelity

import (
	"cmp"
	"math"
	"slices"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/trace"
	"moontide/trace/block"
)

// Trace holds what is compared of a trace, in order of arrival: about 100 bytes for each
// request and 4 for each block of its prompt.
type Trace struct {
	// Sessions is the number of sessions, by ids or, without any, as inferred by
	// [analyze.Trace]. Estimated is that of requests without a timestamp, whose arrival is
	// estimated from their delay and [trace.AnswerTime].
	Sessions, Estimated int

	rows                []row
	blockSize, distinct int // of blocks
}

type row struct {
	at       float64 // ms
	isl, osl int
	session  int // its number; a request without one has a number of its own
	blocks   []uint32
}

// Requests returns the number of requests.
func (t *Trace) Requests() int { return len(t.rows) }

// FewSessions reports whether the trace has the noise of fewer than 20 sessions of equal
// length, which is also so if a few sessions have most requests.
func (t *Trace) FewSessions() bool {
	squares := 0.0
	for _, of := range t.bySession() {
		squares += float64(len(of) * len(of))
	}
	return float64(len(t.rows)*len(t.rows)) < 20*squares
}

// Collect reads a trace; a block size of 0 is detected. It returns the errors of
// [analyze.Trace].
func Collect(reqs trace.Requests, blockSize int) (*Trace, error) {
	t := &Trace{}
	var earlier trace.Earlier
	var table block.Table
	a, err := analyze.Trace(trace.Checked(reqs, func(r trace.Request) error {
		numbers := table.AppendNumbers(nil, r.HashIDs)
		for _, n := range numbers {
			t.distinct = max(t.distinct, int(n)+1)
		}
		t.rows = append(t.rows, row{at: t.arrival(r, earlier.Add(r)), isl: r.InputLength, osl: r.OutputLength, blocks: numbers})
		return table.Err()
	}), analyze.Options{BlockSize: blockSize})
	if err != nil {
		return nil, err
	}
	if a.Prefix != nil {
		t.blockSize = a.Prefix.BlockSize.Tokens
	}
	if a.Sessions != nil {
		t.Sessions = a.Sessions.Sessions
	}
	for i := range t.rows {
		t.rows[i].session = t.Sessions + i
		if a.Sessions != nil && a.Sessions.Of[i] >= 0 {
			t.rows[i].session = int(a.Sessions.Of[i])
		}
	}
	slices.SortStableFunc(t.rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	return t, nil
}

// arrival returns the time of a row that waits for others: that of its timestamp or,
// without one, an estimate.
func (t *Trace) arrival(r trace.Request, before []int32) float64 {
	if r.Timestamp.Set {
		return r.Timestamp.Value
	}
	t.Estimated++
	at := 0.0
	for _, i := range before {
		at = max(at, t.rows[i].at+trace.AnswerTime(t.rows[i].osl))
	}
	if len(before) == 0 && len(t.rows) > 0 {
		return t.rows[len(t.rows)-1].at
	}
	return at + max(r.Delay.Value, 0)
}

// bySession returns the rows of each session, in order of their first ones.
func (t *Trace) bySession() (sessions [][]int) {
	numbers := map[int]int{}
	for i := range t.rows {
		n, known := numbers[t.rows[i].session]
		if !known {
			n = len(sessions)
			numbers[t.rows[i].session], sessions = n, append(sessions, nil)
		}
		sessions[n] = append(sessions[n], i)
	}
	return sessions
}

// The columns of a piece: a value for each request, NaN if it has none.
const (
	isl      = iota
	osl      // tokens
	requests // 1 for each
	gap      // ms since the arrival before
	turnGap  // ms since the arrival before in the same session
	context  // leading tokens that another request of the piece has, too
	blocks   // of the prompt
	lru      // blocks that hit, one column for each cache size
	columns  = lru + len(cacheShares)
)

// cacheShares are the sizes of LRU caches, as shares of the source's unique blocks.
var cacheShares = [...]float64{0.01, 0.03, 0.1, 0.3, 1}

// piece is a part of a trace.
type piece struct {
	at     []float64
	column [columns][]float64
}

// piece returns the requests from one to before another. The caches are empty at first;
// unique is the number of unique blocks that their sizes are shares of.
func (t *Trace) piece(from, to, unique int) *piece {
	rows := t.rows[from:to]
	p := &piece{}
	for i := range p.column {
		p.column[i] = slices.Repeat([]float64{math.NaN()}, len(rows))
	}
	latest := map[int]float64{}
	shared := t.shared(rows)
	var s cache.Sequence
	for i := range rows {
		r := &rows[i]
		p.at = append(p.at, r.at)
		p.column[isl][i], p.column[osl][i], p.column[requests][i] = float64(r.isl), float64(r.osl), 1
		if i > 0 {
			p.column[gap][i] = between(rows[i-1].at, r.at)
		}
		if before, later := latest[r.session]; later {
			p.column[turnGap][i] = between(before, r.at)
		}
		latest[r.session] = r.at
		s.Add(r.blocks, r.isl, "")
		if len(r.blocks) > 0 {
			n := slices.IndexFunc(r.blocks, func(n uint32) bool { return !shared[n] })
			if n < 0 {
				n = len(r.blocks)
			}
			p.column[context][i], p.column[blocks][i] = float64(min(n*t.blockSize, r.isl)), float64(len(r.blocks))
		}
	}
	if t.distinct == 0 {
		return p
	}
	for i, share := range cacheShares {
		for request, hit := range cache.LRUHits(&s, max(1, int(math.Round(share*float64(unique))))) {
			p.column[lru+i][request] = float64(hit)
		}
	}
	return p
}

// between returns the ms from one time to another, rounded to ns: the differences of
// equally spaced times that are no whole numbers would differ otherwise.
func between(from, to float64) float64 { return math.Round((to-from)*1e6) / 1e6 }

// shared returns which blocks several of the rows have.
func (t *Trace) shared(rows []row) []bool {
	latest, shared := make([]int, t.distinct), make([]bool, t.distinct)
	for i := range rows {
		for _, n := range rows[i].blocks {
			shared[n] = shared[n] || latest[n] != 0 && latest[n] != i+1
			latest[n] = i + 1
		}
	}
	return shared
}
