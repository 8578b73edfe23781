package fidelity

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"moontide/analyze"
	"moontide/trace"
	"moontide/trace/block"
)

// Options configures [Collect]. The zero value works.
type Options struct {
	// BlockSize is the number of tokens in a block; 0 detects it.
	BlockSize int
	// Limit is the maximum number of requests to read; 0 is no limit.
	Limit int
}

// Trace holds what is compared of a trace, in order of arrival: about 100 bytes for each
// request and 4 for each block of its prompt.
type Trace struct {
	// TTFT holds the times to first token of a simulated deployment in milliseconds, in
	// the order in which requests were sent, NaN for those without one; nil if it was
	// not simulated.
	TTFT []float64

	blockSize int
	timed     bool // rows have timestamps
	estimated int  // rows whose time is estimated
	at        []float64
	isl, osl  []int32
	session   []int32 // number of the session, or -1
	sessions  int
	ends      []int    // of the blocks of each request
	blocks    []uint32 // of all requests
	ids       []uint64 // by number
}

// Requests returns the number of requests.
func (t *Trace) Requests() int { return len(t.at) }

// Estimated returns the number of requests without a timestamp, whose arrival is
// estimated from their delay and [trace.AnswerTime].
func (t *Trace) Estimated() int { return t.estimated }

// Sessions returns the number of sessions, by ids or, without any, as inferred by
// [analyze.Trace].
func (t *Trace) Sessions() int { return t.sessions }

// Collect reads a trace. It returns the errors of [analyze.Trace].
func Collect(reqs trace.Requests, opts Options) (*Trace, error) {
	if opts.Limit > 0 {
		reqs = trace.Take(reqs, opts.Limit)
	}
	c := collector{}
	a, err := analyze.Trace(trace.Checked(reqs, c.add), analyze.Options{BlockSize: opts.BlockSize})
	if err != nil {
		return nil, err
	}
	t := &c.Trace
	if a.Prefix != nil {
		t.blockSize = a.Prefix.BlockSize.Tokens
	}
	t.session = make([]int32, len(t.at))
	if a.Sessions != nil {
		copy(t.session, a.Sessions.Of)
		t.sessions = a.Sessions.Sessions
	} else {
		for i := range t.session {
			t.session[i] = -1
		}
	}
	t.sort()
	return t, nil
}

// collector reads rows in the order of the file.
type collector struct {
	Trace
	earlier trace.Earlier
	table   block.Table
}

func (c *collector) add(r trace.Request) error {
	t := &c.Trace
	at := math.Inf(-1)
	for _, before := range c.earlier.Add(r) {
		at = max(at, t.at[before]+trace.AnswerTime(int(t.osl[before])))
	}
	switch n := len(t.at); {
	case r.Timestamp.Set:
		at = r.Timestamp.Value
		t.timed = true
	case !math.IsInf(at, -1):
		at += max(r.Delay.Value, 0)
		t.estimated++
	case n > 0:
		at = t.at[n-1]
		t.estimated++
	default:
		at = 0
		t.estimated++
	}
	t.at = append(t.at, at)
	t.isl, t.osl = append(t.isl, int32(r.InputLength)), append(t.osl, int32(r.OutputLength))
	first := len(t.blocks)
	t.blocks = c.table.AppendNumbers(t.blocks, r.HashIDs)
	for i, n := range t.blocks[first:] {
		if int(n) == len(t.ids) {
			t.ids = append(t.ids, r.HashIDs[i])
		}
	}
	t.ends = append(t.ends, len(t.blocks))
	if err := c.table.Err(); err != nil {
		return fmt.Errorf("numbering blocks: %w", err)
	}
	return nil
}

// sort puts the rows in order of arrival.
func (t *Trace) sort() {
	if slices.IsSorted(t.at) {
		return
	}
	order := make([]int32, len(t.at))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(t.at[a], t.at[b]) })
	blocks, ends := make([]uint32, 0, len(t.blocks)), make([]int, 0, len(t.ends))
	for _, i := range order {
		blocks = append(blocks, t.blocksOf(int(i))...)
		ends = append(ends, len(blocks))
	}
	t.blocks, t.ends = blocks, ends
	t.at, t.isl, t.osl, t.session = taken(t.at, order), taken(t.isl, order), taken(t.osl, order), taken(t.session, order)
}

// blocksOf returns the numbers of the blocks of a request.
func (t *Trace) blocksOf(i int) []uint32 {
	first := 0
	if i > 0 {
		first = t.ends[i-1]
	}
	return t.blocks[first:t.ends[i]:t.ends[i]]
}

// taken returns the values at some indices.
func taken[T any](values []T, indices []int32) []T {
	if values == nil {
		return nil
	}
	all := make([]T, len(indices))
	for i, at := range indices {
		all[i] = values[at]
	}
	return all
}
