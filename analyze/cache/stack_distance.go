package cache

import "moontide/trace/block"

// CurveBuilder computes the [Curve] of the requests added to it. The zero
// CurveBuilder is ready to use. It is not safe for concurrent use.
//
// It holds about 6 bytes per distinct block, and 12 bytes per request that hits any and 8
// per run (see run). With prefix-chained ids a request has mostly 1 to 4 runs.
type CurveBuilder struct {
	timeline timeline
	total    Hits
	largest  int // capacity from which the curve is flat
	requests block.List[logged]
	runs     block.List[run] // of all requests
	latest   []run           // of a request, reused
}

// logged is a request that hits blocks.
type logged struct{ isl, blocks, runs int32 }

// run is a sequence of blocks in the seen prefix of a request. The distance of a
// block is the largest stack distance of the block and those before it: a cache
// that is any larger hits it. Between blocks last used by one request it grows by
// one or stays the same. A run of n > 0 blocks has the distances distance,
// distance+1, ...; a run of n < 0 has -n blocks with equal distances.
type run struct {
	distance uint32
	n        int32
}

// Add looks up and then uses the blocks of the next request, whose prompt has isl
// tokens, 0..[moontide/trace.MaxLength]. A request without blocks is counted but
// hits nothing. Numbers come from [moontide/trace/block.Table] or any other source;
// memory grows with the largest.
func (b *CurveBuilder) Add(numbers []uint32, isl int) {
	b.latest = b.timeline.lookUp(b.latest[:0], numbers)
	b.timeline.use(numbers)
	b.total.Requests++
	b.total.Blocks += len(numbers)
	b.total.Tokens += isl
	if len(b.latest) > 0 {
		b.requests.Add(logged{int32(isl), int32(len(numbers)), int32(len(b.latest))})
		for _, r := range b.latest {
			b.runs.Add(r)
		}
		last := b.latest[len(b.latest)-1] // distances do not fall
		b.largest = max(b.largest, int(last.distance)+int(max(last.n, 1)))
	}
}

// lookUp appends the runs of a request.
func (t *timeline) lookUp(runs []run, numbers []uint32) []run {
	var now run
	highest := -1         // distance so far
	distance := 0         // stack distance of the block
	previous := uint32(0) // the last use of the block before
	for _, number := range numbers {
		place, used := t.lastUse(number)
		if !used {
			break
		}
		if place+1 == previous {
			distance++ // last used consecutively: only the block before is in between
		} else {
			distance = t.after(place)
		}
		previous = place
		switch rises := distance > highest; {
		case now.n > 0 && distance == highest+1:
			now.n++
		case now.n < 0 && !rises:
			now.n--
		default:
			if now.n != 0 {
				runs = append(runs, now)
			}
			now = run{uint32(max(distance, highest)), 1}
			if !rises {
				now.n = -1
			}
		}
		highest = max(highest, distance)
	}
	if now.n != 0 {
		runs = append(runs, now)
	}
	return runs
}

// Curve returns the curve of the requests so far for blocks of blockSize tokens;
// it panics below 1. Requests added later do not change it. It temporarily holds 32
// bytes per edge of the curve, of which there are 100,000 up to a capacity of 100,000
// blocks and 90,000 for each tenfold one.
func (b *CurveBuilder) Curve(blockSize int) *Curve {
	if blockSize < 1 {
		panic("cache: a block has at least 1 token")
	}
	lines := newSlopes(b.largest)
	next := uint32(0) // run
	for i := range b.requests.Len() {
		r, hit := b.requests.At(uint32(i)), 0
		for range r.runs {
			run := *b.runs.At(next)
			next++
			lines.addRun(run, hit, int(r.blocks), int(r.isl), blockSize)
			hit += max(int(run.n), -int(run.n))
		}
	}
	return lines.curve(b.total)
}

// addRun adds the lines of a run. hit is the number of blocks before it in its request.
func (s *slopes) addRun(r run, hit, blocks, isl, blockSize int) {
	tokens := func(m int) int { return min(m*blockSize, isl) }
	if r.n < 0 {
		n := -int(r.n)
		s.add(int(r.distance), 1, slope{hits: n, tokens: tokens(hit+n) - tokens(hit), blocks: blocks})
		return
	}
	// First full blocks, then the partial one, then blocks beyond the prompt's end,
	// which occur where the block size is wrong.
	full := min(max(isl/blockSize-hit, 0), int(r.n))
	if full > 0 {
		s.add(int(r.distance), full, slope{hits: 1, tokens: blockSize, blocks: blocks})
	}
	for at := full; at < int(r.n); {
		part := tokens(hit+at+1) - tokens(hit+at)
		n := 1
		if part == 0 {
			n = int(r.n) - at
		}
		s.add(int(r.distance)+at, n, slope{hits: 1, tokens: part, blocks: blocks})
		at += n
	}
}
