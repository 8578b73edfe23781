package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/urfave/cli/v2"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report"
	"moontide/trace"
)

var blockSizeFlag = &cli.IntFlag{
	Name: "block-size", Category: inTraceInput,
	Usage: "block size in tokens", DefaultText: "detected",
}

func analyzeCommand(std streams, _ stop) *cli.Command {
	return &cli.Command{
		Usage:       "describe a trace: lengths, arrivals, changes over time, shared prefixes, cache hit rates",
		Description: "Several traces are shown side by side.",
		Flags: slices.Concat(outputFlags(oneOf(words("json markdown csv html png datagen")...).
			Noted("csv", "hit rates by cache size, of the LRU curve or of --cache and --capacities").
			Noted("datagen", "the DATASET ANALYSIS block of Dynamo's data generator")), cacheFlags(), readFlags(), []cli.Flag{blockSizeFlag, skipBadRowsFlag}),
		Action: func(c *cli.Context) error { return analyzeTraces(c, std) },
	}
}

// analysis holds the parsed command line.
type analysis struct {
	caches cache.Question
	outputs
}

func analyzeTraces(c *cli.Context, std streams) error {
	asked, err := parseAnalyze(c)
	if err != nil {
		return err
	}
	var all report.Comparison
	var traces []namedInput
	for _, path := range c.Args().Slice() {
		traces = append(traces, namedInput{traceName(path), path})
	}
	nameApart(traces)
	for i, in := range traces {
		data, err := analyzeTrace(c, std, in.path, in.name, asked)
		if err != nil {
			return err
		}
		all = append(all, data)
		if c.NArg() > 1 && len(asked.caches.Capacities) == 0 && data.Cache.Curve != nil {
			// The other traces are compared at the cache sizes of the first.
			asked.caches.Capacities = data.Cache.Sizes()
			all[i].Cache.Capacities = asked.caches.Capacities
		}
	}
	return asked.show(std, all)
}

func parseAnalyze(c *cli.Context) (asked analysis, err error) {
	if asked.caches, err = parseCacheFlags(c); err != nil {
		return asked, err
	}
	if asked.outputs, err = outputsOf(c); err != nil {
		return asked, err
	}
	traces := c.Args().Slice()
	if len(traces) == 0 {
		return asked, misused("analyze: missing argument: a trace, or several to compare with the first")
	}
	if flag, ok := asked.has("csv"); ok && len(traces) > 1 {
		return asked, misused("analyze: %s shows one trace", flag)
	}
	for i, path := range traces {
		if path == "-" && slices.Contains(traces[:i], path) {
			return asked, misused("analyze: standard input can be read only once")
		}
	}
	return asked, nil
}

func (asked *analysis) show(std streams, all report.Comparison) error {
	shown := resultsOf(all)
	if len(all) == 1 {
		shown = resultsOf(all[0])
	}
	shown.forms["csv"] = func(w io.Writer) error { return all[0].Curves().WriteCSV(w) }
	shown.forms["datagen"] = func(w io.Writer) error { return all.Datagen().WriteText(w) }
	return asked.outputs.show(std, shown)
}

func analyzeTrace(c *cli.Context, std streams, path, name string, asked analysis) (report.Dataset, error) {
	r, err := openTrace(std, path, formatOptions(c))
	if err != nil {
		return report.Dataset{}, err
	}
	defer r.Close()
	data, err := analyzeRequests(c, name, r.Borrowed(), lineOf(r), blockSizeOf(c, r), asked.caches)
	reportReader(std, path, r, true)
	if err == nil && !c.Bool(skipBadRowsFlag.Name) {
		err = data.Analysis.Graph.Whole()
	}
	if errors.As(err, new(*trace.GraphError)) {
		return data, located(err, path, r)
	}
	if err == analyze.ErrEmpty {
		return data, fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return data, err
	}
	if _, curve := asked.has("csv"); curve && !data.HasBlocks() {
		return data, fmt.Errorf("%s: no row has block ids, so there is no hit rate curve", path)
	}
	if warning := report.BlockSizeWarning(data.Analysis); warning != "" {
		std.say("%s: warning: %s", name, warning)
	}
	return data, nil
}

// analyzeRequests analyzes a stream, including the requested caches.
func analyzeRequests(c *cli.Context, name string, reqs trace.Requests, line func() int, blockSize int, caches cache.Question) (data report.Dataset, err error) {
	data = report.Dataset{Name: name, Cache: &report.Cache{Results: cache.Results{Question: cache.Question{Workers: caches.Workers}}}}
	study := cache.NewStudy(caches)
	data.Analysis, err = analyze.Trace(collectOften(trace.Until(c.Context, reqs)), analyze.Options{
		BlockSize: blockSize, Watch: study.Add, Watched: study.Finish, Line: line,
	})
	if err != nil || !data.HasBlocks() {
		return data, err
	}
	var inferred []int32
	if sessions := data.Analysis.Sessions; sessions != nil && sessions.Inferred {
		inferred = sessions.Of
	}
	results, err := study.Results(inferred)
	if errors.Is(err, cache.ErrCapacity) {
		return data, misused("analyze: %w", err)
	}
	if err == nil {
		data.Cache = &report.Cache{Results: *results}
	}
	return data, err
}

// collectOften lowers the GC target for long streams: most of the memory kept has no
// pointers, so frequent collections are cheap and save memory. Short streams need little
// memory, so few collections save time.
func collectOften(reqs trace.Requests) trace.Requests {
	size, targets := 0, gcTargets
	return trace.Tap(reqs, func(r trace.Request) {
		for len(targets) > 0 && size >= targets[0].size {
			debug.SetGCPercent(targets[0].percent)
			targets = targets[1:]
		}
		size += 1 + len(r.HashIDs)/100
	})
}

// gcTargets are GC targets by the minimum size of a trace, in rows of up to 100 blocks.
var gcTargets = []struct{ size, percent int }{{0, 400}, {longTrace, longTraceGC}, {1_000_000, 10}}

const (
	// longTrace is the number of rows above which memory matters more than time.
	longTrace   = 20_000
	longTraceGC = 20 // percent
)
