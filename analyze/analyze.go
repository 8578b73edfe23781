// Package analyze computes statistics of a trace: prompt and answer lengths, arrivals,
// changes over time, sessions, and prefix sharing.
//
// [Trace] reads a stream of requests once:
//
//	r, err := format.Open("conversation.jsonl", format.Options{})
//	if err != nil { ... }
//	defer r.Close()
//	a, err := analyze.Trace(r.Borrowed(), analyze.Options{})
//	if err != nil { ... }
//	fmt.Println(a.ISL.Mean, a.ISL.Quantile(0.99), a.Prefix.Infinite.Block)
//
// Results are plain values in tokens, blocks and milliseconds. Values missing from
// the trace are absent, not 0: a nil pointer for a whole part, a [trace.Opt] for a
// single number. Subpackages compute cache hit rates (cache) and reports (report).
package analyze

import (
	"errors"
	"fmt"
	"sync"

	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/stats"
)

// ErrEmpty is returned for a trace without rows.
var ErrEmpty = errors.New("no requests")

// Options configures [Trace]. The zero value works.
type Options struct {
	// BlockSize is the number of tokens in a block, 1..[trace.MaxLength]; 0
	// detects it.
	BlockSize int
	// Watch, if set, is called for each request, without its HashIDs, with the
	// numbers of its blocks (see [moontide/trace/block.Table]), which are valid
	// only during the call. Calls come in row order from one goroutine, which is
	// not the caller's, and end before Trace returns.
	Watch func(r trace.Request, blocks []uint32)
	// Watched, if set, is called once after the last call of Watch, with the tokens of a
	// block, unless Trace returns an error. It runs beside the rest of the analysis and
	// ends before Trace returns.
	Watched func(blockSize int)
	// Line, if set, returns the line of the row read last, for a [trace.GraphError].
	Line func() int
}

// Analysis describes a trace.
type Analysis struct {
	Requests int
	// ISL and OSL are the input and output sequence lengths in tokens.
	ISL, OSL stats.Sample
	// Lengths is the relation between the two.
	Lengths Lengths
	// Arrivals is nil if no row has a timestamp.
	Arrivals *Arrivals
	// Time is nil if Arrivals is, or if it has fewer than 8 requests or all arrive at once.
	Time *Time
	// Prefix is nil if no row has a block id.
	Prefix *Prefix
	// BlockFit reports how well the block size fits the rows with block ids.
	BlockFit BlockFit
	// Observed is the shared context according to block ids: the leading blocks of
	// a prompt that other requests also have. It covers the rows with ids and is
	// absent if there are none.
	Observed Context
	// Declared is the shared context that the generator of a synthetic trace
	// wrote into its rows. Each number covers the rows that declare it.
	Declared Context
	// Sessions is nil if rows have neither session ids nor block ids.
	Sessions *Sessions
	// Graph is nil if no row names the requests that it waits for.
	Graph *Graph
	// Untimed are the turns without a timestamp. Prefix, Sessions and the rows seen
	// by Watch take them in row order; Arrivals, Time and the gaps of Sessions estimate
	// their times.
	Untimed Untimed
}

// Context splits prompts into the part shared with other requests and the rest.
type Context struct {
	// Mean and UniqueMean are the mean shared part of a prompt and the mean rest,
	// in tokens.
	Mean, UniqueMean trace.Opt[float64]
	// SharedRatio is the sum of shared tokens over the sum of ISL, 0..1 (above 1
	// only if a declaration is wrong).
	SharedRatio trace.Opt[float64]
}

// Trace describes a trace in one pass. It keeps no request, so reqs may be those
// of a reader's Borrowed method. It uses two CPU cores. Per request it holds
// about 52 bytes, and up to 96 at the end; per unique block 4 bytes, 20 more if the block
// is reused, and a table of block ids. Session and request ids are in temporary files: see
// [trace.GraphBuilder].
//
// It returns [ErrEmpty], a [*trace.GraphError], an error for an option out of range, for more than 2^31-1
// requests or more blocks than a table can number, or the stream's own error.
func Trace(reqs trace.Requests, opts Options) (*Analysis, error) {
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("block size %d is not within 1..%d tokens", opts.BlockSize, trace.MaxLength)
	}
	var c collector
	defer c.sessions.builder.Close()
	if err := c.collect(reqs, opts); err != nil {
		return nil, err
	}
	if c.rows.len() == 0 {
		return nil, ErrEmpty
	}
	size := c.detector.Size()
	if opts.BlockSize > 0 {
		size = block.GivenSize(opts.BlockSize)
	}
	return c.analysis(size, opts.Watched)
}

// analysis computes the parts in parallel: they only read what was collected. Those of a
// long trace are computed one after another, to save memory.
func (c *collector) analysis(size block.Size, watched func(blockSize int)) (*Analysis, error) {
	a := &Analysis{Requests: c.rows.len(), Lengths: c.lengths, Declared: c.declared.context()}
	if err := c.bySession(a, size); err != nil {
		return nil, err
	}
	a.Arrivals = arrivalsOf(&c.rows)
	a.Time = newTime(a.Arrivals)
	var parts sync.WaitGroup
	do := parts.Go
	if c.rows.len() > manyRows {
		do = func(part func()) { part() }
	}
	do(func() { a.Time.addLengths(&c.rows) })
	if c.prefix.total > 0 {
		a.Prefix = &Prefix{BlockSize: size, Requests: c.prefix.requests, TotalBlocks: c.prefix.total, UniqueBlocks: c.prefix.unique}
		do(func() { a.Prefix.Roots = c.prefix.sharedRoots(size) })
		do(func() { a.Prefix.Reuse = c.prefix.reuse.result() })
		do(func() { a.Observed = c.prefix.hits(a.Prefix, &c.rows, a.Time) })
	}
	if a.Sessions == nil {
		do(func() { a.Sessions = c.prefix.sessions(&c.rows, size) })
	}
	do(func() { a.ISL, a.OSL = a.Lengths.of(&c.rows) })
	do(func() { a.BlockFit = c.blockFit(size) })
	if watched != nil {
		do(func() { watched(size.Tokens) })
	}
	parts.Wait()
	a.Time.sumThirds()
	return a, nil
}

// bySession describes the graph and the declared sessions, and estimates times by them.
func (c *collector) bySession(a *Analysis, size block.Size) error {
	graph, err := c.sessions.graph()
	if err != nil {
		return err
	}
	a.Untimed = c.estimateTimes(graph)
	if c.sessions.waits {
		a.Graph = graphOf(graph, c.rows.len())
	}
	a.Sessions, err = c.sessions.result(&c.rows, &c.prefix, size)
	return err
}

// declaredContext sums the declared contexts of rows. A row may declare only one
// part.
type declaredContext struct {
	shared, sharedRows, sharedISL int
	unique, uniqueRows            int
}

func (s *declaredContext) add(r trace.Request) {
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

func (s declaredContext) context() Context {
	return Context{
		Mean:        trace.Ratio(s.shared, s.sharedRows),
		UniqueMean:  trace.Ratio(s.unique, s.uniqueRows),
		SharedRatio: trace.Ratio(s.shared, s.sharedISL),
	}
}
