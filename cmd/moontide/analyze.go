package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report"
	"moontide/trace"
	"moontide/trace/routing"
)

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

func cacheFlags() []cli.Flag {
	return group(inCache,
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "cache", Value: string(cache.LRU), Usage: "`POLICIES`: comma-separated eviction policies to simulate: %s"},
			Choices:    list(oneOf(cache.Policies()...).Noted(string(cache.Belady), "the upper bound")),
		},
		&cli.StringFlag{Name: "capacities", Usage: "`SIZES`: cache sizes in blocks (10000), tokens (5Mtok) or bytes (64GiB)", DefaultText: "a range that fits the trace"},
		&cli.Float64Flag{Name: "kv-bytes-per-token", Usage: "`N`: KV cache bytes per token, which convert tokens to bytes"},
		&cli.IntFlag{Name: "workers", Usage: "simulate `N` workers, each with its own cache"},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "routing", Value: "round-robin,random,session,prefix", Usage: "`POLICIES`: comma-separated routing policies to compare with --workers: %s"},
			Choices:    list(oneOf(routing.Policies()...)),
		},
	)
}

// list returns choices that accept several values.
func list(c choiceSet) choiceSet {
	c.List = true
	return c
}

func analyzeTraces(c *cli.Context, std streams) error {
	caches, err := cachesOf(c)
	if err != nil {
		return err
	}
	out, err := outputsOf(c)
	if err != nil {
		return err
	}
	curve, ofOne := out.has("csv")
	args := c.Args().Slice()
	traces, stdin := namedInputs(args), slices.Index(args, "-")
	switch {
	case len(traces) == 0:
		return misused("missing argument: a trace, or several to compare with the first")
	case len(traces) > 1 && ofOne:
		return misused("%s shows one trace", curve)
	case stdin >= 0 && slices.Contains(args[stdin+1:], "-"):
		return misused("standard input can be read only once")
	}
	var all report.Traces
	for _, in := range traces {
		data, err := analyzeTrace(c, std, in, caches)
		if err != nil {
			return err
		}
		if ofOne && !data.HasBlocks() {
			return fmt.Errorf("%s: no row has block ids, so there is no hit rate curve", in.path)
		}
		if len(traces) > 1 && len(caches.Capacities) == 0 && data.Cache.Curve != nil {
			// The other traces are compared at the cache sizes of the first.
			caches.Capacities = data.Cache.Sizes()
			data.Cache.Capacities = caches.Capacities
		}
		all = append(all, data)
	}
	shown := resultsOf(all)
	if len(all) == 1 {
		shown = resultsOf(all[0])
	}
	shown.forms["csv"] = func(w io.Writer) error { return all[0].Curves().WriteCSV(w) }
	shown.forms["datagen"] = func(w io.Writer) error { return all.Datagen().WriteText(w) }
	return out.show(std, shown)
}

// cachesOf parses the flags of caches.
func cachesOf(c *cli.Context) (q cache.Question, err error) {
	if q.Policies, err = parseList(c, "cache", cache.ParsePolicy); err != nil {
		return q, err
	}
	if q.Capacities, err = parseList(c, "capacities", cache.ParseCapacity); err != nil {
		return q, err
	}
	if q.Routings, err = parseList(c, "routing", routing.Parse); err != nil {
		return q, err
	}
	q.Workers, q.BytesPerToken = c.Int("workers"), c.Float64("kv-bytes-per-token")
	if c.IsSet("routing") && !c.IsSet("workers") {
		return q, misused("--routing needs --workers")
	}
	for _, size := range q.Capacities {
		if size.Unit == cache.Bytes && q.BytesPerToken == 0 {
			return q, misused("--capacities in bytes need --kv-bytes-per-token")
		}
	}
	return q, nil
}

// parseList parses a comma-separated flag and drops repeated values.
func parseList[T comparable](c *cli.Context, flag string, parse func(string) (T, error)) (all []T, err error) {
	text := c.String(flag)
	switch {
	case strings.TrimSpace(text) != "":
	case c.IsSet(flag):
		return nil, misused("--%s is empty", flag)
	default:
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		one, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, misused("%v", err)
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all, nil
}

// analyzeTrace analyzes a trace, including the requested caches.
func analyzeTrace(c *cli.Context, std streams, of namedInput, caches cache.Question) (data report.Trace, err error) {
	in, err := openTrace(c, std, of.path, of.path, formatOptions(c))
	if err != nil {
		return data, err
	}
	defer in.Close()
	in.keep()
	data = report.Trace{Name: of.name, Cache: &report.Cache{Results: cache.Results{Question: cache.Question{Workers: caches.Workers}}}}
	study := cache.NewStudy(caches)
	data.Analysis, err = analyze.Trace(in.Borrowed(), analyze.Options{
		BlockSize: in.blockSize(), Watch: study.Add, Watched: study.Finish, Line: in.Line,
	})
	if err == nil && data.HasBlocks() {
		err = addCaches(&data, study)
	}
	in.report(true)
	if err == nil && !c.Bool(skipBadRowsFlag.Name) {
		err = data.Analysis.Graph.Whole()
	}
	switch {
	case errors.As(err, new(*trace.GraphError)):
		return data, in.locate(err)
	case err == analyze.ErrEmpty:
		return data, in.name(err)
	case err != nil:
		return data, err
	}
	if warning := report.BlockSizeWarning(data.Analysis); warning != "" {
		std.say("%s: warning: %s", of.name, warning)
	}
	return data, nil
}

func addCaches(data *report.Trace, study *cache.Study) error {
	var inferred []int32
	if sessions := data.Analysis.Sessions; sessions != nil && sessions.Inferred {
		inferred = sessions.Of
	}
	results, err := study.Results(inferred)
	if errors.Is(err, cache.ErrCapacity) {
		return misused("%w", err)
	}
	if err == nil {
		data.Cache = &report.Cache{Results: *results}
	}
	return err
}
