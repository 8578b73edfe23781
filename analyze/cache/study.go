package cache

import (
	"slices"

	"moontide/trace"
	"moontide/trace/routing"
)

// Question selects the caches whose hit rates a [Study] computes.
type Question struct {
	Policies []Policy
	// Capacities holds the capacities in the user's units; nil are several that
	// fit the trace.
	Capacities []Capacity
	// BytesPerToken is the size of a token in the KV cache; 0 if unknown.
	BytesPerToken float64
	// Workers is the number of simulated workers with a cache each, 0 for none.
	Workers  int
	Routings []routing.Policy
}

// Results holds the hits of caches of several sizes and policies on a trace.
type Results struct {
	Question
	BlockSize int // tokens
	// Curve is the LRU curve.
	Curve *Curve
	// Points holds the hits at each capacity, by policy.
	Points []Point
	// RoomForReuse is [RoomForReuse] if Belady's bound was requested.
	RoomForReuse trace.Opt[int] // blocks
	// Fleets compares the workers with a single cache, by capacity.
	Fleets []FleetPoint
	// SessionsInferred reports that session routing used inferred sessions.
	SessionsInferred bool
}

// Point holds the hits of one policy at one capacity.
type Point struct {
	Policy   Policy
	Capacity int // blocks
	Hits     Hits
}

// Study collects the requests of a trace: the LRU curve, and the whole sequence
// of blocks if the question needs it.
type Study struct {
	question Question
	builder  CurveBuilder
	sequence *Sequence // nil if the curve is enough
	rows     int       // added so far
	with     []int32   // rows in the sequence

	curve     *Curve // see Finish
	blockSize int    // tokens
}

// NewStudy returns a study without requests.
func NewStudy(q Question) *Study {
	s := &Study{question: q}
	if q.Workers > 0 || slices.ContainsFunc(q.Policies, func(p Policy) bool { return p != LRU }) {
		s.sequence = &Sequence{}
	}
	return s
}

// Add adds a request. One without block ids is neither hit nor miss.
func (s *Study) Add(r trace.Request, blocks []uint32) {
	s.rows++
	if len(blocks) == 0 {
		return
	}
	s.builder.Add(blocks, r.InputLength)
	if s.sequence != nil {
		s.sequence.Add(blocks, r.InputLength, r.SessionID)
		s.with = append(s.with, int32(s.rows-1))
	}
}

// Finish computes the LRU curve after the last request, for blocks of blockSize tokens.
func (s *Study) Finish(blockSize int) { s.curve, s.blockSize = s.builder.Curve(blockSize), blockSize }

// Results computes the hits after [Study.Finish].
// inferred holds the session of each request if sessions were inferred, or is
// nil. The error is [ErrCapacity] if a capacity does not fit the trace.
func (s *Study) Results(inferred []int32) (*Results, error) {
	r := &Results{Question: s.question, BlockSize: s.blockSize, Curve: s.curve}
	capacities, err := r.blocks()
	if err != nil {
		return nil, err
	}
	for _, policy := range r.Policies {
		hits := make([]Hits, len(capacities))
		if policy == LRU {
			for i, n := range capacities {
				hits[i] = r.Curve.At(n)
			}
		} else if hits, err = Simulate(s.sequence, policy, s.blockSize, capacities...); err != nil {
			return nil, err
		}
		if policy == Belady {
			r.RoomForReuse = trace.Some(RoomForReuse(s.sequence))
		}
		for i, n := range capacities {
			r.Points = append(r.Points, Point{Policy: policy, Capacity: n, Hits: hits[i]})
		}
	}
	if r.Workers == 0 {
		return r, nil
	}
	if r.SessionsInferred = inferred != nil; r.SessionsInferred {
		of := make([]int32, len(s.with))
		for i, row := range s.with {
			of[i] = inferred[row]
		}
		s.sequence.Group(of)
	}
	r.Fleets, err = Fleet{Workers: r.Workers}.Compare(s.sequence, r.BlockSize, capacities, r.Routings...)
	return r, err
}

// roundSizes are the default capacities in blocks.
var roundSizes = []int{10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000}

// blocks returns the capacities in blocks, by default 10, 30, 100, ... from a
// thousandth of the size at which the curve is flat.
func (r *Results) blocks() (blocks []int, err error) {
	for _, size := range r.Capacities {
		n, err := size.Blocks(r.BlockSize, r.BytesPerToken)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(blocks, n) {
			blocks = append(blocks, n)
		}
	}
	if len(blocks) > 0 {
		return blocks, nil
	}
	for _, n := range roundSizes {
		if n*1000 >= r.Curve.Largest() && n < r.Curve.Largest() {
			blocks = append(blocks, n)
		}
	}
	return append(blocks, r.Curve.Largest()), nil
}
