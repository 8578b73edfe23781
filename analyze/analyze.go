// Package analyze says what a trace is like: how long its prompts and answers
// are, when requests arrive, and how much of a prompt a server has seen before.
//
// Start with [Trace], which reads a stream of requests once and returns an
// [Analysis]:
//
//	r, err := trace.Open("conversation.jsonl", trace.Options{})
//	if err != nil { ... }
//	defer r.Close()
//	a, err := analyze.Trace(r.Borrowed(), analyze.Options{})
//	if err != nil { ... }
//	fmt.Println(a.ISL.Mean, a.ISL.Quantile(0.99), a.Prefix.Infinite.Block)
//
// Results are plain values; package analyze/report knows what they look like.
// What a trace cannot give is absent, never 0: a nil pointer where a whole part
// is missing, a [trace.Opt] where a single number is.
package analyze

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"

	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// ErrEmpty says that a trace has no rows, so that there is nothing to describe.
var ErrEmpty = errors.New("no requests")

// Options change how a trace is looked at. The zero value finds out everything
// from the trace.
type Options struct {
	// BlockSize is the number of tokens of a block, 1..[trace.MaxLength]; 0
	// detects it.
	BlockSize int
	// Top is how many of the most used blocks, and of the shared roots, are
	// listed; 0 is 10.
	Top int
	// Watch, where set, is shown each request, without its HashIDs, and the
	// numbers of its blocks (see [block.Table]), which are valid during the call
	// alone: whoever counts blocks, too, need not number them once more. It is
	// called in the order of the rows from one goroutine, which is not the
	// caller's, and not after Trace has returned.
	Watch func(r trace.Request, blocks []uint32)
}

// defaultTop is how many lines of a list a reader takes in.
const defaultTop = 10

// Analysis is what a trace is like.
type Analysis struct {
	Requests int
	// ISL and OSL are the input and output sequence lengths in tokens.
	ISL, OSL stats.Sample
	// Lengths is how the two go together.
	Lengths Lengths
	// Arrivals is nil where no row has a timestamp.
	Arrivals *Arrivals
	// Prefix is nil where no row has a block id.
	Prefix *Prefix
	// BlockFit is how well the block size goes with the rows that Prefix covers.
	BlockFit BlockFit
	// Observed is the shared context as the block ids show it: a prompt's
	// leading blocks that other requests of the trace have, too. It covers the
	// rows that Prefix does, and is absent without it.
	Observed Context
	// Declared is the shared context that the generator of a synthetic trace
	// wrote into its rows. Each of its numbers covers the rows that declare it.
	Declared Context
	// Sessions is nil where nothing tells which requests belong together: no row
	// has a session id or block ids.
	Sessions *Sessions
}

// Context splits prompts into the part that they share with other requests and
// the part of their own.
type Context struct {
	// Mean is the shared part of a prompt and UniqueMean the rest, in tokens,
	// averaged over requests.
	Mean, UniqueMean trace.Opt[float64]
	// SharedRatio is the sum of shared tokens over the sum of ISL: 0..1 (a
	// declaration can be wrong and exceed 1).
	SharedRatio trace.Opt[float64]
}

// Trace describes a trace in one pass over its requests, of which it keeps
// nothing: they may be those of [trace.Reader.Borrowed]. While it runs it holds
// about 40 bytes for each request, 4 for each unique block, 20 more for each that
// is used again, and a table of block ids (see [block.Table]); once
// the requests have ended, up to 200 bytes for each of them, of which the result
// keeps about 70. It reads on one processor and counts on another.
//
// The errors are [ErrEmpty], an option out of range, more distinct blocks than
// such a table can number, more than 2^31-1 requests, and, unchanged, an error of
// the stream.
func Trace(reqs trace.Requests, opts Options) (*Analysis, error) {
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("block size %d is not within 1..%d tokens", opts.BlockSize, trace.MaxLength)
	}
	if opts.Top < 0 {
		return nil, fmt.Errorf("a list of the top %d is not possible", opts.Top)
	}
	var c collector
	if err := c.collect(reqs, opts.Watch); err != nil {
		return nil, err
	}
	if len(c.rows) == 0 {
		return nil, ErrEmpty
	}
	size := c.detector.BlockSize()
	if opts.BlockSize > 0 {
		size = trace.GivenBlockSize(opts.BlockSize)
	}
	return c.analysis(size, cmp.Or(opts.Top, defaultTop)), nil
}

// maxRequests is what row numbers have room for.
const maxRequests = math.MaxInt32

// collector holds what is kept of the requests until the last one is known.
type collector struct {
	// What the goroutine that reads keeps.
	table    block.Table
	detector trace.BlockDetector
	declared declaredSums
	marks    lengthMarks
	sessions sessionCounter
	// What the one that counts keeps.
	rows   []row
	prefix prefixCounter
}

// row is what is kept of a request.
type row struct {
	at       float64 // arrival in ms, or NaN
	isl, osl int32
	runs     uint32 // where its runs of blocks begin
	hasIDs   bool
}

// analysis works the parts out side by side: each only reads what was kept.
func (c *collector) analysis(size trace.BlockSize, top int) *Analysis {
	a := &Analysis{Requests: len(c.rows), Declared: c.declared.context()}
	var parts sync.WaitGroup
	parts.Go(func() { a.ISL, a.OSL, a.Lengths = lengthsOf(c.rows) })
	parts.Go(func() { a.Arrivals = arrivalsOf(c.rows) })
	parts.Go(func() { a.Prefix, a.Observed = c.prefix.result(c.rows, &c.table, size, top) })
	parts.Go(func() { a.BlockFit = c.blockFit(size) })
	parts.Go(func() {
		if a.Sessions = c.sessions.result(c.rows); a.Sessions == nil {
			a.Sessions = c.prefix.sessions(c.rows, size)
		}
	})
	parts.Wait()
	l := &a.Lengths
	l.EstimatedISL, l.EstimatedOSL, l.MissingOSL = c.marks.estimatedISL, c.marks.estimatedOSL, c.marks.missingOSL
	return a
}

// declaredSums adds up the declarations of rows. A row may declare one part of
// its prompt and not the other.
type declaredSums struct {
	shared, sharedRows, sharedISL int
	unique, uniqueRows            int
}

func (s *declaredSums) add(r trace.Request) {
	if r.ContextLen.Set {
		s.shared += r.ContextLen.Value
		s.sharedRows++
		s.sharedISL += r.InputLength
	}
	if r.UniquePromptLen.Set {
		s.unique += r.UniquePromptLen.Value
		s.uniqueRows++
	}
}

func (s declaredSums) context() Context {
	return Context{
		Mean:        ratio(s.shared, s.sharedRows),
		UniqueMean:  ratio(s.unique, s.uniqueRows),
		SharedRatio: ratio(s.shared, s.sharedISL),
	}
}

// ratio is part/whole, absent where there is no whole.
func ratio(part, whole int) trace.Opt[float64] {
	if whole == 0 {
		return trace.Opt[float64]{}
	}
	return trace.Some(float64(part) / float64(whole))
}
