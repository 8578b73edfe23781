package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/cache"
	"moontide/analyze/report"
	"moontide/trace"
	"moontide/trace/block"
)

var cacheFlags = []cli.Flag{
	&cli.StringFlag{Name: "cache", Value: "lru", Usage: "`POLICIES` to tell hit rates of, of lru, lfu, fifo and belady (the bound)"},
	&cli.StringFlag{Name: "capacities", Usage: "`SIZES` of caches, in blocks (10000), tokens (5Mtok) or bytes (64GiB); default: some that fit the trace"},
	&cli.StringFlag{Name: "kv-model", Usage: "`MODEL` whose KV cache turns tokens into bytes, such as llama-3.1-70b"},
	&cli.Float64Flag{Name: "kv-bytes-per-token", Usage: "size of a token in the KV cache in `BYTES`"},
	&cli.IntFlag{Name: "workers", Usage: "hit rates of `N` workers that have a cache each"},
	&cli.StringFlag{Name: "routing", Value: "round-robin,random,session,prefix", Usage: "how requests get to the workers: `RULES` of round-robin, random, session and prefix"},
}

// cacheQuestion is what the flags ask about caches.
type cacheQuestion struct {
	policies      []cache.Policy
	capacities    []cache.Capacity
	bytesPerToken float64
	arithmetic    string
	workers       int
	routings      []cache.Routing
}

func parseCacheFlags(c *cli.Context) (cacheQuestion, error) {
	var q cacheQuestion
	fail := func(err error) (cacheQuestion, error) { return q, misused("analyze: %v", err) }
	for _, name := range listed(c.String("cache")) {
		p, err := cache.ParsePolicy(name)
		if err != nil {
			return fail(err)
		}
		q.policies = append(q.policies, p)
	}
	for _, text := range listed(c.String("capacities")) {
		size, err := cache.ParseCapacity(text)
		if err != nil {
			return fail(err)
		}
		q.capacities = append(q.capacities, size)
	}
	for _, name := range listed(c.String("routing")) {
		r, err := cache.ParseRouting(name)
		if err != nil {
			return fail(err)
		}
		q.routings = append(q.routings, r)
	}
	if q.workers = c.Int("workers"); c.IsSet("workers") && q.workers < 1 {
		return q, misused("analyze: --workers is not a positive number: %d", q.workers)
	}
	switch q.bytesPerToken = c.Float64("kv-bytes-per-token"); {
	case c.IsSet("kv-bytes-per-token") && !(q.bytesPerToken > 0):
		return q, misused("analyze: --kv-bytes-per-token is not a positive number: %v", q.bytesPerToken)
	case c.IsSet("kv-model") && c.IsSet("kv-bytes-per-token"):
		return q, misused("analyze: --kv-model and --kv-bytes-per-token say the same")
	case c.IsSet("kv-model"):
		kv, err := cache.KVOf(c.String("kv-model"))
		if err != nil {
			return fail(err)
		}
		q.bytesPerToken, q.arithmetic = float64(kv.BytesPerToken()), kv.Model+": "+kv.Arithmetic()
	}
	for _, size := range q.capacities {
		if size.Unit == cache.Bytes && q.bytesPerToken == 0 {
			return q, misused("analyze: --capacities in bytes need --kv-model or --kv-bytes-per-token")
		}
	}
	return q, nil
}

// listed are the parts of a list with commas.
func listed(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// cacheWatcher sees the requests of a trace as they pass and keeps what the
// question needs: the LRU curve alone, or the whole sequence of blocks.
type cacheWatcher struct {
	cacheQuestion
	blocks   block.Table
	numbers  []uint32
	builder  cache.CurveBuilder
	sequence *cache.Sequence // nil where the curve is enough
}

func (q cacheQuestion) watcher() *cacheWatcher {
	w := &cacheWatcher{cacheQuestion: q}
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

func (w *cacheWatcher) add(r trace.Request) {
	w.numbers = w.blocks.AppendNumbers(w.numbers[:0], r.HashIDs)
	w.builder.Add(w.numbers, r.InputLength)
	if w.sequence != nil {
		w.sequence.Add(w.numbers, r.InputLength, r.SessionID)
	}
}

// answer computes what was asked, once all requests have passed.
func (w *cacheWatcher) answer(blockSize int) (*report.Cache, error) {
	c := &report.Cache{BlockSize: blockSize, Curve: w.builder.Curve(blockSize), BytesPerToken: w.bytesPerToken, Arithmetic: w.arithmetic}
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
		for i, n := range capacities {
			c.Points = append(c.Points, report.CachePoint{Policy: policy, Capacity: n, Hits: hits[i]})
		}
	}
	if w.workers == 0 {
		return c, nil
	}
	for _, n := range capacities {
		fleet := cache.Fleet{Workers: w.workers, Capacity: n}
		comparison, err := cache.Compare(w.sequence, fleet, blockSize, w.routings...)
		if err != nil {
			return nil, err
		}
		c.Fleets = append(c.Fleets, report.FleetPoint{Fleet: fleet, Comparison: comparison})
	}
	return c, nil
}

// sizes are the asked capacities in blocks, or 1, 3, 10, 30 and so on of a
// thousandth of what the curve needs to be flat.
func (w *cacheWatcher) sizes(curve *cache.Curve, blockSize int) ([]int, error) {
	var blocks []int
	for _, size := range w.capacities {
		n, err := size.Blocks(blockSize, w.bytesPerToken)
		if err != nil {
			return nil, misused("analyze: %v", err)
		}
		blocks = append(blocks, n)
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

// roundSizes are the numbers of blocks that a report falls back on.
var roundSizes = []int{10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000}
