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
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/log"
)

func convertCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Usage: "merge, cut, sample, shard, scale and re-time traces",
		Description: "Several inputs are merged by arrival; they must have the same block size. The steps have a fixed order: sort, " +
			"spread-grid, start and end, sample, limit, think and tool times, rate or session-rate, speedup, ramp, part. " +
			"Sessions that wait for each other, such as an agent and its sub-agents, are never split.\n\n" +
			"In request logs (openai-log), prompts become keyed block ids, and names of sessions keyed names. Block ids " +
			"that are hashes (WEKA, Dynamo, Bailian, TraceLab) are renumbered from 0.\n\n" +
			"--anonymize turns block ids and names of sessions and requests into keyed hashes, with --key or else a random " +
			"key that nobody keeps. Lengths, order, prefix sharing, sessions and dependencies are unchanged, and the first " +
			"arrival becomes time 0. Other keys are dropped, except model, priority and what a capture records about answers.",
		Flags: slices.Concat(pacingFlags(), group(inLoad,
			&cli.BoolFlag{Name: "sort", Usage: "sort rows by arrival; large traces are sorted in temporary files in TMPDIR"},
			&cli.Float64Flag{Name: "sample", Value: 1, Usage: "keep this `SHARE` of the sessions, or of the rows without one"},
			&cli.StringFlag{Name: "part", Aliases: []string{"shard"}, Usage: "keep part `i/n`, from 1/n to n/n, of the result of all other flags"},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED`: random seed of --sample, --arrival and --spread-grid", DefaultText: "0"},
		), group(inOutput,
			dataFlag("-", "`FILE` to write, compressed if it ends in .gz or .zst; - is standard output"),
			toFlag,
			&cli.BoolFlag{Name: "anonymize", Usage: "replace ids and names with keyed hashes, and drop other keys of rows"},
			repeatable(cli.GenericFlag{Name: "hash", Usage: "with --anonymize, keep this `KEY` of rows, such as user or model, with hashed values; repeatable"}),
		), recordFlags(inTraceInput), readFlags(), []cli.Flag{idsFlag, blockSizeFlag, skipBadRowsFlag}),
		Action: func(c *cli.Context) error { return convert(c, std) },
	}
}

func convert(c *cli.Context, std streams) error {
	if c.NArg() == 0 {
		return misused("convert: missing argument: one or more traces")
	}
	r, err := reshapingOf(c)
	if err != nil {
		return err
	}
	paths := c.Args().Slice()
	for _, path := range paths { // before there is a key
		if _, err := os.Stat(path); path != "-" && err != nil {
			return fmt.Errorf("opening trace: %w", err)
		}
	}
	if r.SpreadGrid || r.selectsSessions() {
		var remove func()
		if paths, remove, err = spoolTraces(std, paths...); err != nil {
			return err
		}
		defer remove()
		if err := r.readFirst(c, std, paths); err != nil {
			return err
		}
	}
	in, err := openMerged(c, std, paths)
	if err != nil {
		return err
	}
	defer in.close()
	output := c.String(outFlag.Name)
	anonymizer, err := anonymizerOf(c)
	if err != nil {
		return err
	}
	r.renumber = in.hashed() && anonymizer == nil
	read := 0
	reshaped := r.reshape(func(yield func(trace.Request, error) bool) {
		for req, err := range trace.Until(c.Context, in.rows) {
			if read++; !yield(req, err) {
				return
			}
		}
	})
	if anonymizer != nil {
		reshaped = anonymizer.Rows(reshaped)
	}
	hint := func(streams) {}
	if c.String(toFlag.Name) == toVLLM {
		reshaped, hint = timedTrace(reshaped, in.readers)
	}
	if len(paths) == 1 && !r.sort && !r.Retimes() { // the error is at the reader's last row
		reshaped = locatedRows(reshaped, c.Args().First(), in.readers[0])
	}
	rows, err := writeWith(std, output, func(w *format.Writer) (int, error) {
		rows, err := w.WriteAll(reshaped)
		switch {
		case err != nil || rows > 0:
		case read == 0:
			err = named(strings.Join(c.Args().Slice(), ", "), replay.ErrEmpty)
		default:
			err = errors.New("no requests left to write")
		}
		return rows, err
	})
	for i, reader := range in.readers {
		reportReader(std, c.Args().Get(i), reader, true)
	}
	if err != nil {
		return err
	}
	if anonymizer != nil {
		dropped := anonymizer.Dropped
		for _, key := range slices.SortedFunc(maps.Keys(dropped), func(a, b string) int { return cmp.Or(dropped[b]-dropped[a], cmp.Compare(a, b)) }) {
			std.say("%s left out of %s", key, doc.Count(dropped[key], "row"))
		}
	}
	if output != "-" {
		std.say("%s written to %s", doc.Count(rows, "request"), output)
	}
	if r.estimated > 0 {
		std.say("note: the order of %s without a timestamp is estimated from delays and assumed answer times of %g ms and %g ms a token",
			doc.Count(r.estimated, "turn"), trace.AssumedTTFT, trace.AssumedTPOT)
	}
	if r.pruned > 0 {
		std.say("note: %s removed from after because their rows are not kept", doc.Count(r.pruned, "request id"))
	}
	hint(std)
	return nil
}

// anonymizerOf returns the anonymizer of the flags, nil without them.
func anonymizerOf(c *cli.Context) (*log.Anonymizer, error) {
	hash := textsOf(c, "hash")
	switch {
	case !c.Bool("anonymize") && len(hash) > 0:
		return nil, misused("convert: --hash needs --anonymize")
	case !c.Bool("anonymize"):
		return nil, nil
	}
	key, err := keyOf(c)
	if err != nil {
		return nil, err
	}
	return log.NewAnonymizer(key, hash...)
}

// reshaping is the pipeline of transforms selected by the flags.
type reshaping struct {
	trace.Pacing
	sort        bool
	skips       bool // bad rows
	renumber    bool
	part, parts int
	estimated   int // turns whose place was estimated
	pruned      int // ids removed from after
}

func reshapingOf(c *cli.Context) (r reshaping, err error) {
	r.sort, r.skips = c.Bool("sort"), c.Bool(skipBadRowsFlag.Name)
	if r.part, r.parts, err = parsePart(c.String("part")); err != nil {
		return r, err
	}
	r.Pacing, err = pacingOf(c)
	r.Sessions = &trace.Sessions{} // of all inputs, for sample and part
	if sample := c.Float64("sample"); sample < 1 {
		r.Sample = trace.Some(sample)
	}
	return r, err
}

// selectsSessions reports whether whole sessions are selected.
func (r *reshaping) selectsSessions() bool { return r.Sample.Set || r.parts > 1 }

// readFirst reads the traces once to find their time grid, and the sessions that wait for
// each other.
func (r *reshaping) readFirst(c *cli.Context, std streams, files []string) error {
	in, err := openMerged(c, std, files)
	if err != nil {
		return err
	}
	defer in.close()
	rows := in.rows
	if r.selectsSessions() {
		rows = trace.Tap(rows, r.Sessions.Add)
	}
	if !r.SpreadGrid {
		for _, err := range trace.Until(c.Context, rows) {
			if err != nil {
				return located(err, c.Args().First(), in.readers[0])
			}
		}
		return nil
	}
	if !r.sort && len(files) == 1 {
		rows = locatedRows(trace.InOrder(rows), c.Args().First(), in.readers[0])
	}
	found, err := r.FindGrid(c.Context, rows)
	if err == nil && !found {
		std.say("note: the arrivals lie on no grid: nothing to spread")
	}
	return err
}

func (r *reshaping) reshape(reqs trace.Requests) trace.Requests {
	if r.sort {
		reqs = trace.Sort(collectOften(reqs))
	}
	if r.Cuts() || r.skips {
		r.Pruned = &r.pruned
	}
	reqs = r.Apply(reqs)
	if r.renumber {
		reqs = trace.Renumber(reqs)
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

// parsePart parses "i/n", where i is 1..n, and returns the zero-based index.
func parsePart(text string) (i, n int, err error) {
	if text == "" {
		return 0, 1, nil
	}
	part, of, ok := strings.Cut(text, "/")
	i, errPart := strconv.Atoi(part)
	n, errOf := strconv.Atoi(of)
	if !ok || errPart != nil || errOf != nil || i < 1 || i > n {
		return 0, 0, misused("convert: --part %q is not i/n with i from 1 to n", text)
	}
	return i - 1, n, nil
}
