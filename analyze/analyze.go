// Package analyze says what a trace is like: how long its prompts and answers
// are, when requests arrive, and how much of a prompt a server has seen before.
//
// Start with [Trace], which reads a stream of requests once and returns an
// [Analysis]:
//
//	r, err := trace.Open("conversation.jsonl", trace.Options{})
//	if err != nil { ... }
//	defer r.Close()
//	a, err := analyze.Trace(r.Requests(), analyze.Options{})
//	if err != nil { ... }
//	fmt.Println(a.ISL.Mean, a.ISL.Quantile(0.99), a.Prefix.Infinite.Block)
//
// Results are plain values; package analyze/report knows what they look like.
// What a trace cannot give is absent, never 0: a nil pointer where a whole part
// is missing, a [trace.Opt] where a single number is.
package analyze

import (
	"errors"
	"fmt"

	"moontide/analyze/dist"
	"moontide/trace"
)

// ErrEmpty says that a trace has no rows, so that there is nothing to describe.
var ErrEmpty = errors.New("no requests")

// Options change how a trace is looked at. The zero value finds out everything
// from the trace.
type Options struct {
	// BlockSize is the number of tokens of a block, 1..[trace.MaxLength]; 0
	// detects it.
	BlockSize int
}

// Analysis is what a trace is like.
type Analysis struct {
	Requests int
	// ISL and OSL are the input and output sequence lengths in tokens.
	ISL, OSL dist.Distribution
	// Arrivals is nil where no row has a timestamp.
	Arrivals *Arrivals
	// Prefix is nil where no row has a block id.
	Prefix *Prefix
	// Observed is the shared context as the block ids show it: a prompt's
	// leading blocks whose ids occur more than once anywhere in the trace. It
	// covers the rows that Prefix does, and is absent without it.
	Observed Context
	// Declared is the shared context that the generator of a synthetic trace
	// wrote into its rows. Each of its numbers covers the rows that declare it.
	Declared Context
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

// Trace describes a trace in one pass over its requests. It holds about 60
// bytes for each request and, for each unique block, less than 1 byte where ids
// are numbered by first use and about 75 where they are random numbers; a block
// that is used again costs nothing.
//
// The errors are [ErrEmpty], a block size out of range, and, unchanged, an error
// of the stream.
func Trace(reqs trace.Requests, opts Options) (*Analysis, error) {
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("block size %d is not within 1..%d tokens", opts.BlockSize, trace.MaxLength)
	}
	var c collector
	for r, err := range reqs {
		if err != nil {
			return nil, err
		}
		c.add(r)
	}
	if len(c.isl) == 0 {
		return nil, ErrEmpty
	}
	size := c.detector.BlockSize()
	if opts.BlockSize > 0 {
		size = trace.GivenBlockSize(opts.BlockSize)
	}
	return c.analysis(size), nil
}

// collector holds what is kept of the requests until the last one is known.
type collector struct {
	isl, osl   []float64
	timestamps []float64
	detector   trace.BlockDetector
	prefix     prefixCounter
	declared   declaredSums
}

func (c *collector) add(r trace.Request) {
	c.isl = append(c.isl, float64(r.InputLength))
	c.osl = append(c.osl, float64(r.OutputLength))
	if r.Timestamp.Set {
		c.timestamps = append(c.timestamps, r.Timestamp.Value)
	}
	c.detector.Add(r)
	c.prefix.add(r)
	c.declared.add(r)
}

func (c *collector) analysis(size trace.BlockSize) *Analysis {
	a := &Analysis{
		Requests: len(c.isl),
		ISL:      dist.Of(c.isl),
		OSL:      dist.Of(c.osl),
		Arrivals: arrivalsAt(c.timestamps),
		Declared: c.declared.context(),
	}
	a.Prefix, a.Observed = c.prefix.result(size)
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
