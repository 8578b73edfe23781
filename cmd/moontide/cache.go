package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report"
	"moontide/trace"
	"moontide/trace/routing"
)

func cacheFlags() []cli.Flag {
	return group(inCache,
		&cli.StringFlag{Name: "cache", Value: "lru", Usage: "`POLICIES`: eviction policies to simulate, of lru, lfu, fifo and belady (the upper bound)"},
		&cli.StringFlag{Name: "capacities", Usage: "`SIZES`: cache sizes in blocks (10000), tokens (5Mtok) or bytes (64GiB)", DefaultText: "several that fit the trace"},
		&cli.StringFlag{Name: "kv-model", Usage: "`MODEL` whose KV cache turns tokens into bytes, such as llama-3.1-70b"},
		&cli.StringFlag{Name: "kv-dtype", Value: string(cache.BF16), Usage: "`TYPE`: number type in the KV cache of --kv-model: bf16, fp16, fp8 or fp32"},
		&cli.Float64Flag{Name: "kv-bytes-per-token", Usage: "`N`: size of a token in the KV cache in bytes; replaces --kv-model"},
		&cli.IntFlag{Name: "workers", Usage: "simulate `N` workers with a cache each"},
		&cli.StringFlag{Name: "routing", Value: "round-robin,random,session,prefix", Usage: "`POLICIES`: routing policies to compare with --workers, of round-robin, random, least-loaded, session and prefix"},
	)
}

func knownModels() string {
	var names []string
	for _, k := range cache.Presets() {
		names = append(names, k.Model)
	}
	return "Models known to --kv-model: " + strings.Join(names, ", ") + "."
}

// cacheQuestion is the set of caches to compute hit rates for.
type cacheQuestion struct {
	policies      []cache.Policy
	capacities    []cache.Capacity
	bytesPerToken float64
	arithmetic    string
	workers       int
	routings      []routing.Policy
}

func parseCacheFlags(c *cli.Context) (q cacheQuestion, err error) {
	if q.policies, err = listed(c, "cache", cache.ParsePolicy); err != nil {
		return q, err
	}
	if q.capacities, err = listed(c, "capacities", cache.ParseCapacity); err != nil {
		return q, err
	}
	if q.routings, err = listed(c, "routing", routing.Parse); err != nil {
		return q, err
	}
	q.workers = c.Int("workers")
	if c.IsSet("routing") && !c.IsSet("workers") {
		return q, misused("analyze: --routing needs --workers")
	}
	if err := q.parseBytes(c); err != nil {
		return q, err
	}
	for _, size := range q.capacities {
		if size.Unit == cache.Bytes && q.bytesPerToken == 0 {
			return q, misused("analyze: --capacities in bytes need --kv-model or --kv-bytes-per-token")
		}
	}
	return q, nil
}

func (q *cacheQuestion) parseBytes(c *cli.Context) error {
	switch q.bytesPerToken = c.Float64("kv-bytes-per-token"); {
	case c.IsSet("kv-model") && c.IsSet("kv-bytes-per-token"):
		return misused("analyze: --kv-model and --kv-bytes-per-token exclude each other")
	case c.IsSet("kv-dtype") && !c.IsSet("kv-model"):
		return misused("analyze: --kv-dtype needs --kv-model")
	case c.IsSet("kv-model"):
		kv, err := cache.KVOf(c.String("kv-model"))
		if err == nil {
			kv.Element, err = cache.ParseElement(c.String("kv-dtype"))
		}
		if err != nil {
			return misused("analyze: %v", err)
		}
		q.bytesPerToken, q.arithmetic = float64(kv.BytesPerToken()), kv.Model+": "+kv.Arithmetic()
	}
	return nil
}

// listed parses a comma-separated flag and drops repeated values.
func listed[T comparable](c *cli.Context, flag string, parse func(string) (T, error)) ([]T, error) {
	text := c.String(flag)
	if strings.TrimSpace(text) == "" {
		if c.IsSet(flag) {
			return nil, misused("analyze: --%s is empty", flag)
		}
		return nil, nil
	}
	var all []T
	for _, part := range strings.Split(text, ",") {
		one, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, misused("analyze: %v", err)
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all, nil
}

// cacheSimulator collects the requests of a trace: the LRU curve, and the whole
// sequence of blocks if the question needs it.
type cacheSimulator struct {
	cacheQuestion
	builder  cache.CurveBuilder
	sequence *cache.Sequence // nil if the curve is enough
	rows     int             // added so far
	with     []int32         // rows in the sequence
}

func (q cacheQuestion) simulator() *cacheSimulator {
	w := &cacheSimulator{cacheQuestion: q}
	for _, p := range q.policies {
		if p != cache.LRU {
			w.sequence = &cache.Sequence{}
		}
	}
	if q.workers > 0 {
		w.sequence = &cache.Sequence{}
	}
	return w
}

// add adds a request. One without block ids is neither hit nor miss.
func (w *cacheSimulator) add(r trace.Request, blocks []uint32) {
	w.rows++
	if len(blocks) == 0 {
		return
	}
	w.builder.Add(blocks, r.InputLength)
	if w.sequence != nil {
		w.sequence.Add(blocks, r.InputLength, r.SessionID)
		w.with = append(w.with, int32(w.rows-1))
	}
}

// result computes the hit rates after the last request.
func (w *cacheSimulator) result(blockSize int, sessions *analyze.Sessions) (*report.Cache, error) {
	c := &report.Cache{BlockSize: blockSize, Curve: w.builder.Curve(blockSize),
		Asked: w.capacities, BytesPerToken: w.bytesPerToken, Arithmetic: w.arithmetic, Workers: w.workers}
	capacities, err := w.sizes(c.Curve, blockSize)
	if err != nil {
		return nil, err
	}
	for _, policy := range w.policies {
		if policy == cache.LRU {
			for _, n := range capacities {
				c.Points = append(c.Points, report.CachePoint{Policy: policy, Capacity: n, Hits: c.Curve.At(n)})
			}
			continue
		}
		hits, err := cache.Simulate(w.sequence, policy, blockSize, capacities...)
		if err != nil {
			return nil, err
		}
		if policy == cache.Belady {
			c.RoomForReuse = trace.Some(cache.RoomForReuse(w.sequence))
		}
		for i, n := range capacities {
			c.Points = append(c.Points, report.CachePoint{Policy: policy, Capacity: n, Hits: hits[i]})
		}
	}
	if w.workers == 0 {
		return c, nil
	}
	if sessions.Inferred {
		c.SessionsInferred = true
		of := make([]int32, len(w.with))
		for i, row := range w.with {
			of[i] = sessions.Of[row]
		}
		w.sequence.Group(of)
	}
	comparer, err := cache.NewComparer(w.sequence, blockSize)
	if err != nil {
		return nil, err
	}
	for _, n := range capacities {
		fleet := cache.Fleet{Workers: w.workers, Capacity: n}
		comparison, err := comparer.Compare(fleet, w.routings...)
		if err != nil {
			return nil, err
		}
		c.Fleets = append(c.Fleets, report.FleetPoint{Fleet: fleet, Comparison: comparison})
	}
	return c, nil
}

// sizes returns the capacities in blocks, by default 10, 30, 100, ... from a
// thousandth of the size at which the curve is flat.
func (w *cacheSimulator) sizes(curve *cache.Curve, blockSize int) ([]int, error) {
	var blocks []int
	for _, size := range w.capacities {
		n, err := size.Blocks(blockSize, w.bytesPerToken)
		if err != nil {
			return nil, misused("analyze: %v", err)
		}
		if !slices.Contains(blocks, n) {
			blocks = append(blocks, n)
		}
	}
	if len(blocks) > 0 {
		return blocks, nil
	}
	for _, n := range roundSizes {
		if n*1000 >= curve.Largest() && n < curve.Largest() {
			blocks = append(blocks, n)
		}
	}
	return append(blocks, curve.Largest()), nil
}

// roundSizes returns the default capacities in blocks.
var roundSizes = []int{10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000}
