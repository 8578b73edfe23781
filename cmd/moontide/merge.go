package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"moontide/trace"
	"moontide/trace/format"
)

// Meanings of equal ids in several inputs.
const (
	sharedIDs   = "shared"
	separateIDs = "separate"
)

var idsFlag = &choiceFlag{
	StringFlag: cli.StringFlag{
		Name: "ids", Category: inTraceInput, DefaultText: "inputs with common ids are an error",
		Usage: "`MEANING` of ids (block, session, request) that occur in several inputs: %s",
	},
	Choices: oneOf(sharedIDs, separateIDs).
		Noted(sharedIDs, "same prompt and session, as in parts of one trace").
		Noted(separateIDs, "unrelated; ids are renumbered"),
}

// merged is one trace read from several files.
type merged struct {
	readers []*format.Reader
	rows    trace.Requests
	// separated means that ids were made distinct and must be renumbered.
	separated bool
}

func openMerged(c *cli.Context, std streams, paths []string) (*merged, error) {
	ids := c.String(idsFlag.Name)
	m := &merged{}
	var inputs []trace.Requests
	for i, path := range paths {
		opts := formatOptions(c)
		opts.Part = i
		r, err := openTrace(std, path, opts)
		if err != nil {
			m.close()
			return nil, err
		}
		m.readers = append(m.readers, r)
		inputs = append(inputs, r.Requests())
	}
	whole := !c.Bool(skipBadRowsFlag.Name)
	if len(paths) > 1 {
		inputs = m.merge(c, inputs, ids)
	}
	if len(paths) == 1 || ids != sharedIDs {
		for i, rows := range inputs {
			rows = trace.CheckGraph(rows, &trace.GraphBuilder{}, lineOf(m.readers[i]), whole)
			inputs[i] = locatedRows(rows, c.Args().Get(i), m.readers[i])
		}
	}
	m.rows = trace.Merge(inputs...)
	if len(paths) > 1 && ids == sharedIDs { // inputs may wait for each other
		m.rows = trace.CheckGraph(m.rows, &trace.GraphBuilder{}, func() int { return 0 }, whole)
	}
	return m, nil
}

// lineOf returns a function for the line of the row read last, 0 for a folder of files.
func lineOf(r *format.Reader) func() int {
	return func() int {
		if r.File() != "" {
			return 0
		}
		return r.Line()
	}
}

// merge returns the inputs of a merge, which fail at rows that cannot be merged.
func (m *merged) merge(c *cli.Context, inputs []trace.Requests, ids string) []trace.Requests {
	var sizes blockSizes
	for i, rows := range inputs {
		inputs[i] = sizes.agreeing(rows, c.Args().Get(i), c.Int(blockSizeFlag.Name), m.readers[i])
	}
	switch ids {
	case "":
		inputs = trace.Disjoint(inputs...)
	case separateIDs:
		inputs = trace.Separate(inputs...)
		m.separated = true
	}
	for i, rows := range inputs {
		rows = explained(rows, c)
		if !c.Bool("sort") { // merging needs ordered inputs
			rows = trace.InOrder(rows)
		}
		inputs[i] = locatedRows(rows, c.Args().Get(i), m.readers[i])
	}
	return inputs
}

// explained adds the remedy to the error of an overlap of ids.
func explained(reqs trace.Requests, c *cli.Context) trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for r, err := range reqs {
			var both *trace.OverlapError
			if errors.As(err, &both) {
				err = misused("%s is also in %s: use --ids shared if equal ids are equal prompts and sessions (parts of one trace), or --ids separate if they are not (unrelated traces; ids are renumbered)",
					both.ID, c.Args().Get(both.Before))
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// hashed reports whether block ids are hashes or were made distinct.
func (m *merged) hashed() bool {
	for _, r := range m.readers {
		if r.HashedIDs() {
			return true
		}
	}
	return m.separated
}

func (m *merged) close() {
	for _, r := range m.readers {
		r.Close()
	}
}
