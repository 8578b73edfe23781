package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/format"
)

// input is the trace of a replay, read once before the run: what is wrong with
// it is said before anything is sent.
type input struct {
	path, name string
	sha256     string
	blockSize  trace.BlockSize
	plan       replay.Plan
	skipped    int
	pacing     pacing
	gridNote   string
	live       *liveStats // for who looks on while it is replayed
}

// inspect reads the trace at path for a replay that is paced so.
func inspect(ctx context.Context, c *cli.Context, std streams, path string, p pacing, accepts func(trace.Request) error) (input, error) {
	p.rebase = true
	in := input{path: path, pacing: p, live: &liveStats{}}
	if p.spread {
		if err := in.findGrid(ctx, c, std); err != nil {
			return in, err
		}
	}
	r, err := openTrace(c, std, path)
	if err != nil {
		return in, err
	}
	defer r.Close()
	var sizes trace.BlockDetector
	var grid trace.GridDetector
	rows := until(ctx, watch(r.Requests(), func(r trace.Request) { sizes.Add(r); grid.Add(r) }))
	if in.plan, err = replay.Scan(watch(in.shape(sendable(trace.InOrder(rows), accepts)), in.live.expect)); err != nil {
		return in, located(err, path, r)
	}
	// The rows behind a limit still tell the block size, as far as they go.
	for _, err := range rows {
		if err != nil && ctx.Err() != nil {
			return in, err
		}
	}
	in.gridNote = p.gridNote(&grid)
	reportSkipped(std, path, r)
	in.skipped, _ = r.Skipped()
	in.blockSize = sizes.BlockSize()
	if n := blockSizeOf(c, r); n > 0 {
		in.blockSize = trace.GivenBlockSize(n)
	}
	in.sha256, err = digestFile(path)
	return in, err
}

// findGrid reads the trace for the grid that its arrivals lie on.
func (in *input) findGrid(ctx context.Context, c *cli.Context, std streams) error {
	r, err := openTrace(c, std, in.path)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := in.pacing.findGrid(ctx, trace.InOrder(r.Requests())); err != nil {
		return located(err, in.path, r)
	}
	return nil
}

// shape is what a replay makes of the trace: its beginning is now.
func (in input) shape(reqs trace.Requests) trace.Requests { return in.pacing.pace(in.pacing.cut(reqs)) }

// notes are what the report should say about the trace.
func (in input) notes() []string {
	var notes []string
	if in.blockSize.How == trace.Assumed {
		notes = append(notes, "block size is "+in.blockSize.String())
	}
	if in.skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d bad rows of the trace were skipped", in.skipped))
	}
	if in.gridNote != "" {
		notes = append(notes, in.gridNote)
	}
	if limit := in.pacing.limit; limit > in.plan.Rows {
		notes = append(notes, fmt.Sprintf("the trace has %d rows to replay, fewer than --limit %d", in.plan.Rows, limit))
	}
	if in.plan.ZeroOutput > 0 {
		notes = append(notes, fmt.Sprintf("%d rows with an output length of 0 asked for one token", in.plan.ZeroOutput))
	}
	return notes
}

// sendable is the stream with an error at a row that the endpoint cannot take.
func sendable(reqs trace.Requests, accepts func(trace.Request) error) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for r, err := range reqs {
			if err == nil {
				err = accepts(r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// located says where in a trace an error is, unless it says so itself or is
// about the trace as a whole.
func located(err error, path string, r *format.Reader) error {
	var row *trace.RowError
	switch {
	case errors.As(err, &row), errors.Is(err, errInterrupted):
		return err
	case errors.Is(err, replay.ErrEmpty):
		return named(path, err)
	}
	return &trace.RowError{File: cmp.Or(r.File(), path), Line: r.Line(), Err: err}
}

// watch shows each row to see as it passes.
func watch(reqs trace.Requests, see func(trace.Request)) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for r, err := range reqs {
			if err == nil {
				see(r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func digestFile(path string) (string, error) {
	digest := sha256.New()
	add := func() (err error) { _, err = copyFile(digest, path); return err }
	if isFolder(path) {
		add = func() error { return digestFolder(digest, path) }
	}
	if err := add(); err != nil {
		return "", fmt.Errorf("reading trace: %w", err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
