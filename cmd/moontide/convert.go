package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/report/doc"
	"moontide/replay"
	"moontide/replay/settings"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/format"
	"moontide/trace/log"
	"moontide/trace/merge"
)

const (
	// Meanings of equal ids in several inputs.
	sharedIDs   = "shared"
	separateIDs = "separate"

	// Output formats.
	toNative = "native"
	toVLLM   = "vllm"
)

var (
	idsFlag = &choiceFlag{
		StringFlag: cli.StringFlag{
			Name: "ids", Category: inTraceInput, DefaultText: "inputs with common ids are an error",
			Usage: "`MEANING` of ids (block, session, request) that occur in several inputs: %s",
		},
		Choices: oneOf(sharedIDs, separateIDs).
			Noted(sharedIDs, "same prompt and session, as in parts of one trace").
			Noted(separateIDs, "unrelated; ids are renumbered"),
	}
	toFlag = &choiceFlag{
		StringFlag: cli.StringFlag{Name: "to", Category: inOutput, Value: toNative, Usage: "output `FORMAT`: %s"},
		Choices:    oneOf(toNative, toVLLM).Noted(toVLLM, "timed_trace dataset of vllm bench serve"),
	}
)

func convertCommand(std streams, _ stop) *cli.Command {
	d, flags := newCommandLine(nil, func(row *settings.Setting) bool {
		return row.Group == settings.Load && !slices.Contains(words("max-concurrency closed"), row.Name) || row.Name == "seed"
	})
	return &cli.Command{
		Usage: "merge, cut, sample, divide, scale and re-time traces",
		Description: "Several inputs are merged by arrival; they must have the same block size. The steps have a fixed order: sort, " +
			"spread-grid, start and end, sample, limit, think and tool times, rate or session-rate, speedup, ramp, part. " +
			"Sessions that wait for each other, such as an agent and its sub-agents, are never split.\n\n" +
			"In request logs (openai-log), prompts become keyed block ids, and names of sessions keyed names. Block ids " +
			"that are hashes (WEKA, Dynamo, Bailian, TraceLab) are renumbered from 0.\n\n" +
			"--anonymize turns block ids and names of sessions and requests into keyed hashes, with --key or else a random " +
			"key that nobody keeps. Lengths, order, prefix sharing, sessions and dependencies are unchanged, and the first " +
			"arrival becomes time 0. Other keys are dropped, except model, priority and what a capture records about responses.",
		Flags: slices.Concat(flags, group(inLoad,
			&cli.BoolFlag{Name: "sort", Usage: "sort rows by arrival; large traces are sorted in temporary files in TMPDIR"},
			&cli.Float64Flag{Name: "sample", Value: 1, Usage: "keep this `SHARE` of the sessions, or of the rows without one"},
			&cli.StringFlag{Name: "part", Aliases: []string{"shard"}, Usage: "keep part `i/n`, from 1/n to n/n, of the result of all other flags"},
		), group(inOutput,
			dataFlag("-", "`FILE` to write, compressed if it ends in .gz or .zst; - is standard output"),
			toFlag,
			&cli.BoolFlag{Name: "anonymize", Usage: "replace ids and names with keyed hashes, and drop other keys of rows"},
			repeatable(cli.GenericFlag{Name: "hash", Usage: "with --anonymize, keep this `KEY` of rows, such as user or model, with hashed values; repeatable"}),
		), recordFlags(inTraceInput), readFlags(), []cli.Flag{idsFlag, blockSizeFlag, skipBadRowsFlag}),
		Action: func(c *cli.Context) error { return convert(c, std, d) },
	}
}

func convert(c *cli.Context, std streams, d *commandLine) error {
	if c.NArg() == 0 {
		return misused("missing argument: one or more traces")
	}
	r, err := pipelineOf(c, d)
	if err != nil {
		return err
	}
	paths := c.Args().Slice()
	for _, path := range paths { // before there is a key
		if _, err := os.Stat(path); path != "-" && err != nil {
			return fmt.Errorf("opening trace: %w", err)
		}
	}
	files := paths
	if r.SpreadGrid || r.selectsSessions() {
		var remove func()
		if files, remove, err = spoolTraces(std, paths...); err != nil {
			return err
		}
		defer remove()
		if err := r.readFirst(c, std, files); err != nil {
			return err
		}
	}
	in, err := openInputs(c, std, files)
	if err != nil {
		return err
	}
	defer in.close()
	anonymizer, err := anonymizerOf(c)
	if err != nil {
		return err
	}
	r.renumber = in.hashed && anonymizer == nil
	read := 0
	rows := r.reshape(trace.Tap(in.rows, func(trace.Request) { read++ }))
	if anonymizer != nil {
		rows = anonymizer.Rows(rows)
	}
	var size block.SizeDetector
	if c.String(toFlag.Name) == toVLLM {
		if stated := in.statedSize(); stated > 0 {
			size = block.KnownSize(stated)
		}
		rows = trace.Tap(rows, func(r trace.Request) { size.Add(r.InputLength, r.HashIDs) })
		rows = format.TimedTrace(rows, in.statedSize())
	}
	if len(paths) == 1 && !r.sort && !r.Retimes() { // the error is at the reader's last row
		rows = in.inputs[0].locateRows(rows)
	}
	err = writeTrace(c, std, func(w *format.Writer) (int, error) {
		n, err := w.WriteAll(rows)
		switch {
		case err != nil || n > 0:
		case read == 0:
			err = fmt.Errorf("%s: %w", strings.Join(paths, ", "), replay.ErrEmpty)
		default:
			err = errors.New("no requests left to write")
		}
		return n, err
	}, func(_ int, err error) {
		in.report()
		if anonymizer != nil && err == nil {
			sayDropped(std, anonymizer.Dropped)
		}
	})
	if err != nil {
		return in.explain(err)
	}
	if r.estimated > 0 {
		std.say("note: the order of %s without a timestamp is estimated from delays and assumed response times of %g ms and %g ms a token",
			doc.Count(r.estimated, "turn"), trace.AssumedTTFT, trace.AssumedTPOT)
	}
	if r.pruned > 0 {
		std.say("note: %s removed from after because their rows are not kept", doc.Count(r.pruned, "request id"))
	}
	if c.String(toFlag.Name) == toVLLM {
		std.say("times are seconds; block size: %s; use with vllm bench serve --dataset-name timed_trace --self-timed --timed-trace-chunk-hash-size %d", size.Size(), size.Size().Tokens)
	}
	return nil
}

// anonymizerOf returns the anonymizer of the flags, nil without them.
func anonymizerOf(c *cli.Context) (*log.Anonymizer, error) {
	hash := textsOf(c, "hash")
	switch {
	case !c.Bool("anonymize") && len(hash) > 0:
		return nil, misused("--hash needs --anonymize")
	case !c.Bool("anonymize"):
		return nil, nil
	}
	key, err := keyOf(c)
	if err != nil {
		return nil, err
	}
	return log.NewAnonymizer(key, hash...)
}

func sayDropped(std streams, dropped map[string]int) {
	for _, key := range slices.SortedFunc(maps.Keys(dropped), func(a, b string) int { return cmp.Or(dropped[b]-dropped[a], cmp.Compare(a, b)) }) {
		std.say("%s left out of %s", key, doc.Count(dropped[key], "row"))
	}
}

// pipeline holds the transforms selected by the flags.
type pipeline struct {
	trace.Pacing
	sort        bool
	skips       bool // bad rows
	renumber    bool
	part, parts int
	estimated   int // turns whose place was estimated
	pruned      int // ids removed from after
}

func pipelineOf(c *cli.Context, d *commandLine) (r pipeline, err error) {
	r.sort, r.skips = c.Bool("sort"), c.Bool(skipBadRowsFlag.Name)
	if r.part, r.parts, err = parsePart(c.String("part")); err != nil {
		return r, err
	}
	if err = d.Settings.Check(); err != nil {
		return r, d.misuse(err)
	}
	r.Pacing = d.Transform()
	r.Rebase = false
	r.Sessions = &trace.Sessions{} // of all inputs, for sample and part
	if sample := c.Float64("sample"); sample < 1 {
		r.Sample = trace.Some(sample)
	}
	return r, err
}

// parsePart parses "i/n", where i is 1..n, and returns the zero-based index.
func parsePart(text string) (i, n int, err error) {
	if text == "" {
		return 0, 1, nil
	}
	part, of, ok := strings.Cut(text, "/")
	i, errPart := strconv.Atoi(part)
	n, errOf := strconv.Atoi(of)
	if !ok || errPart != nil || errOf != nil || i < 1 || i > n {
		return 0, 0, misused("--part %q is not i/n with i from 1 to n", text)
	}
	return i - 1, n, nil
}

// selectsSessions reports whether whole sessions are selected.
func (r *pipeline) selectsSessions() bool { return r.Sample.Set || r.parts > 1 }

// readFirst reads the traces once to find their time grid, and the sessions that wait for
// each other.
func (r *pipeline) readFirst(c *cli.Context, std streams, files []string) error {
	in, err := openInputs(c, std, files)
	if err != nil {
		return err
	}
	defer in.close()
	rows := in.rows
	if r.selectsSessions() {
		rows = trace.Tap(rows, r.Sessions.Add)
	}
	if !r.SpreadGrid {
		for _, err := range rows {
			if err != nil {
				return in.inputs[0].locate(err)
			}
		}
		return nil
	}
	if !r.sort && len(files) == 1 {
		rows = in.inputs[0].locateRows(trace.InOrder(rows))
	}
	found, err := r.FindGrid(c.Context, rows)
	if err == nil && !found {
		std.say("note: the arrivals lie on no grid: nothing to spread")
	}
	return err
}

func (r *pipeline) reshape(reqs trace.Requests) trace.Requests {
	if r.sort {
		reqs = trace.Sort(reqs)
	}
	if r.Cuts() || r.skips {
		r.Pruned = &r.pruned
	}
	reqs = r.Apply(reqs)
	if r.renumber {
		reqs = merge.Renumber(reqs)
	}
	if r.parts > 1 {
		reqs = trace.Part(reqs, r.Sessions, r.part, r.parts)
	}
	if r.sort || r.Retimes() {
		reqs = trace.Tap(reqs, func(row trace.Request) {
			if !row.Timestamp.Set {
				r.estimated++
			}
		})
	}
	return reqs
}

// inputSet is one trace read from several files.
type inputSet struct {
	inputs []*input
	rows   trace.Requests
	hashed bool // block ids are hashes, or were made distinct: they must be renumbered
}

// openInputs opens the files of the traces on the command line.
func openInputs(c *cli.Context, std streams, files []string) (*inputSet, error) {
	ids, whole, sorts := c.String(idsFlag.Name), !c.Bool(skipBadRowsFlag.Name), c.Bool("sort")
	several := len(files) > 1
	m := &inputSet{hashed: several && ids == separateIDs}
	var all []trace.Requests
	for i, file := range files {
		opts := formatOptions(c)
		opts.Part = i
		in, err := openTrace(c, std, c.Args().Get(i), file, opts)
		if err != nil {
			m.close()
			return nil, err
		}
		if sorts {
			in.keep()
		}
		m.inputs, m.hashed = append(m.inputs, in), m.hashed || in.HashedIDs()
		rows := in.Requests()
		if several {
			rows = trace.Checked(rows, func(row trace.Request) error { return m.sameSize(in, row) })
		}
		all = append(all, rows)
	}
	switch {
	case several && ids == "":
		all = merge.Disjoint(all...)
	case several && ids == separateIDs:
		all = merge.Separate(all...)
	}
	linked := several && ids == sharedIDs // inputs may wait for each other
	for i, in := range m.inputs {
		if several && !sorts { // merging needs ordered inputs
			all[i] = trace.InOrder(all[i])
		}
		if !linked {
			all[i] = trace.CheckGraph(all[i], &trace.GraphBuilder{}, in.Line, whole)
		}
		all[i] = in.locateRows(all[i])
	}
	m.rows = merge.ByArrival(all...)
	if linked {
		m.rows = trace.CheckGraph(m.rows, &trace.GraphBuilder{}, func() int { return 0 }, whole)
	}
	return m, nil
}

// explain adds the remedy to the error of an overlap of ids.
func (m *inputSet) explain(err error) error {
	var row *trace.RowError
	var both *merge.OverlapError
	if !errors.As(err, &row) || !errors.As(err, &both) {
		return err
	}
	row.Err = fmt.Errorf("%s is also in %s: use --ids shared if equal ids are equal prompts and sessions (parts of one trace), or --ids separate if they are not (unrelated traces; ids are renumbered)",
		both.ID, m.inputs[both.Before].path)
	return usageError{err}
}

// report reports what the readers dropped or assumed.
func (m *inputSet) report() {
	for _, in := range m.inputs {
		in.report(true)
	}
}

func (m *inputSet) close() {
	for _, in := range m.inputs {
		in.Close()
	}
}

// sameSize returns an error if the block size of an input, by its rows up to this one, is
// not that of another.
func (m *inputSet) sameSize(in *input, row trace.Request) error {
	if len(row.HashIDs) == 0 {
		return nil
	}
	if !in.hasIDs {
		in.hasIDs = true
		// A trace knows better than --block-size, which is for those that do not state one.
		if known := cmp.Or(in.BlockSize(), in.blockSize()); known > 0 {
			in.size = block.KnownSize(known)
		}
	}
	in.size.Add(row.InputLength, row.HashIDs)
	for _, other := range m.inputs {
		if other != in && other.hasIDs && in.size.Disagrees(&other.size) {
			return fmt.Errorf("block size is %s, but that of %s is %s: their block ids cannot be merged; --block-size sets the size of traces that do not state one",
				in.size.Size(), other.path, other.size.Size())
		}
	}
	return nil
}

// statedSize returns the block size that all inputs state, or 0.
func (m *inputSet) statedSize() int {
	size := m.inputs[0].BlockSize()
	for _, in := range m.inputs {
		if in.BlockSize() != size {
			return 0
		}
	}
	return size
}
