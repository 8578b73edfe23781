package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay"
	"moontide/replay/settings"
	"moontide/trace"
	"moontide/trace/atomicfile"
	"moontide/trace/block"
	"moontide/trace/format"
	"moontide/trace/log"
	"moontide/trace/tokenizer"
)

var (
	blockSizeFlag   = &cli.IntFlag{Name: "block-size", Category: inTraceInput, Usage: "block size in tokens", DefaultText: "detected"}
	skipBadRowsFlag = &cli.BoolFlag{Name: "skip-bad-rows", Category: inTraceInput, Usage: "skip and count invalid rows instead of stopping at the first"}
)

// input is an open trace of the command line. Its rows end when the user interrupts.
type input struct {
	*format.Reader
	path string // as on the command line, or "standard input"
	c    *cli.Context
	std  streams

	countsRows bool // lines are the numbers of rows
	rows       int
	memory     int        // of the rows read, in rows of up to 100 blocks
	targets    []gcTarget // for more memory

	hasIDs bool               // a row has block ids
	size   block.SizeDetector // evidence of their size, of a trace that is merged
}

// gcTarget is the target of the garbage collector from an amount of memory on.
type gcTarget struct{ memory, percent int }

// gcTargets are for verbs that keep most of a trace. That memory has hardly any pointers, so
// frequent collections are cheap and save memory. Short traces need little memory, so few
// collections save time.
var gcTargets = []gcTarget{{0, 400}, {20_000, 20}, {1_000_000, 10}}

// openTrace opens a trace of any format; - is standard input. file is path, or its copy of
// [spoolTraces].
func openTrace(c *cli.Context, std streams, path, file string, opts format.Options) (in *input, err error) {
	in = &input{path: inputName(path), c: c, std: std}
	if opts.Name = in.path; file == "-" {
		in.Reader, err = format.NewReader(std.in, in.path, opts)
	} else {
		in.Reader, err = format.Open(file, opts)
	}
	return in, err
}

// keep lowers the target of the garbage collector as more rows are read.
func (in *input) keep() { in.targets = gcTargets }

// Read reads the next row.
func (in *input) Read(r *trace.Request) error {
	if err := in.c.Context.Err(); err != nil {
		return err
	}
	for len(in.targets) > 0 && in.memory >= in.targets[0].memory {
		debug.SetGCPercent(in.targets[0].percent)
		in.targets = in.targets[1:]
	}
	err := in.Reader.Read(r)
	in.rows++
	in.memory += 1 + len(r.HashIDs)/100
	return err
}

// Requests returns the remaining rows.
func (in *input) Requests() trace.Requests { return trace.FromRows(in) }

// Borrowed returns the remaining rows without copying them: see [trace.Borrow].
func (in *input) Borrowed() trace.Requests { return trace.Borrow(in) }

// Line returns the line of the row read last, 0 in a folder of files.
func (in *input) Line() int {
	switch {
	case in.countsRows:
		return in.rows
	case in.File() != "":
		return 0
	}
	return in.Reader.Line()
}

// blockSize returns the block size in tokens that the user, the trace or its format gives;
// 0 means that it is detected from the rows.
func (in *input) blockSize() int {
	if n := in.c.Int(blockSizeFlag.Name); n > 0 {
		return n
	}
	return in.BlockSize()
}

// report reports what the reader dropped or assumed and, if skipped is set, the skipped rows.
func (in *input) report(skipped bool) {
	for _, text := range in.Messages(skipped) {
		in.std.say("%s: %s", traceName(in.path), text)
	}
}

// locate adds file and line to an error that has none and does not concern the whole trace.
func (in *input) locate(err error) error {
	var graph *trace.GraphError
	switch {
	case err == nil, errors.As(err, new(*trace.RowError)), errors.Is(err, context.Canceled):
		return in.name(err)
	case errors.As(err, &graph) && graph.Line > 0:
		return &trace.RowError{File: in.path, Line: graph.Line, Err: err}
	case errors.Is(err, replay.ErrEmpty), errors.As(err, &graph):
		return in.name(err)
	}
	return &trace.RowError{File: cmp.Or(in.File(), in.path), Line: in.Reader.Line(), Err: err}
}

// name adds the name of the trace to an error that has none.
func (in *input) name(err error) error {
	if err == nil || errors.As(err, new(*trace.RowError)) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %w", in.path, err)
}

// locateRows adds file and line to the errors of a stream.
func (in *input) locateRows(reqs trace.Requests) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for row, err := range reqs {
			if !yield(row, in.locate(err)) {
				return
			}
		}
	}
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

// inputName returns the name of an input in errors.
func inputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return path
}

// traceName returns the name of a trace in reports.
func traceName(path string) string { return filepath.Base(inputName(path)) }

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

// namedInputs parses inputs. Those without a label have the names of their files, or paths
// if several have the same name.
func namedInputs(args []string) (inputs []namedInput) {
	count := map[string]int{}
	for _, arg := range args {
		in := parseInput(arg)
		in.name = cmp.Or(in.name, traceName(in.path))
		count[in.name]++
		inputs = append(inputs, in)
	}
	for i, in := range inputs {
		if count[in.name] > 1 {
			inputs[i].name = in.path
		}
	}
	return inputs
}

// baseName returns the trace's file name without extensions.
func baseName(path string) string {
	name, _, _ := strings.Cut(traceName(path), ".")
	return strings.ReplaceAll(name, " ", "_")
}

// spoolTraces returns files that can be read repeatedly: copies of pipes and
// standard input, and the others as they are.
func spoolTraces(std streams, paths ...string) (files []string, remove func(), err error) {
	dir, remove := "", func() {}
	for i, path := range paths {
		if info, err := os.Stat(path); path != "-" && (err != nil || info.Mode().IsRegular() || info.IsDir()) {
			files = append(files, path) // opening it reports the error
			continue
		}
		if dir == "" {
			if dir, remove, err = atomicfile.TemporaryFolder(); err != nil {
				return nil, nil, fmt.Errorf("copying %s: %w", inputName(path), err)
			}
		}
		file := filepath.Join(dir, fmt.Sprint(i, ".jsonl"))
		if err := spool(std, path, file); err != nil {
			remove()
			return nil, nil, fmt.Errorf("copying %s: %w", inputName(path), err)
		}
		files = append(files, file)
	}
	return files, remove, nil
}

// spool copies a pipe, or standard input for -, to a new file.
func spool(std streams, path, file string) error {
	in := io.NopCloser(std.in)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		in = f
	}
	defer in.Close()
	f, err := atomicfile.New(file, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// one returns the only argument of a command.
func one(c *cli.Context, what string) (string, error) {
	switch c.NArg() {
	case 0:
		return "", misused("missing argument: %s", what)
	case 1:
		return c.Args().First(), nil
	}
	return "", misused("want one argument, %s, got %d: %q", what, c.NArg(), c.Args().Slice())
}

// readFlags are the flags of every verb that reads traces and sends no prompts.
func readFlags() []cli.Flag {
	_, flags := newCommandLine(nil, func(row *settings.Setting) bool {
		return slices.Contains(words("format block-ids recorded-times"), row.Name)
	})
	return append(flags, &cli.StringFlag{Name: "tokenizer", Category: inTraceInput, Usage: "`FILE`: tokenizer.json for traces that have text instead of lengths, and for request logs"})
}

func formatOptions(c *cli.Context) format.Options {
	opts := format.Options{
		Format:      format.Format(c.String("format")),
		UniqueIDs:   c.String("block-ids") == "unique",
		BlockSize:   c.Int(blockSizeFlag.Name),
		SkipBadRows: c.Bool(skipBadRowsFlag.Name),
		// vLLM and the tree method do not support turns.
		RecordedTimes: c.Bool("recorded-times") || c.String(toFlag.Name) == toVLLM || c.String("method") == "tree",
	}
	opts.Record = func() (cfg log.Config, err error) {
		if c.Float64("bytes-per-token") == 0 {
			return cfg, errors.New("a log of requests with their texts: first convert it to a trace without them")
		}
		if cfg, err = textConfig(c); err == nil {
			cfg.Key, err = keyOf(c)
		}
		return cfg, err
	}
	path := c.String("tokenizer")
	if path == "" {
		return opts
	}
	var vocabulary *tokenizer.Tokenizer // loaded on first use: most traces have lengths
	opts.Tokens = func(text string) (_ int, err error) {
		if vocabulary == nil {
			if vocabulary, err = tokenizer.Open(path); err != nil {
				return 0, err
			}
		}
		ids, err := vocabulary.Append(nil, text)
		return len(ids), err
	}
	return opts
}

// isFolder reports whether a trace is a folder of files.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// recordFlags returns the flags of verbs that replace texts by keyed ids.
func recordFlags(category string) []cli.Flag {
	return group(category,
		&cli.StringFlag{Name: "key", DefaultText: "capture.key in the folder of the trace", Usage: "`FILE` of the secret key of block ids and names, made if it does not exist; traces made with one key share ids"},
		&cli.Float64Flag{Name: "bytes-per-token", Value: 4, Usage: "assumed `BYTES` of a token of texts without --tokenizer", DefaultText: "4; of a log, as many as it counts"},
		&cli.StringFlag{Name: "session-field", Usage: "`NAME` of the member of a request that names its session, such as metadata.chat_id", DefaultText: "sessions are found by prompts that continue each other"},
	)
}

// keyOf opens the key that --key names, else the one in the folder of the output. An
// anonymized trace without --key has a random one.
func keyOf(c *cli.Context) (log.Key, error) {
	if c.Bool("anonymize") && !c.IsSet("key") {
		return log.RandomKey(), nil
	}
	return log.OpenKey(keyFile(c))
}

func keyFile(c *cli.Context) string {
	return cmp.Or(c.String("key"), filepath.Join(filepath.Dir(c.String(outFlag.Name)), "capture.key"))
}

// textConfig reads the flags of recordFlags, without the key, and opens the tokenizer.
func textConfig(c *cli.Context) (cfg log.Config, err error) {
	cfg = log.Config{BlockSize: c.Int(blockSizeFlag.Name), SessionField: c.String("session-field")}
	if c.IsSet("bytes-per-token") {
		cfg.BytesPerToken = c.Float64("bytes-per-token")
	}
	if file := c.String("tokenizer"); file != "" {
		vocabulary, err := tokenizer.Open(file)
		if err != nil {
			return cfg, err
		}
		cfg.Encoder, cfg.EncoderID = vocabulary, vocabulary.SHA256()
	}
	return cfg, nil
}
