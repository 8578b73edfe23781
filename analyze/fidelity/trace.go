package fidelity

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/trace"
)

// Trace holds what is compared of a trace: about 200 bytes for each request and 4 for each
// block of its prompt.
type Trace struct {
	*analyze.Analysis // its Prefix, Sessions and Arrivals are empty instead of nil
	requests          piece
}

// piece is a part of a trace in order of arrival.
type piece []arrival

// arrival is when a request arrives, which differs between resamples.
type arrival struct {
	at float64 // ms; that of the request before if it is unknown
	*request
}

// request is what is known of a request within a piece.
type request struct {
	session int // row of its first turn
	blocks  []uint32
	value   [values]float64 // NaN for none
}

// The values of a request.
const (
	one     = iota // 1
	isl            // tokens
	osl            // tokens
	gap            // ms since the arrival before
	turnGap        // ms since the arrival before in the same session
	context        // leading tokens in blocks that occur several times in the piece
	blocks         // of the prompt
	hits           // blocks that hit, one value for each cache size
	values  = hits + len(cacheSizes)
)

// cacheSizes are the sizes of LRU caches in percent of the source's unique blocks.
var cacheSizes = [...]float64{1, 3, 10, 30, 100}

// Collect reads a trace; a block size of 0 is detected. It returns the errors of
// [analyze.Trace].
func Collect(reqs trace.Requests, blockSize int) (*Trace, error) {
	var t Trace
	watch := func(r trace.Request, numbers []uint32) {
		t.requests = append(t.requests, arrival{request: &request{session: len(t.requests), blocks: slices.Clone(numbers), value: [values]float64{
			one: 1, isl: float64(r.InputLength), osl: float64(r.OutputLength), blocks: float64(len(numbers)),
			gap: math.NaN(), turnGap: math.NaN(), context: math.NaN(),
		}}})
	}
	var err error
	if t.Analysis, err = analyze.Trace(reqs, analyze.Options{BlockSize: blockSize, Watch: watch}); err != nil {
		return nil, err
	}
	t.Prefix, t.Sessions, t.Arrivals = cmp.Or(t.Prefix, &analyze.Prefix{}), cmp.Or(t.Sessions, &analyze.Sessions{}), cmp.Or(t.Arrivals, &analyze.Arrivals{})
	for i, first := range t.Sessions.Of {
		if first >= 0 {
			t.requests[i].session = int(first)
		}
	}
	for i := range t.requests {
		t.requests[i].at = t.requests[max(i-1, 0)].at
		if at := t.Arrivals.At(i); at.Set {
			t.requests[i].at = at.Value
		}
	}
	slices.SortStableFunc(t.requests, earlier)
	return &t, nil
}

func earlier(a, b arrival) int { return cmp.Compare(a.at, b.at) }

// piece returns a number of requests from one on with all values. The caches are empty
// at first; unique is the number of unique blocks that their sizes are shares of.
func (t *Trace) piece(from, length, unique int) piece {
	p := slices.Clone(t.requests[from : from+length])
	uses := make([]int, t.Prefix.UniqueBlocks)
	var prompts cache.Sequence
	for _, r := range p {
		prompts.Add(r.blocks, 0, "")
		for _, n := range r.blocks {
			uses[n]++
		}
	}
	latest := map[int]float64{} // arrival of each session
	for i := range p {
		r := *p[i].request
		p[i].request = &r
		if i > 0 {
			r.value[gap] = between(p[i-1].at, p[i].at)
		}
		if before, later := latest[r.session]; later {
			r.value[turnGap] = between(before, p[i].at)
		}
		latest[r.session] = p[i].at
		if shared := 0; len(r.blocks) > 0 {
			for shared < len(r.blocks) && uses[r.blocks[shared]] > 1 {
				shared++
			}
			r.value[context] = min(float64(shared*t.Prefix.BlockSize.Tokens), r.value[isl])
		}
	}
	for size, percent := range cacheSizes {
		for i, n := range cache.LRUHits(&prompts, max(1, int(math.Round(percent/100*float64(unique))))) {
			p[i].value[hits+size] = float64(n)
		}
	}
	return p
}

// between returns the ms from one time to another, rounded to ns: the differences of
// equally spaced times that are no whole numbers would differ otherwise.
func between(from, to float64) float64 { return math.Round((to-from)*1e6) / 1e6 }

// sessions returns the requests of each session, in order of the first ones.
func (p piece) sessions() []piece {
	sessions := make([]piece, len(p)) // by number
	for _, r := range p {
		sessions[r.session] = append(sessions[r.session], r)
	}
	sessions = slices.DeleteFunc(sessions, func(s piece) bool { return len(s) == 0 })
	slices.SortStableFunc(sessions, func(a, b piece) int { return earlier(a[0], b[0]) })
	return sessions
}

// FewSessions reports whether the trace has the noise of fewer than 20 sessions of equal
// length, which is also so if a few sessions have most requests.
func (t *Trace) FewSessions() bool {
	squares := 0
	for _, session := range t.requests.sessions() {
		squares += len(session) * len(session)
	}
	return t.Requests*t.Requests < 20*squares
}

// nearbyRuns is by how many runs a run of sessions moves at most in a resample.
const nearbyRuns = 2

// resample draws from sessions to an empty piece: each run of them is replaced by one nearby.
func resample(drawn piece, sessions []piece, random *rand.Rand) piece {
	length := int(math.Sqrt(float64(len(sessions))))
	start := 0.0
	for place := 0; place < len(sessions); place += length {
		low, high := max(0, place-nearbyRuns*length), min(len(sessions)-length, place+nearbyRuns*length)
		from := low + random.IntN(high-low+1)
		for i := from; i < from+min(length, len(sessions)-place); i++ {
			first := sessions[i][0].at
			if i > 0 && len(drawn) > 0 {
				start += first - sessions[i-1][0].at
			}
			for _, r := range sessions[i] {
				drawn = append(drawn, arrival{start + r.at - first, r.request})
			}
		}
	}
	slices.SortStableFunc(drawn, earlier)
	return drawn
}
