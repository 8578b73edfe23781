package report

import (
	"io"
	"math"
	"slices"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/trace/stats"
)

// JSON writes the analysis as one indented JSON object. Lengths are in tokens, keys
// ending in _ms in milliseconds, the rate in requests per second, other rates and
// ratios from 0 to 1. All keys are always present; unknown values are null.
func (d Trace) JSON(w io.Writer) error { return writeJSON(w, traceJSON(d)) }

func traceJSON(d Trace) object {
	a := d.Analysis
	var duration, blockSize, sharing any
	if a.Arrivals != nil {
		duration = a.Arrivals.Duration()
	}
	if b := a.Prefix; b != nil {
		blockSize, sharing = b.BlockSize.Tokens, b.Roots
	}
	return object{
		{"trace", d.Name},
		{"requests", a.Requests},
		{"duration_ms", duration},
		{"block_size", blockSize},
		{"isl", lengths{a.ISL}},
		{"osl", lengths{a.OSL}},
		{"blocks", blocksJSON(a)},
		{"cache", cacheJSON(a, d.Cache)},
		{"context", object{
			{"observed_mean", a.Observed.Mean},
			{"observed_unique_mean", a.Observed.UniqueMean},
			{"observed_shared_ratio", a.Observed.SharedRatio},
			{"declared_mean", a.Declared.Mean},
			{"declared_unique_mean", a.Declared.UniqueMean},
			{"declared_shared_ratio", a.Declared.SharedRatio},
		}},
		{"arrivals", arrivalsJSON(a.Arrivals)},
		{"time", timeJSON(a.Time)},
		{"sessions", a.Sessions},
		{"graph", a.Graph},
		{"untimed", untimedJSON(a)},
		{"reuse", reuseJSON(a.Prefix, d.Cache)},
		{"lengths", object{
			{"isl_per_osl", a.Lengths.Ratio},      // of the sums
			{"ratios", lengths{a.Lengths.Ratios}}, // of each request with a response
			{"pearson", a.Lengths.Pearson},
			{"spearman", a.Lengths.Spearman},
			{"isl_estimated", a.Lengths.EstimatedISL},
			{"osl_estimated", a.Lengths.EstimatedOSL},
			{"osl_missing", a.Lengths.MissingOSL},
		}},
		{"sharing", sharing},
	}
}

func blocksJSON(a *analyze.Analysis) object {
	b, known := orZero(a.Prefix)
	return object{
		{"total", b.TotalBlocks}, {"unique", b.UniqueBlocks},
		{"size_source", b.BlockSize.How}, // "given", "detected" or "assumed"
		{"requests", b.Requests},         // rows with ids
		{"fitting", a.BlockFit.Fits},     // rows that the block size fits
		{"better_size", orNull(a.BlockFit.Better, a.BlockFit.Better > 0)},
	}.onlyIf(known)
}

func cacheJSON(a *analyze.Analysis, c *Cache) object {
	p, hasBlocks := orZero(a.Prefix)
	infinite := object{
		{"block_hit_rate", p.Infinite.Block}, {"token_hit_rate", p.Infinite.Token}, {"mean_request_hit_rate", p.Infinite.MeanRequest},
		{"hit_blocks", p.HitBlocks}, {"hit_tokens", p.HitTokens}, {"requests_no_hit", p.NoHit}, {"requests_all_hit", p.AllHit},
	}.onlyIf(hasBlocks)
	c, _ = orZero(c)
	known := c.Curve != nil
	policies := objects(c.Points, func(p cache.Point) object {
		return slices.Concat(object{{"policy", string(p.Policy)}}, c.capacityJSON(p.Capacity), hitRatesJSON(p.Hits))
	})
	var smallest, workers []object
	if known && c.Curve.Infinite().HitTokens > 0 {
		smallest = objects(infiniteShares, func(share float64) object { // of the infinite token hit rate
			return append(object{{"share", share}}, c.capacityJSON(c.Curve.SmallestByToken(share))...)
		})
	}
	for _, f := range c.Fleets {
		workers = append(workers, objects(fleetHitsOf(f), func(h fleetHits) object {
			return append(object{{"routing", h.name}, {"workers", h.workers}, {"capacity_blocks", h.capacity}}, hitRatesJSON(h.hits)...)
		})...)
	}
	return append(object{{"infinite", infinite}}, object{
		{"policies", policies},
		{"smallest", smallest},
		{"workers", workers},
		{"room_for_reuse_blocks", c.RoomForReuse},
		{"kv_bytes_per_token", orNull(c.BytesPerToken, c.BytesPerToken > 0)},
	}.onlyIf(known)...)
}

func orZero[T any](p *T) (value *T, known bool) {
	if p == nil {
		return new(T), false
	}
	return p, true
}

func hitRatesJSON(h cache.Hits) object {
	r := h.Rates()
	return object{{"block_hit_rate", r.Block}, {"token_hit_rate", r.Token}}
}

func (c *Cache) capacityJSON(blocks int) object {
	return object{{"capacity_blocks", blocks}, {"capacity_tokens", blocks * c.BlockSize}, {"capacity_bytes", c.bytes(blocks)}}
}

func arrivalsJSON(arrivals *analyze.Arrivals) object {
	at, known := orZero(arrivals)
	var grid any
	if at.Grid != nil {
		grid = at.Grid.Step
	}
	return object{
		{"rate", at.Rate}, {"cv", at.CV}, {"peak_1s", at.Peak1s}, {"peak_60s", at.Peak60s},
		{"distinct_timestamps", at.DistinctTimestamps}, {"max_per_timestamp", at.MostAtOnce}, {"grid_ms", grid},
		{"first_ms", at.First}, {"last_ms", at.Last},
		{"requests", at.Requests},   // rows with a known or estimated time
		{"estimated", at.Estimated}, // rows with a delay instead of a timestamp
		{"backwards", at.Backwards}, // rows before the row above
		{"dispersion_1s", at.Dispersion1s}, {"dispersion_60s", at.Dispersion60s},
	}.onlyIf(known)
}

// untimedJSON returns null if every row has a timestamp.
func untimedJSON(a *analyze.Analysis) any {
	note, warning := orderNotes(a)
	return orNull(object{{"turns", a.Untimed.Turns}, {"misplaced", a.Untimed.Misplaced}, {"note", note}, {"warning", warning}}, note != "")
}

// reuseJSON returns the time, requests, and distinct blocks since a block's last
// use. The blocks include the block itself, as in the size of an LRU cache.
func reuseJSON(p *analyze.Prefix, c *Cache) any {
	if p == nil {
		return nil
	}
	var blocks any
	if c.known() && p.HitBlocks > 0 {
		at := c.Curve.SmallestByBlock
		blocks = object{
			{"p1", at(.01)}, {"p10", at(.1)}, {"p25", at(.25)}, {"p50", at(.5)}, {"p75", at(.75)},
			{"p90", at(.9)}, {"p95", at(.95)}, {"p99", at(.99)}, {"max", at(1)},
		}
	}
	return object{{"time_ms", p.Reuse.Time}, {"requests", p.Reuse.Requests}, {"blocks", blocks}}
}

// lengths is a sample with its histogram: n columns and n+1 edges. Only the last column
// includes its upper edge.
type lengths struct{ stats.Sample }

// MarshalJSON adds the histogram to the numbers of the sample.
func (l lengths) MarshalJSON() ([]byte, error) {
	text, err := l.Sample.MarshalJSON()
	if l.Count == 0 || err != nil {
		return text, err
	}
	// Few values have few columns, so that a column has more than one.
	bins := stats.BinsFor(min(max(int(2*math.Sqrt(float64(l.Count))), 10), 60), l.Sample)
	// log: columns are equally wide on a log axis
	histogram, err := object{{"histogram", object{{"log", bins.Log}, {"edges", bins.Edges}, {"counts", l.Histogram(bins)}}}}.MarshalJSON()
	return append(append(text[:len(text)-1], ','), histogram[1:]...), err
}

func timeJSON(t *analyze.Time) any {
	if t == nil {
		return nil
	}
	out := object{
		{"step_ms", t.Step}, // width of a window
		{"windows", objects(t.Windows, func(w analyze.Window) object {
			return object{
				{"from_ms", w.From}, {"to_ms", w.To}, {"requests", w.Requests}, {"rate", w.Rate()},
				{"isl_mean", w.MeanISL()}, {"isl_cv", w.ISL.CV()}, {"osl_mean", w.MeanOSL()}, {"osl_cv", w.OSL.CV()},
				{"token_hit_rate", w.HitRate()}, {"context_share", w.ContextShare()}, // null without block ids
			}
		})},
		{"summary", changeSentence(t)},
	}
	for _, v := range varied { // null with fewer than three windows
		out = append(out, field{v.key, object{{"first_third", v.of(t.First)}, {"last_third", v.of(t.Last)}, {"last_over_first", lastOverFirst(t, v.of)}}})
	}
	return out
}
