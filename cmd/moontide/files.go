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

// openTrace opens a trace of any format as the command line names it: - is
// standard input.
func openTrace(c *cli.Context, std streams, path string) (*format.Reader, error) {
	return openPart(c, std, path, 0)
}

// openPart opens one of several traces that become one, by its number from 0.
func openPart(c *cli.Context, std streams, path string, part int) (*format.Reader, error) {
	opts, err := formatOptions(c)
	if err != nil {
		return nil, err
	}
	opts.Part = part
	return openTraceWith(std, path, opts)
}

func openTraceWith(std streams, path string, opts format.Options) (*format.Reader, error) {
	if path == "-" {
		return format.NewReader(std.in, "standard input", opts)
	}
	return format.Open(path, opts)
}

// patientInput is standard input whose reads end when the user interrupts
// them: the system's own wait for more for as long as they like.
type patientInput struct {
	in    io.Reader
	until context.Context
	pipe  *io.PipeReader // once something is read
}

func (p *patientInput) Read(b []byte) (int, error) {
	if p.pipe == nil {
		from, to := io.Pipe()
		p.pipe = from
		context.AfterFunc(p.until, func() { to.CloseWithError(errInterrupted) })
		go func() {
			_, err := io.Copy(to, p.in)
			to.CloseWithError(err)
		}()
	}
	return p.pipe.Read(b)
}

// traceName is how reports call the trace at path.
func traceName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return filepath.Base(path)
}

// traceNames are how reports call several traces: those that traceName would call
// the same by their paths.
func traceNames(paths []string) []string {
	count := map[string]int{}
	for _, path := range paths {
		count[traceName(path)]++
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		if names[i] = traceName(path); count[names[i]] > 1 {
			names[i] = path
		}
	}
	return names
}

// baseName is the trace's file name less its endings.
func baseName(path string) string {
	name, _, _ := strings.Cut(traceName(path), ".")
	return strings.ReplaceAll(name, " ", "_")
}

// locatedRows is the stream with its errors located.
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

// reportSkipped says what a trace's reader left out, by itself or for
// --skip-bad-rows, and what it assumed.
func reportSkipped(std streams, path string, r *format.Reader) {
	reportNotes(std, path, r)
	n, reasons := r.Skipped()
	if n == 0 {
		return
	}
	fmt.Fprintf(std.err, "moontide: %s: bad rows skipped: %d\n", harmless(traceName(path)), n)
	for _, reason := range reasons {
		fmt.Fprintf(std.err, "  %s\n", harmless(reason.Error()))
	}
	if n > len(reasons) {
		fmt.Fprintf(std.err, "  and %d more\n", n-len(reasons))
	}
}

// located says where in a trace an error is, unless it says so itself or is
// about the trace as a whole.
func located(err error, path string, r *format.Reader) error {
	var row *trace.RowError
	switch {
	case errors.As(err, &row), errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, replay.ErrEmpty):
		return named(path, err)
	}
	return &trace.RowError{File: cmp.Or(r.File(), path), Line: r.Line(), Err: err}
}

var errInterrupted = errors.New("interrupted")

// until is the stream up to the moment the user interrupts it.
func until(ctx context.Context, reqs trace.Requests) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for r, err := range reqs {
			if ctx.Err() != nil {
				r, err = trace.Request{}, errInterrupted
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// writeTrace writes a stream to a file, or to standard output for -. A stream
// that fails or is empty leaves no file.
func writeTrace(std streams, path string, reqs trace.Requests) (rows int, err error) {
	return writeWith(std, path, func(w *format.Writer) (int, error) {
		rows, err := w.WriteAll(reqs)
		if err == nil && rows == 0 {
			err = errors.New("no requests are left to write")
		}
		return rows, err
	})
}

// writeWith lets write fill a trace, in a file or, for -, on standard output.
// Where it fails it leaves no file.
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

// spoolTrace returns a file that can be read more than once with what is at
// path: a pipe and standard input are copied.
func spoolTrace(std streams, path string) (file string, remove func(), err error) {
	if path == "-" {
		return spool(std.in)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() || info.IsDir() {
		return path, func() {}, nil // what is wrong with it is said when it is opened
	}
	in, err := os.Open(path)
	if err != nil {
		return "", nil, fmt.Errorf("opening trace: %w", err)
	}
	defer in.Close()
	return spool(in)
}

func spool(in io.Reader) (path string, remove func(), err error) {
	f, err := os.CreateTemp("", "moontide-*.jsonl")
	if err != nil {
		return "", nil, fmt.Errorf("keeping standard input: %w", err)
	}
	remove = func() { os.Remove(f.Name()) }
	_, err = io.Copy(f, in)
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return "", nil, fmt.Errorf("keeping standard input: %w", err)
	}
	return f.Name(), remove, nil
}

// one returns the only argument of a command.
func one(c *cli.Context, what string) (string, error) {
	switch c.NArg() {
	case 0:
		return "", misused("%s: name %s", c.Command.Name, what)
	case 1:
		return c.Args().First(), nil
	}
	return "", misused("%s: takes one argument, %s, not %d: %q", c.Command.Name, what, c.NArg(), c.Args().Slice())
}

// writeFile writes a file that appears under its name only when it is whole, or
// to standard output for -.
func writeFile(std streams, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(std.out)
	}
	f, err := atomicfile.CreateWhole(path)
	if err != nil {
		return fmt.Errorf("writing %w", err)
	}
	if err := write(f); err != nil { // which says what it was writing
		f.Discard()
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %w", err)
	}
	return nil
}

// sameFile reports whether two paths lead to one file, be it there or not yet.
// A device is no file.
func sameFile(a, b string) bool {
	if one, err := os.Stat(a); err == nil {
		other, err := os.Stat(b)
		return err == nil && one.Mode().IsRegular() && os.SameFile(one, other)
	}
	one, err := filepath.Abs(a)
	other, errOther := filepath.Abs(b)
	return err == nil && errOther == nil && one == other
}

// named puts a trace's name before an error that does not name it yet.
func named(path string, err error) error {
	var row *trace.RowError
	if errors.As(err, &row) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
