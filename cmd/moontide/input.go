package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/trace"
)

// input is the trace of a replay, read once before the run: what is wrong with
// it is said before anything is sent.
type input struct {
	path, name string
	sha256     string
	blockSize  trace.BlockSize
	plan       replay.Plan
	skipped    int
	shape      func(trace.Requests) trace.Requests
}

func inspect(ctx context.Context, c *cli.Context, std streams, path string) (input, error) {
	in := input{path: path, shape: replayShape(c.Float64("speedup"), c.Int("limit"))}
	r, err := openTrace(c, std, path)
	if err != nil {
		return in, err
	}
	defer r.Close()
	var sizes trace.BlockDetector
	rows := until(ctx, watch(r.Requests(), sizes.Add))
	if in.plan, err = replay.Scan(in.shape(sendable(trace.InOrder(rows), c.String("endpoint")))); err != nil {
		return in, located(err, path, r)
	}
	// The rows behind a limit still tell the block size, as far as they go.
	for _, err := range rows {
		if err != nil && ctx.Err() != nil {
			return in, err
		}
	}
	reportSkipped(std, path, r)
	in.skipped, _ = r.Skipped()
	in.blockSize = sizes.BlockSize()
	if n := c.Int(blockSizeFlag.Name); n > 0 {
		in.blockSize = trace.GivenBlockSize(n)
	}
	in.sha256, err = digestFile(path)
	return in, err
}

// notes are what the report should say about the trace.
func (in input) notes() []string {
	var notes []string
	if in.blockSize.How == trace.Assumed {
		notes = append(notes, "block size is "+in.blockSize.String())
	}
	if in.skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d bad rows of the trace were skipped", in.skipped))
	}
	if in.plan.ZeroOutput > 0 {
		notes = append(notes, fmt.Sprintf("%d rows with an output length of 0 asked for one token", in.plan.ZeroOutput))
	}
	return notes
}

// replayShape is what a replay makes of a trace: its beginning is now.
func replayShape(speedup float64, limit int) func(trace.Requests) trace.Requests {
	return func(reqs trace.Requests) trace.Requests {
		if limit > 0 {
			reqs = trace.Take(reqs, limit)
		}
		return trace.Speed(trace.Rebase(reqs), speedup)
	}
}

// sendable is the stream with an error at a row that the endpoint cannot take.
func sendable(reqs trace.Requests, endpoint string) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for r, err := range reqs {
			if err == nil {
				err = openai.Accepts(endpoint, r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// located says where in a trace an error is, unless it says so itself or is
// about the trace as a whole.
func located(err error, path string, r *trace.Reader) error {
	var row *trace.RowError
	switch {
	case errors.As(err, &row), errors.Is(err, errInterrupted):
		return err
	case errors.Is(err, replay.ErrEmpty):
		return named(path, err)
	}
	return &trace.RowError{File: path, Line: r.Line(), Err: err}
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
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading trace: %w", err)
	}
	defer f.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return "", fmt.Errorf("reading trace: %w", err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
