package fidelity

import (
	"math"
	"slices"

	"moontide/analyze/cache"
)

// The columns of a piece: a value for each request, NaN if it has none.
const (
	isl     = iota
	osl     // tokens
	gap     // ms since the arrival before
	turnGap // ms since the arrival before in the same session
	context // leading tokens that another request of the piece has, too
	blocks  // of the prompt
	ttft    // ms
	fleet   // blocks that hit behind the router
	lru     // blocks that hit, one column for each cache size
	columns = lru + len(cacheShares)
)

// cacheShares are the sizes of LRU caches, as shares of the source's unique blocks.
var cacheShares = [...]float64{0.01, 0.03, 0.1, 0.3, 1}

const (
	// Workers is the number of workers behind a router with prefix routing.
	Workers = 8
	// fleetShare is the size of their caches together, as a share of the source's
	// unique blocks.
	fleetShare = 0.1
)

// piece is a part of a trace.
type piece struct {
	curve  *cache.Curve // nil without blocks
	at     []float64
	column [columns][]float64 // nil if the trace has no such values
}

// piece returns the requests from one to before another, with all columns. The caches
// are empty at first; unique is the number of unique blocks that their sizes are
// shares of.
func (t *Trace) piece(from, to, unique int) *piece {
	p := t.basic(from, to)
	p.column[turnGap] = t.turnGaps(from, to)
	if t.TTFT != nil {
		p.column[ttft] = t.TTFT[min(from, len(t.TTFT)):min(to, len(t.TTFT))]
	}
	if len(t.blocks) == 0 || t.blockSize == 0 {
		return p
	}
	p.column[context] = t.contexts(from, to)
	var s cache.Sequence
	counts := make([]float64, to-from)
	for i := range counts {
		own := t.blocksOf(from + i)
		s.Add(own, int(t.isl[from+i]), "")
		counts[i] = float64(len(own))
	}
	p.column[blocks] = counts
	p.curve = s.Curve(t.blockSize)
	for i, share := range cacheShares {
		p.column[lru+i] = make([]float64, len(counts))
		for request, hit := range cache.LRUHits(&s, capacity(share, unique)) {
			p.column[lru+i][request] = float64(hit)
		}
	}
	p.column[fleet] = make([]float64, len(counts))
	of := cache.Fleet{Workers: Workers, Capacity: max(1, capacity(fleetShare, unique)/Workers)}
	of.PrefixHits(&s, func(request, hit int) { p.column[fleet][request] = float64(hit) })
	return p
}

// capacity returns the number of blocks of a share of all.
func capacity(share float64, unique int) int { return max(1, int(math.Round(share*float64(unique)))) }

// basic returns a piece without the columns that depend on its other requests.
func (t *Trace) basic(from, to int) *piece {
	p := &piece{at: t.at[from:to]}
	p.column[isl], p.column[osl] = floats(t.isl[from:to]), floats(t.osl[from:to])
	p.column[gap] = make([]float64, to-from)
	for i := range p.column[gap] {
		p.column[gap][i] = math.NaN()
		if i > 0 {
			p.column[gap][i] = between(p.at[i-1], p.at[i])
		}
	}
	return p
}

// between returns the ms from one time to another, rounded to ns: the differences of
// equally spaced times that are no whole numbers would differ otherwise.
func between(from, to float64) float64 { return math.Round((to-from)*1e6) / 1e6 }

func floats(values []int32) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = float64(v)
	}
	return all
}

func (t *Trace) turnGaps(from, to int) []float64 {
	latest := map[int32]float64{}
	gaps := make([]float64, to-from)
	for i := range gaps {
		gaps[i] = math.NaN()
		session, at := t.session[from+i], t.at[from+i]
		if session < 0 {
			continue
		}
		if before, later := latest[session]; later {
			gaps[i] = between(before, at)
		}
		latest[session] = at
	}
	return gaps
}

// contexts returns the leading tokens of each prompt that other requests have, too.
func (t *Trace) contexts(from, to int) []float64 {
	latest := make([]int32, len(t.ids)) // request that used the block, from 1
	shared := make([]bool, len(t.ids))
	for i := from; i < to; i++ {
		for _, n := range t.blocksOf(i) {
			shared[n] = shared[n] || latest[n] != 0 && latest[n] != int32(i)+1
			latest[n] = int32(i) + 1
		}
	}
	tokens := make([]float64, to-from)
	for i := range tokens {
		own := t.blocksOf(from + i)
		if len(own) == 0 {
			tokens[i] = math.NaN()
			continue
		}
		n := slices.IndexFunc(own, func(n uint32) bool { return !shared[n] })
		if n < 0 {
			n = len(own)
		}
		tokens[i] = float64(min(n*t.blockSize, int(t.isl[from+i])))
	}
	return tokens
}

// unique returns the number of distinct blocks of the first requests.
func (t *Trace) unique(requests int) int {
	n := uint32(0)
	if requests > 0 {
		for _, number := range t.blocks[:t.ends[requests-1]] {
			n = max(n, number+1)
		}
	}
	return int(n)
}

// resample returns a piece of these requests, which arrive at these times.
func (p *piece) resample(requests []int32, at []float64) *piece {
	r := &piece{at: at}
	for i, values := range p.column {
		if len(values) == len(p.at) {
			r.column[i] = taken(values, requests)
		}
	}
	return r
}
