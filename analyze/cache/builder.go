package cache

// CurveBuilder takes the requests of a trace and makes their [Curve]. The zero
// CurveBuilder is ready. It is not safe for concurrent use.
//
// It holds about 6 bytes for each distinct block, and for each request 12 bytes
// and 8 for each of its runs (below). Where ids are prefix-chained a request has
// O(log of the distinct blocks) runs on average, mostly 1 to 4, which is a few
// bits a reference: a request makes one run of all that lay on its path, as the
// access of a link-cut tree does.
type CurveBuilder struct {
	timeline timeline
	requests []requestRuns
	runs     []run
}

// requestRuns is a request's ISL in tokens and the number of its blocks and
// runs.
type requestRuns struct{ isl, blocks, runs int32 }

// run is a stretch of the prefix of a request that was seen before, by the
// capacity that would have held it: the largest stack distance of a block and
// all before it in the request. From one block to the next this goes up by one
// where both were last used in one request, or stays as it is.
//
// A run of n > 0 blocks has the distances distance, distance+1, ...; one of
// n < 0 has -n blocks of the same distance.
type run struct {
	distance uint32
	n        int32
}

// Add looks up and then uses the blocks of the next request, whose prompt has
// isl tokens, 0..[trace.MaxLength]. A request without blocks counts too: it
// hits nothing. Numbers are those of [moontide/trace/block.Table], or any
// others; memory grows with the largest.
func (b *CurveBuilder) Add(numbers []uint32, isl int) {
	before := len(b.runs)
	b.lookUp(numbers)
	b.timeline.use(numbers)
	b.requests = append(b.requests, requestRuns{
		isl:    int32(isl),
		blocks: int32(len(numbers)),
		runs:   int32(len(b.runs) - before),
	})
}

// lookUp appends the runs of a request.
func (b *CurveBuilder) lookUp(numbers []uint32) {
	var now run
	highest := -1 // the largest distance so far
	distance := 0
	previous := uint32(0) // the last use of the block before
	for _, number := range numbers {
		place, used := b.timeline.lastUse(number)
		if !used {
			break
		}
		if place+1 == previous {
			distance++ // used next to each other: only the block before is between
		} else {
			distance = b.timeline.after(place)
		}
		previous = place
		switch rises := distance > highest; {
		case now.n > 0 && distance == highest+1:
			now.n++
		case now.n < 0 && !rises:
			now.n--
		default:
			if now.n != 0 {
				b.runs = append(b.runs, now)
			}
			now = run{uint32(max(distance, highest)), 1}
			if !rises {
				now.n = -1
			}
		}
		highest = max(highest, distance)
	}
	if now.n != 0 {
		b.runs = append(b.runs, now)
	}
}

// Curve returns the curve of the requests so far, for blocks of blockSize
// tokens, which must be at least 1. More requests may be added afterwards; they
// do not change it. For as long as it works it holds 32 bytes for each end of a
// run, as much as the curve does at most.
func (b *CurveBuilder) Curve(blockSize int) *Curve {
	if blockSize < 1 {
		panic("cache: a block has at least 1 token")
	}
	bends := make([]bend, 0, 2*len(b.runs)+len(b.requests)/4)
	total := Hits{Requests: len(b.requests)}
	next := 0
	for _, r := range b.requests {
		total.Blocks += int(r.blocks)
		total.Tokens += int(r.isl)
		hit := 0
		for _, run := range b.runs[next : next+int(r.runs)] {
			bends = appendBends(bends, run, hit, int(r.blocks), int(r.isl), blockSize)
			hit += max(int(run.n), -int(run.n))
		}
		next += int(r.runs)
	}
	return newCurve(total, bends)
}

// appendBends appends what a run does to the curve. hit is the number of blocks
// before it in its request.
func appendBends(bends []bend, r run, hit, blocks, isl, blockSize int) []bend {
	tokens := func(m int) int { return min(m*blockSize, isl) }
	if r.n < 0 {
		end := hit - int(r.n)
		return appendLine(bends, int(r.distance), 1, bend{
			hits: -r.n, tokens: int32(tokens(end) - tokens(hit)), blocks: int32(blocks),
		})
	}
	// Full blocks first, then the partial one, then blocks beyond the prompt's
	// end, which a trace with a wrong block size has.
	full := min(max(isl/blockSize-hit, 0), int(r.n))
	if full > 0 {
		bends = appendLine(bends, int(r.distance), full, bend{hits: 1, tokens: int32(blockSize), blocks: int32(blocks)})
	}
	for at := full; at < int(r.n); {
		part := tokens(hit+at+1) - tokens(hit+at)
		n := 1
		if part == 0 {
			n = int(r.n) - at
		}
		bends = appendLine(bends, int(r.distance)+at, n, bend{hits: 1, tokens: int32(part), blocks: int32(blocks)})
		at += n
	}
	return bends
}

// appendLine lets the curve rise by slope for each of n units of capacity from
// capacity at on.
func appendLine(bends []bend, at, n int, slope bend) []bend {
	slope.at = uint32(at)
	end := bend{at: uint32(at + n), hits: -slope.hits, tokens: -slope.tokens, blocks: slope.blocks}
	return append(bends, slope, end)
}
