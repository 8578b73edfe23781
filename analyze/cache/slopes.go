package cache

import "moontide/trace/stats"

// A curve is exact at its edges: all capacities below exactEdges, and above those of five
// significant digits, 10, 100, ... apart. A bucket is from an edge to the next.
const (
	exactEdges = 100_000
	perDecade  = 90_000
)

// bucketOf returns the bucket of a capacity.
func bucketOf(capacity int) int {
	if capacity < exactEdges {
		return capacity
	}
	first := exactEdges
	from, width := exactEdges, 10
	for capacity >= 10*from {
		first += perDecade
		from, width = 10*from, 10*width
	}
	return first + (capacity-from)/width
}

// edge returns the smallest capacity of a bucket.
func edge(bucket int) int {
	if bucket < exactEdges {
		return bucket
	}
	bucket -= exactEdges
	from, width := exactEdges, 10
	for ; bucket >= perDecade; bucket -= perDecade {
		from, width = 10*from, 10*width
	}
	return from + bucket*width
}

// slope is what each further block of capacity hits of a request of some blocks.
type slope struct{ hits, tokens, blocks int }

// slopes adds up straight lines to a curve.
type slopes struct {
	largest int      // end of the last line
	changes []change // of the slope, at each edge
	within  []inside // by bucket, from exactEdges on
}

type change struct {
	hits, tokens int
	shares       stats.Sum
}

// inside holds the hits of the parts of lines that begin or end within a bucket.
type inside struct {
	hits, tokens int
	shares       float64
}

// newSlopes makes room for lines that end at a capacity at most.
func newSlopes(largest int) *slopes {
	buckets := bucketOf(largest) + 2
	return &slopes{largest, make([]change, buckets), make([]inside, max(buckets-exactEdges, 0))}
}

// add makes the curve rise for n blocks of capacity from at on.
func (s *slopes) add(at, n int, by slope) {
	end := at + n
	if first := bucketOf(at); edge(first) < at {
		next := min(edge(first+1), end)
		s.inside(first, next-at, by)
		at = next
	}
	if last := bucketOf(end); at < end && edge(last) < end {
		s.inside(last, end-edge(last), by)
		end = edge(last)
	}
	if at < end {
		s.changes[bucketOf(at)].add(by)
		s.changes[bucketOf(end)].add(slope{-by.hits, -by.tokens, by.blocks})
	}
}

func (s *slopes) inside(bucket, n int, by slope) {
	in := &s.within[bucket-exactEdges]
	in.hits += n * by.hits
	in.tokens += n * by.tokens
	in.shares += float64(n*by.hits) / float64(by.blocks)
}

func (c *change) add(by slope) {
	c.hits += by.hits
	c.tokens += by.tokens
	c.shares.Add(float64(by.hits) / float64(by.blocks))
}

// insideOf returns the hits of parts of lines in a bucket.
func (s *slopes) insideOf(bucket int) inside {
	if bucket < exactEdges {
		return inside{}
	}
	return s.within[bucket-exactEdges]
}

// isBend reports whether the curve bends at an edge.
func (s *slopes) isBend(bucket int) bool {
	return s.changes[bucket] != change{} || s.insideOf(bucket) != inside{} || bucket > 0 && s.insideOf(bucket-1) != inside{}
}

// curve adds up all lines.
func (s *slopes) curve(total Hits) *Curve {
	bends := 1
	for bucket := 1; bucket < len(s.changes); bucket++ {
		if s.isBend(bucket) {
			bends++
		}
	}
	points := make([]point, 1, bends)
	var now change
	for bucket := range s.changes {
		if bucket > 0 && s.isBend(bucket) {
			p, in := points[len(points)-1], s.insideOf(bucket-1)
			at := edge(bucket)
			width := at - int(p.capacity)
			p.capacity = uint32(at)
			p.blocks += now.hits*width + in.hits
			p.tokens += now.tokens*width + in.tokens
			p.shares += now.shares.Value()*float64(width) + in.shares
			points = append(points, p)
		}
		c := &s.changes[bucket]
		now.hits += c.hits
		now.tokens += c.tokens
		now.shares.AddSum(c.shares)
	}
	if last := &points[len(points)-1]; int(last.capacity) > s.largest {
		last.capacity = uint32(s.largest) // within a bucket
	}
	return &Curve{total, points}
}
