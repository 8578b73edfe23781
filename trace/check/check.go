package check

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"moontide/trace"
)

// Source gives the rows of a trace. A *[trace.Reader] is one; it should skip
// bad rows, or the first of them ends the check.
type Source interface {
	// Read fills the request with the next row, or returns io.EOF. The ids may
	// share memory with those of the row before.
	Read(*trace.Request) error
	// Line is the number of the row that Read returned last, from 1. No two
	// rows have the same.
	Line() int
	// Skipped is how many bad rows were left out so far and the first few
	// reasons, which name their lines as a *[trace.RowError].
	Skipped() (rows int, reasons []error)
}

// Options say how a trace is checked. The zero value is ready.
type Options struct {
	// BlockSize is the tokens of a block where the user named it; 0 finds it
	// from the rows.
	BlockSize int
	// Examples is how many places each finding keeps; 0 is 5, less than 0 none.
	Examples int
}

const defaultExamples = 5

// Report is all that was found in a trace.
type Report struct {
	Requests int `json:"requests"` // rows that could be read
	// BlockSize is what an analysis or a replay of the trace would go by. It is
	// not in the JSON: its bounds may be math.MaxInt, which is no number there.
	BlockSize trace.BlockSize `json:"-"`
	// Grid is the clock that the timestamps follow; nil where there is none. A
	// trace at a constant rate has one and no finding of it.
	Grid *trace.Grid `json:"grid"`
	// Findings stand in the fixed order of the kinds; a kind that was not met
	// has none.
	Findings []Finding `json:"findings"`
}

// Replayable reports whether a replay of the trace would mean what the trace
// says: there is no finding of severity [Error].
func (r *Report) Replayable() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Error })
}

// Run reads a trace to its end and says what is wrong with it. An error means
// that the source could not be read on; what is wrong with rows is in the
// report. Run is safe for concurrent use with different sources.
func Run(src Source, opts Options) (*Report, error) {
	if opts.BlockSize < 0 || opts.BlockSize > trace.MaxLength {
		return nil, fmt.Errorf("checking trace: block size is out of range: %d tokens", opts.BlockSize)
	}
	c := newChecker(opts)
	var row trace.Request
	for {
		err := src.Read(&row)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("checking trace: %w", err)
		}
		c.add(src.Line(), &row)
	}
	if err := c.blocks.err(); err != nil {
		return nil, fmt.Errorf("checking trace: %w", err)
	}
	return c.report(src.Skipped()), nil
}

// checker hands each row to the checks, which know nothing of each other.
type checker struct {
	found    *ledger
	requests int

	times      times
	delays     delays
	sessions   sessions
	lengths    lengths
	declared   declared
	sizes      *sizes
	blocks     blocks
	duplicates duplicates
}

func newChecker(opts Options) *checker {
	examples := opts.Examples
	if examples == 0 {
		examples = defaultExamples
	}
	found := newLedger(examples)
	return &checker{
		found:      found,
		times:      times{found: found},
		delays:     delays{found: found},
		sessions:   sessions{found: found},
		lengths:    lengths{found: found},
		declared:   declared{found: found},
		sizes:      newSizes(found, opts.BlockSize),
		blocks:     blocks{found: found},
		duplicates: duplicates{found: found},
	}
}

func (c *checker) add(line int, r *trace.Request) {
	c.requests++
	c.times.add(line, r)
	c.delays.add(r)
	c.sessions.add(line, r)
	c.lengths.add(line, r)
	c.declared.add(line, r)
	c.sizes.add(line, r)
	c.blocks.add(line, r)
	c.duplicates.add(line, r)
}

func (c *checker) report(skipped int, reasons []error) *Report {
	switch {
	case c.requests > 0:
		c.badRows(BadRow, skipped, reasons)
	case skipped > 0:
		c.badRows(NotTrace, skipped, reasons)
	default:
		c.found.whole(Empty, 0, "")
	}
	grid := c.times.finish(c.requests)
	c.delays.finish()
	c.lengths.finish()
	size, tokens := c.sizes.finish(c.requests)
	c.blocks.finish(tokens)
	return &Report{Requests: c.requests, BlockSize: size, Grid: grid, Findings: c.found.list()}
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
	c.found.countTo(kind, skipped)
}
