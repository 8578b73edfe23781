package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"moontide/analyze/cache"
	"moontide/trace"
)

// curvePoints is how many points of the LRU curve a file or a figure gets.
const curvePoints = 400

// CSV writes hit rates against cache sizes as one table: of each policy at the
// capacities that were asked for, or, where none were, the whole LRU curve from 1
// block to the capacity from which on nothing more is hit. Then follow the
// workers, one line a routing, beside single caches of one worker's size and of
// all together. What is not known, or means nothing for one cache, is empty. The
// errors are those of w.
func (c *Cache) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"policy", "capacity_blocks", "capacity_tokens", "block_hit_rate", "token_hit_rate", "capacity_bytes", "workers", "routing"})
	line := func(policy cache.Policy, capacity int, h cache.Hits, workers int, routing string) {
		r := h.Rates()
		bytes := trace.Opt[float64]{Value: float64(capacity) * float64(c.BlockSize) * c.BytesPerToken, Set: c.BytesPerToken > 0}
		out.Write([]string{string(policy), strconv.Itoa(capacity), strconv.Itoa(capacity * c.BlockSize),
			plain(trace.Some(r.Block)), plain(r.Token), plain(bytes), strconv.Itoa(workers), routing})
	}
	points := c.Points
	if isLRU := func(p CachePoint) bool { return p.Policy == cache.LRU }; c.Asked == nil && slices.ContainsFunc(points, isLRU) {
		points = slices.DeleteFunc(slices.Clone(points), isLRU)
		for _, capacity := range c.Curve.Spaced(curvePoints) {
			line(cache.LRU, capacity, c.Curve.At(capacity), 1, "")
		}
	}
	for _, p := range points {
		line(p.Policy, p.Capacity, p.Hits, 1, "")
	}
	for _, f := range c.Fleets {
		f.each(func(name string, workers, capacity int, h cache.Hits) { line(cache.LRU, capacity, h, workers, name) })
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing curves: %w", err)
	}
	return nil
}

// plain is a number as a spreadsheet reads it.
func plain(v trace.Opt[float64]) string {
	if !v.Set {
		return ""
	}
	return strconv.FormatFloat(v.Value, 'f', -1, 64)
}
