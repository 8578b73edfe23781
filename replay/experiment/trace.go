package experiment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"moontide/replay"
	"moontide/replay/openai"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/format"
	"moontide/trace/log"
	"moontide/trace/tokenizer"
)

// Trace is the trace of a run: a path, or requests.
type Trace struct {
	Path      string
	Format    format.Options
	Requests  trace.Requests
	Name      string // in reports
	BlockSize int    // 0 uses the size given by the trace or derived from its rows
}

// source returns the trace of the run. Requests of a description are drawn.
func (c *Config) source() (Trace, error) {
	of := c.Trace
	if c.Described() {
		reqs, size, err := c.draw()
		if err != nil {
			return Trace{}, err
		}
		t := Trace{Requests: reqs, Name: cmp.Or(c.Name, "described"), BlockSize: size}
		if c.Copy != "" {
			t.Path, t.Requests = c.Copy, nil
		}
		return t, nil
	}
	name := ""
	if c.Copy != "" {
		name, of.Path, c.Requests = c.Name, c.Copy, nil
	}
	t := Trace{Path: of.Path, Requests: c.Requests, Name: c.Name, BlockSize: of.BlockSize, Format: format.Options{
		Name: name, Format: of.Format, UniqueIDs: of.UniqueIDs, BlockSize: of.BlockSize, SkipBadRows: of.SkipBadRows, RecordedTimes: of.RecordedTimes, Tokens: c.countTokens(),
		Record: func() (log.Config, error) {
			return log.Config{}, errors.New("a log of requests with their texts: first convert it to a trace without them")
		},
	}}
	t.Name = cmp.Or(t.Name, filepath.Base(cmp.Or(t.Path, "requests")))
	return t, nil
}

// countTokens returns a function that counts the tokens of a text, nil without a tokenizer.
func (c *Config) countTokens() func(text string) (int, error) {
	if c.Tokenizer == "" {
		return nil
	}
	var vocabulary *tokenizer.Tokenizer // loaded on first use: most traces have lengths
	return func(text string) (_ int, err error) {
		if vocabulary == nil {
			if vocabulary, err = tokenizer.Open(c.Tokenizer); err != nil {
				return 0, err
			}
		}
		ids, err := vocabulary.Append(nil, text)
		return len(ids), err
	}
}

// input is the trace of a run after the first pass, which finds its errors before anything
// is sent.
type input struct {
	Trace
	pacing    trace.Pacing
	plan      replay.Plan
	sha256    string
	digested  int // rows in sha256; 0 if it is of the file's bytes
	blockSize block.Size
	notes     []string
	models    []openai.NamedModel // named by rows, if they are sent
	lengths   *lengths            // nil without an engine file
	part      replay.RowSet       // rows to send; nil is all
	partRows  int                 // number of them
}

// open opens the trace. reader is nil for Requests.
func (t Trace) open() (rows trace.Requests, reader *format.Reader, err error) {
	if t.Path == "" {
		return t.Requests, nil, nil
	}
	if reader, err = format.Open(t.Path, t.Format); err != nil {
		return nil, nil, err
	}
	return reader.Requests(), reader, nil
}

// lineOf returns a function that returns the line of the row read last, 0 if unknown.
func lineOf(r *format.Reader) func() int {
	if r == nil {
		return func() int { return 0 }
	}
	return r.Line
}

func closeReader(r *format.Reader) {
	if r != nil {
		r.Close()
	}
}

// replayed opens the trace for a replay. The caller calls end.
func (in *input) replayed() (rows trace.Requests, end func(), err error) {
	rows, reader, err := in.open()
	if err != nil {
		return nil, nil, err
	}
	return in.pacing.Apply(rows), func() { closeReader(reader) }, nil
}

// readTrace reads and checks the trace of a run.
func readTrace(ctx context.Context, cfg *Config) (*input, error) {
	source, err := cfg.source()
	if err != nil {
		return nil, err
	}
	in := &input{Trace: source, pacing: cfg.Transform()}
	in.pacing.Rebase = !cfg.keepFirstArrival
	if in.pacing.SpreadGrid {
		if err := in.findGrid(ctx); err != nil {
			return nil, err
		}
	}
	return in, in.scan(ctx, cfg)
}

func (in *input) findGrid(ctx context.Context) error {
	rows, reader, err := in.open()
	if err != nil {
		return err
	}
	defer closeReader(reader)
	if _, err := in.pacing.FindGrid(ctx, trace.InOrder(rows)); err != nil {
		return in.locate(err, reader)
	}
	return nil
}

// maxReadAhead is the number of rows after a limit that may be read to find the
// block size.
const maxReadAhead = 10_000

// scan reads the trace, up to the limit on rows, for the facts needed before a run.
func (in *input) scan(ctx context.Context, cfg *Config) error {
	all, reader, err := in.open()
	if err != nil {
		return err
	}
	defer closeReader(reader)
	var sizes block.SizeDetector
	var grid trace.GridDetector
	digest, digesting := sha256.New(), reader == nil || in.pacing.Limit > 0 && isLarge(in.Path)
	byRows := digesting
	var line []byte
	all = trace.Until(ctx, trace.Tap(all, func(r trace.Request) {
		sizes.Add(r.InputLength, r.HashIDs)
		grid.Add(r)
		if digesting {
			line = append(format.AppendRow(line[:0], r), '\n')
			digest.Write(line)
			if reader != nil {
				in.digested++
			}
		}
	}))
	rows := trace.InOrder(all)
	if reader == nil { // each iteration starts over
		for _, err := range all {
			if err != nil {
				return err
			}
		}
		rows = trace.InOrder(trace.Until(ctx, in.Requests))
	}
	models := newRowModels(cfg.Client, lineOf(reader))
	if !cfg.Virtual {
		rows = trace.Checked(sendable(rows, cfg.Client.WithDefaults().Endpoint), models.check)
	}
	whole := !in.Format.SkipBadRows && !in.pacing.Cuts()
	place := func() int {
		if reader == nil || reader.File() != "" { // lines of a folder are those of several files
			return 0
		}
		return reader.Line()
	}
	rows = trace.CheckGraph(rows, &trace.GraphBuilder{}, place, whole)
	rows = trace.Tap(in.pacing.Apply(in.located(rows, reader)), models.take)
	if cfg.file != nil {
		in.lengths = &lengths{}
		rows = trace.Tap(rows, in.lengths.add)
	}
	partition := trace.Partition{}
	if cfg.Part != nil {
		partition.By = cfg.Part.By
		rows = trace.Tap(rows, partition.Add)
	}
	if in.plan, err = replay.Scan(rows); err != nil {
		if row := (*trace.RowError)(nil); in.pacing.Retimes() && reader != nil && !errors.As(err, &row) && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", in.file(), err) // not at the row that was read last
		}
		return in.locate(err, reader)
	}
	if err := models.missing(); err != nil {
		return err
	}
	if err := in.deal(&partition, cfg); err != nil {
		return err
	}
	in.models, digesting = models.sent, false
	if reader != nil && cmp.Or(in.BlockSize, reader.BlockSize()) == 0 {
		readAhead(all, &sizes)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	in.describe(cfg, reader, &sizes, &grid)
	if byRows {
		in.sha256 = hex.EncodeToString(digest.Sum(nil))
		return nil
	}
	in.sha256, err = digestPath(in.Path)
	return err
}

// describe sets the block size and the notes, and forwards the messages of the reader,
// which is nil for rows in memory.
func (in *input) describe(cfg *Config, reader *format.Reader, sizes *block.SizeDetector, grid *trace.GridDetector) {
	in.blockSize = sizes.Size()
	size := in.BlockSize
	skipped := 0
	if reader != nil {
		for _, text := range reader.Messages(true) {
			cfg.Observer.message("%s: %s", in.Name, text)
		}
		skipped, _ = reader.Skipped()
		size = cmp.Or(size, reader.BlockSize())
	}
	if size > 0 {
		in.blockSize = block.GivenSize(size)
	}
	in.note(skipped, grid)
}

// readAhead reads rows after the limit until they show the block size. It ignores errors.
func readAhead(rows trace.Requests, sizes *block.SizeDetector) {
	read := 0
	if sizes.Size().How == block.Detected {
		return
	}
	for range rows {
		if read++; read == maxReadAhead || sizes.Size().How == block.Detected {
			return
		}
	}
}

// isLarge reports whether reading a trace takes long. With a limit, only the rows up to it
// are digested.
func isLarge(path string) bool {
	const most = 64 << 20
	paths := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if paths, _, err = format.Files(path); err != nil {
			return false // digestPath returns the error
		}
	}
	size := int64(0)
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size > most
}

// note collects the notes on the trace for the report.
func (in *input) note(skipped int, grid *trace.GridDetector) {
	add := func(format string, args ...any) { in.notes = append(in.notes, fmt.Sprintf(format, args...)) }
	if in.blockSize.How == block.Assumed {
		add("block size is %v", in.blockSize)
	}
	if skipped > 0 {
		add("invalid rows of the trace that were skipped: %d", skipped)
	}
	const bursty = 2 // requests per step of the grid
	g, together, found := grid.Grid()
	step := time.Duration(g.Step * float64(time.Millisecond)).Round(time.Millisecond)
	switch p := in.pacing; {
	case p.SpreadGrid && !found:
		add("the arrivals lie on no grid: nothing to spread")
	case p.SpreadGrid:
		add("arrivals lie on a grid of %v and were spread over its steps", step)
	case found && !p.Closed && p.Arrivals == nil && together >= bursty:
		add("arrivals lie on a grid of %v and are replayed as bursts of %.1f on average unless they are spread over it", step, together)
	}
	switch a := in.pacing.Arrivals; {
	case a.AtOnce() && a.Sessions:
		add("infinite session rate: all sessions start at once")
	case a.AtOnce():
		add("infinite request rate: all requests are due at once")
	case a != nil && a.Sessions:
		add("sessions start at %.4g per second on average (%s), before any speedup", a.Rate, a.Process)
	}
	if lost := in.plan.Graph.Lost(); lost > 0 {
		add("request ids in after whose rows are not in the replayed part of the trace: %d; nothing waits for them", lost)
	}
	if limit := in.pacing.Limit; limit > in.plan.Rows {
		add("the trace has %d rows to replay, fewer than the limit of %d", in.plan.Rows, limit)
	}
	if in.plan.ZeroOutput > 0 {
		add("%d rows with an output length of 0 asked for one token", in.plan.ZeroOutput)
	}
}

// sendable yields an error at the first row that the endpoint cannot accept.
func sendable(reqs trace.Requests, endpoint string) trace.Requests {
	return trace.Checked(reqs, func(r trace.Request) error { return openai.Accepts(endpoint, r) })
}

// file returns the name of the trace's file in errors.
func (in *input) file() string { return cmp.Or(in.Format.Name, in.Path) }

// locate adds file and line to an error that has none and is not about the whole trace.
func (in *input) locate(err error, r *format.Reader) error {
	var row *trace.RowError
	var graph *trace.GraphError
	switch {
	case r == nil, errors.As(err, &row), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &graph) && graph.Line > 0:
		return &trace.RowError{File: in.file(), Line: graph.Line, Err: err}
	case errors.As(err, &graph):
		return fmt.Errorf("%s: %w", in.file(), err)
	case errors.Is(err, replay.ErrEmpty) && in.pacing.End > 0:
		return fmt.Errorf("%s: %w from %v to %v", in.file(), err, in.pacing.Start, in.pacing.End)
	case errors.Is(err, replay.ErrEmpty) && in.pacing.Start > 0:
		return fmt.Errorf("%s: %w from %v on", in.file(), err, in.pacing.Start)
	case errors.Is(err, replay.ErrEmpty):
		return fmt.Errorf("%s: %w", in.file(), err)
	}
	return &trace.RowError{File: cmp.Or(r.File(), in.file()), Line: r.Line(), Err: err}
}

// located adds file and line to the errors of a stream.
func (in *input) located(reqs trace.Requests, r *format.Reader) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for row, err := range reqs {
			if err != nil {
				err = in.locate(err, r)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// digestPath returns the SHA-256 of a file, or of the names and contents of a
// folder's files.
func digestPath(path string) (string, error) {
	digest := sha256.New()
	err := func() error {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			_, err := copyFile(digest, path)
			return err
		}
		paths, _, err := format.Files(path)
		if err != nil {
			return err
		}
		for _, path := range paths {
			content := sha256.New()
			n, err := copyFile(content, path)
			if err != nil {
				return err
			}
			fmt.Fprintf(digest, "%q %d %x\n", filepath.Base(path), n, content.Sum(nil))
		}
		return nil
	}()
	if err != nil {
		return "", fmt.Errorf("reading trace: %w", err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// digestRows returns the SHA-256 of requests as lines of the native format, which is that of
// their file.
func digestRows(reqs trace.Requests) (string, error) {
	digest := sha256.New()
	var line []byte
	for r, err := range reqs {
		if err != nil {
			return "", err
		}
		line = append(format.AppendRow(line[:0], r), '\n')
		digest.Write(line)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

func copyFile(to io.Writer, path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(to, f)
}

// maxRowModels limits the models that the rows of a trace name.
const maxRowModels = 1000

// rowModels finds the models that rows name, if they are sent.
type rowModels struct {
	models bool // are sent
	line   func() int
	lines  map[string]int // of the first row that names a model
	sent   []openai.NamedModel
	isSent map[string]bool // names in sent
}

func newRowModels(c openai.Config, line func() int) *rowModels {
	return &rowModels{models: c.ModelFromTrace, line: line, lines: map[string]int{}, isSent: map[string]bool{}}
}

// check reads the model of a row of the file, which may not be replayed.
func (m *rowModels) check(r trace.Request) error {
	if !m.models {
		return nil
	}
	name := openai.RowModel(r)
	if _, known := m.lines[name]; !known {
		if len(m.lines) > maxRowModels {
			return fmt.Errorf("the rows name more than %d models", maxRowModels)
		}
		m.lines[name] = m.line()
	}
	return nil
}

// take reads the model of a replayed row.
func (m *rowModels) take(r trace.Request) {
	if !m.models {
		return
	}
	if name := openai.RowModel(r); !m.isSent[name] {
		m.isSent[name] = true
		m.sent = append(m.sent, openai.NamedModel{Name: name, Line: m.lines[name]})
	}
}

// missing returns an error if no replayed row has a model.
func (m *rowModels) missing() error {
	if m.models && !slices.ContainsFunc(m.sent, func(other openai.NamedModel) bool { return other.Name != "" }) {
		return wrong("{model-from-trace} finds no model: no row has the key model with a name")
	}
	return nil
}
