package cache

// CurveBuilder computes the [Curve] of the requests added to it. The zero
// CurveBuilder is ready to use. It is not safe for concurrent use.
//
// It holds about 6 bytes per distinct block, 12 per request and 8 per run (see
// run). With prefix-chained ids a request has mostly 1 to 4 runs.
type CurveBuilder struct {
	timeline timeline
	requests []requestRuns
	runs     []run
}

// requestRuns holds the ISL of a request and its numbers of blocks and runs.
type requestRuns struct{ isl, blocks, runs int32 }

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
	highest := -1         // distance so far
	distance := 0         // stack distance of the block
	previous := uint32(0) // the last use of the block before
	for _, number := range numbers {
		place, used := b.timeline.lastUse(number)
		if !used {
			break
		}
		if place+1 == previous {
			distance++ // last used consecutively: only the block before is in between
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

// Curve returns the curve of the requests so far for blocks of blockSize tokens;
// it panics below 1. Requests added later do not change it. It temporarily holds 32
// bytes per end of a run, at most as much as the curve.
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

// appendBends appends the bends that a run adds to the curve. hit is the number of
// blocks before it in its request.
func appendBends(bends []bend, r run, hit, blocks, isl, blockSize int) []bend {
	tokens := func(m int) int { return min(m*blockSize, isl) }
	if r.n < 0 {
		end := hit - int(r.n)
		return appendLine(bends, int(r.distance), 1, bend{
			hits: -r.n, tokens: int32(tokens(end) - tokens(hit)), blocks: int32(blocks),
		})
	}
	// First full blocks, then the partial one, then blocks beyond the prompt's end,
	// which occur where the block size is wrong.
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

// appendLine makes the curve rise by slope per block for n blocks of capacity from
// at on.
func appendLine(bends []bend, at, n int, slope bend) []bend {
	slope.at = uint32(at)
	end := bend{at: uint32(at + n), hits: -slope.hits, tokens: -slope.tokens, blocks: slope.blocks}
	return append(bends, slope, end)
}
