package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/atomicfile"
	"moontide/trace/format"
)

var skipBadRowsFlag = &cli.BoolFlag{
	Name: "skip-bad-rows", Category: inTraceInput,
	Usage: "skip and count invalid rows instead of stopping at the first",
}

// openTrace opens a trace of any format; - is standard input.
func openTrace(std streams, path string, opts format.Options) (*format.Reader, error) {
	if path == "-" {
		return format.NewReader(std.in, "standard input", opts)
	}
	return format.Open(path, opts)
}

// interruptibleInput is standard input whose reads fail when the user interrupts; a read of
// the file would block.
type interruptibleInput struct {
	in    io.Reader
	until context.Context
	pipe  *io.PipeReader // nil before the first read
}

func (p *interruptibleInput) Read(b []byte) (int, error) {
	if p.pipe == nil {
		from, to := io.Pipe()
		p.pipe = from
		context.AfterFunc(p.until, func() { to.CloseWithError(context.Canceled) })
		go func() {
			_, err := io.Copy(to, p.in)
			to.CloseWithError(err)
		}()
	}
	return p.pipe.Read(b)
}

// traceName returns the name of a trace in reports.
func traceName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return filepath.Base(path)
}

// namedInput is an input of the command line and its name in reports.
type namedInput struct{ name, path string }

// parseInput parses [LABEL=]PATH. The name is the label, or "". If the file LABEL=PATH
// exists, it is a PATH.
func parseInput(arg string) namedInput {
	if _, err := os.Stat(arg); err != nil {
		if label, path, labelled := strings.Cut(arg, "="); labelled && label != "" && path != "" {
			return namedInput{label, path}
		}
	}
	return namedInput{path: arg}
}

// nameApart uses paths as names for inputs of the same name.
func nameApart(inputs []namedInput) {
	names := map[string]int{}
	for _, in := range inputs {
		names[in.name]++
	}
	for i := range inputs {
		if in := &inputs[i]; names[in.name] > 1 {
			in.name = in.path
		}
	}
}

// baseName returns the trace's file name without extensions.
func baseName(path string) string {
	name, _, _ := strings.Cut(traceName(path), ".")
	return strings.ReplaceAll(name, " ", "_")
}

// locatedRows adds file and line to the errors of a stream.
func locatedRows(reqs trace.Requests, path string, r *format.Reader) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for row, err := range reqs {
			if err != nil {
				err = located(err, path, r)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// reportReader reports the reader's messages, and the skipped rows unless a check lists
// them.
func reportReader(std streams, path string, r *format.Reader, skipped bool) {
	for _, text := range r.Messages(skipped) {
		std.say("%s: %s", traceName(path), text)
	}
}

// located adds file and line to an error that has none and does not concern the whole trace.
func located(err error, path string, r *format.Reader) error {
	var row *trace.RowError
	var graph *trace.GraphError
	switch {
	case errors.As(err, &row), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &graph) && graph.Line > 0:
		return &trace.RowError{File: path, Line: graph.Line, Err: err}
	case errors.Is(err, replay.ErrEmpty), errors.As(err, &graph):
		return named(path, err)
	}
	return &trace.RowError{File: cmp.Or(r.File(), path), Line: r.Line(), Err: err}
}

// writeWith calls write with a writer to a file, or to standard output for -. It leaves no
// file on failure.
func writeWith(std streams, path string, write func(*format.Writer) (rows int, err error)) (rows int, err error) {
	var w *format.Writer
	if path == "-" {
		w, err = format.NewWriter(std.out, "")
	} else {
		w, err = format.Create(path)
	}
	if err != nil {
		return 0, err
	}
	if rows, err = write(w); err == nil {
		return rows, w.Close()
	}
	if path == "-" {
		return rows, errors.Join(err, w.Close())
	}
	w.Discard()
	return rows, err
}

// spoolTraces returns files that can be read repeatedly: copies of pipes and
// standard input, and the others as they are.
func spoolTraces(std streams, paths ...string) (files []string, remove func(), err error) {
	var removers []func()
	remove = func() {
		for _, remove := range removers {
			remove()
		}
	}
	for _, path := range paths {
		in := io.NopCloser(std.in)
		if path != "-" {
			if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() || info.IsDir() {
				files = append(files, path) // opening it reports the error
				continue
			}
			if in, err = os.Open(path); err != nil {
				remove()
				return nil, nil, fmt.Errorf("opening trace: %w", err)
			}
		}
		file, removeCopy, err := spool(in)
		if err != nil {
			remove()
			return nil, nil, err
		}
		files, removers = append(files, file), append(removers, removeCopy)
	}
	return files, remove, nil
}

// ofCopy names the trace, not its copy, in an error of [bench.Run].
func ofCopy(err error, copied, path string) error {
	var row *trace.RowError
	switch {
	case copied == path:
	case errors.Is(err, replay.ErrEmpty):
		return named(traceName(path), replay.ErrEmpty)
	case errors.As(err, &row) && row.File == copied:
		row.File = traceName(path)
	}
	return err
}

// spool copies in to a temporary file and closes it.
func spool(in io.ReadCloser) (path string, remove func(), err error) {
	defer in.Close()
	dir, remove, err := atomicfile.TemporaryFolder()
	if err != nil {
		return "", nil, fmt.Errorf("copying standard input: %w", err)
	}
	path = filepath.Join(dir, "trace.jsonl")
	f, err := atomicfile.New(path, 0o600)
	if err == nil {
		_, err = io.Copy(f, in)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("copying standard input: %w", err)
	}
	return path, remove, nil
}

// one returns the only argument of a command.
func one(c *cli.Context, what string) (string, error) {
	switch c.NArg() {
	case 0:
		return "", misused("%s: missing argument: %s", c.Command.Name, what)
	case 1:
		return c.Args().First(), nil
	}
	return "", misused("%s: want one argument, %s, got %d: %q", c.Command.Name, what, c.NArg(), c.Args().Slice())
}

// named prefixes an error with the trace's name unless it has one.
func named(path string, err error) error {
	var row *trace.RowError
	if errors.As(err, &row) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
