package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"moontide/trace"
	"moontide/trace/check"
	"moontide/trace/format"
	"moontide/trace/tokenizer"
)

// The values of --block-ids.
const (
	noIDs     = "none"
	uniqueIDs = "unique"
)

// formatFlags are the flags of every verb that reads a trace.
func formatFlags(category string) []cli.Flag {
	return group(category,
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "format", Usage: "`NAME`: trace format: %s", DefaultText: "auto-detected"},
			Choices:    oneOf(format.Formats()...),
		},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "block-ids", Value: noIDs, Usage: "`METHOD` to make up missing block ids: %s"},
			Choices:    oneOf(noIDs, uniqueIDs),
		},
		&cli.BoolFlag{Name: "recorded-times", Usage: "send later turns of WEKA, Dynamo and TraceLab traces at their recorded times, not after the previous answer"},
	)
}

// tokenizerFlag is used by verbs that read texts but send no prompts.
func tokenizerFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "tokenizer", Category: category, Usage: "`FILE`: tokenizer.json for traces that have text instead of lengths, and for request logs"}
}

func readFlags() []cli.Flag { return append(formatFlags(inTraceInput), tokenizerFlag(inTraceInput)) }

func formatOptions(c *cli.Context) format.Options {
	opts := format.Options{
		Format:      format.Format(c.String("format")),
		UniqueIDs:   c.String("block-ids") == uniqueIDs,
		BlockSize:   c.Int(blockSizeFlag.Name),
		SkipBadRows: c.Bool(skipBadRowsFlag.Name),
		// vLLM and the tree method do not support turns.
		RecordedTimes: c.Bool("recorded-times") || c.String(toFlag.Name) == toVLLM || c.String("method") == "tree",
	}
	readsLogs(c, &opts)
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

// blockSizeOf returns the block size in tokens given by the user, the trace or
// its format; 0 means that it is detected from the rows.
func blockSizeOf(c *cli.Context, r *format.Reader) int {
	if n := c.Int(blockSizeFlag.Name); n > 0 {
		return n
	}
	return r.BlockSize()
}

// checkable returns the source of a check, which needs one line per row. For
// formats with several rows per line or several files, lines are numbered as
// convert would write them.
func checkable(std streams, path string, r *format.Reader) check.Source {
	switch r.Format() {
	case format.Weka, format.Dynamo, format.ShareGPT:
		std.say("%s: line numbers are those of the converted trace", traceName(path))
		return &convertedLines{Reader: r}
	}
	return r
}

// convertedLines numbers rows instead of lines.
type convertedLines struct {
	*format.Reader
	rows int
}

func (l *convertedLines) Read(r *trace.Request) error {
	l.rows++
	return l.Reader.Read(r)
}

func (l *convertedLines) Line() int { return l.rows }

// isFolder reports whether a trace is a folder of files.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Output formats of convert.
const (
	toNative = "native"
	toVLLM   = "vllm"
)

var toFlag = &choiceFlag{
	StringFlag: cli.StringFlag{Name: "to", Category: inOutput, Value: toNative, Usage: "output `FORMAT`: %s"},
	Choices:    oneOf(toNative, toVLLM).Noted(toVLLM, "timed_trace dataset of vllm bench serve"),
}

// timedTrace returns a stream as a dataset of vLLM, and a function that reports its use.
func timedTrace(reqs trace.Requests, readers []*format.Reader) (converted trace.Requests, hint func(std streams)) {
	stated, found := readers[0].BlockSize(), &trace.BlockDetector{}
	for _, r := range readers {
		if r.BlockSize() != stated {
			stated = 0
		}
	}
	hint = func(std streams) {
		size := found.BlockSize()
		if stated > 0 {
			size = trace.GivenBlockSize(stated)
		}
		std.say("times are seconds; block size: %s; use with vllm bench serve --dataset-name timed_trace --self-timed --timed-trace-chunk-hash-size %d", size, size.Tokens)
	}
	return format.TimedTrace(trace.Tap(reqs, found.Add), stated), hint
}
