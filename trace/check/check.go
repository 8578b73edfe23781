package check

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"moontide/trace"
	"moontide/trace/block"
)

// Source reads the rows of a trace, as a *format.Reader does. It should skip bad
// rows; otherwise the first one ends the check.
type Source interface {
	// Read reads the next row into the request, or returns io.EOF. It may reuse
	// the array of the ids.
	Read(*trace.Request) error
	// Line returns the line of the row that Read returned last, from 1. No two
	// rows share a line.
	Line() int
	// Skipped returns the number of bad rows that were skipped so far, and the
	// first errors, each a *[trace.RowError] with its line.
	Skipped() (rows int, reasons []error)
}

// Options configures a check. The zero value works.
type Options struct {
	// BlockSize is the number of tokens per block; 0 detects it from the rows.
	BlockSize int
	// Examples is the maximum number of examples per finding; 0 means 5, a
	// negative number none.
	Examples int
}

const defaultExamples = 5

// Report is the result of a check.
type Report struct {
	Requests int `json:"requests"` // rows that could be read
	// BlockSize is what an analysis or replay of the trace would use. It is not
	// in the JSON: its bounds may be math.MaxInt, which JSON cannot represent.
	BlockSize block.Size `json:"-"`
	// Grid is the clock that the timestamps follow; nil if there is none. A trace
	// with a constant rate has a grid but no finding about it.
	Grid *trace.Grid `json:"grid"`
	// Findings are in the order of the kinds.
	Findings []Finding `json:"findings"`
}

// Replayable reports whether the trace can be replayed faithfully: it has no
// finding of severity [Error].
func (r *Report) Replayable() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Error })
}

// Run reads a trace to its end and reports what is wrong with it. An error means
// that reading failed; bad rows are findings. Run is safe for concurrent use with
// different sources.
func Run(src Source, opts Options) (*Report, error) {
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("checking trace: block size is out of range: %d tokens", opts.BlockSize)
	}
	c := newChecker(opts)
	defer c.sessions.close()
	var row trace.Request
	for {
		err := src.Read(&row)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("checking trace: %w", err)
		}
		if err := c.add(src.Line(), &row); err != nil {
			return nil, fmt.Errorf("checking trace: %w", err)
		}
	}
	if err := c.blocks.err(); err != nil {
		return nil, fmt.Errorf("checking trace: %w", err)
	}
	report, err := c.report(src.Skipped())
	if err != nil {
		return nil, fmt.Errorf("checking trace: %w", err)
	}
	return report, nil
}

// checker passes each row to all checks, which are independent of each other.
type checker struct {
	found    *findings
	requests int

	times    times
	delays   delays
	sessions *sessions
	lengths  lengths
	sizes    *sizes
	blocks   blocks
}

func newChecker(opts Options) *checker {
	examples := opts.Examples
	if examples == 0 {
		examples = defaultExamples
	}
	found := newFindings(examples)
	c := &checker{
		found:   found,
		times:   times{found: found},
		delays:  delays{found: found},
		lengths: lengths{found: found},
		sizes:   newSizes(found, opts.BlockSize),
		blocks:  blocks{found: found},
	}
	c.sessions = newSessions(found, &c.blocks)
	return c
}

func (c *checker) add(line int, r *trace.Request) error {
	c.requests++
	c.times.add(line, r)
	c.delays.add(r)
	c.lengths.add(line, r)
	c.sizes.add(line, r)
	c.blocks.add(line, r)
	return c.sessions.add(line, r)
}

func (c *checker) report(skipped int, reasons []error) (*Report, error) {
	switch {
	case c.requests > 0:
		c.badRows(BadRow, skipped, reasons)
	case skipped > 0:
		c.badRows(NotTrace, skipped, reasons)
	default:
		c.found.whole(Empty, 0, "")
	}
	if err := c.sessions.finish(); err != nil {
		return nil, err
	}
	grid := c.times.finish(c.requests)
	c.delays.finish()
	return &Report{Requests: c.requests, BlockSize: c.sizes.finish(c.requests), Grid: grid, Findings: c.found.list()}, nil
}

func (c *checker) badRows(kind Kind, skipped int, reasons []error) {
	for _, reason := range reasons {
		line, err := 0, reason
		var bad *trace.RowError
		if errors.As(reason, &bad) {
			line, err = bad.Line, bad.Err
		}
		c.found.add(kind, line, "%v", err)
	}
	if skipped > 0 { // only the first errors are kept
		c.found.of(kind).Count = skipped
	}
}
