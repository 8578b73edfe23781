package main

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/format"
)

// fitted is a model learned from a trace.
type fitted interface {
	BlockSize() trace.BlockSize
	Irregular() int
}

// learn fits a model to the trace at path, and reports block size and irregular rows. stored
// handles a file that is already a model.
func learn[M fitted](c *cli.Context, std streams, path string, fit func(reqs trace.Requests, blockSize int) (M, error), stored func(io.Reader) (M, error)) (model M, err error) {
	in, closeInput, err := openInput(std, path)
	if err != nil {
		return model, err
	}
	defer closeInput()
	if startsModel(in) {
		return stored(in)
	}
	r, err := openPeeked(c, in, path)
	if err != nil {
		return model, err
	}
	defer r.Close()
	model, err = fit(trace.Until(c.Context, r.Requests()), blockSizeOf(c, r))
	reportReader(std, path, r, true)
	if err != nil {
		return model, named(inputName(path), err)
	}
	if size := model.BlockSize(); size.Tokens > 0 {
		std.say("block size: %s", size)
	}
	if k := model.Irregular(); k > 0 {
		std.say("%s with block ids that do not cover the prompt exactly", doc.Count(k, "row"))
	}
	return model, nil
}

func fitSessions(c *cli.Context, std streams, path string, stored func(io.Reader) (*sessions.Model, error)) (*sessions.Model, error) {
	m, err := learn(c, std, path, func(reqs trace.Requests, blockSize int) (*sessions.Model, error) {
		return sessions.Fit(reqs, sessions.Options{BlockSize: blockSize})
	}, stored)
	if err != nil {
		return nil, err
	}
	for _, note := range m.Notes() {
		std.say("note: %s", note)
	}
	return m, nil
}

// startsModel reports whether a file begins like a model of a trace.
func startsModel(in *bufio.Reader) bool {
	head, _ := in.Peek(1024)
	return sessions.IsModel(head)
}

// openPeeked opens the trace at path, whose start is buffered in in. It opens files and
// folders again, because some formats are read more than once.
func openPeeked(c *cli.Context, in io.Reader, path string) (*format.Reader, error) {
	opts := formatOptions(c)
	if info, err := os.Stat(path); path != "-" && err == nil && (info.IsDir() || info.Mode().IsRegular()) {
		return format.Open(path, opts)
	}
	return format.NewReader(in, inputName(path), opts)
}

// openInput opens a file or standard input (-) with a buffer to peek into. A folder is empty.
func openInput(std streams, path string) (in *bufio.Reader, closeInput func() error, err error) {
	if path == "-" {
		return bufio.NewReaderSize(std.in, 256<<10), func() error { return nil }, nil
	}
	if isFolder(path) {
		return bufio.NewReader(bytes.NewReader(nil)), func() error { return nil }, nil
	}
	f, err := format.OpenFile(path)
	if err != nil {
		return nil, nil, err
	}
	return bufio.NewReaderSize(f, 256<<10), f.Close, nil
}

// inputName returns the name of an input in errors.
func inputName(path string) string {
	if path == "-" {
		return traceName(path)
	}
	return path
}
