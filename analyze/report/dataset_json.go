package report

import (
	"io"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/trace/stats"
)

// JSON writes the analysis as one indented JSON object. Lengths are in tokens, keys
// in _ms in milliseconds, the rate in requests per second, rates and ratios 0..1.
// Every key is always there: what the trace cannot give, or was not asked for, is
// null.
func (d Dataset) JSON(w io.Writer) error { return writeJSON(w, datasetJSON(d)) }

func datasetJSON(d Dataset) object {
	a := d.Analysis
	var duration, blockSize any
	if a.Arrivals != nil {
		duration = number(a.Arrivals.Duration())
	}
	if a.Prefix != nil {
		blockSize = a.Prefix.BlockSize.Tokens
	}
	return object{
		{"trace", d.Name},
		{"requests", a.Requests},
		{"duration_ms", duration},
		{"block_size", blockSize},
		{"isl", lengthJSON(a.ISL)},
		{"osl", lengthJSON(a.OSL)},
		{"blocks", blocksJSON(a)},
		{"cache", cacheJSON(a.Prefix, d.Cache)},
		{"context", object{
			{"observed_mean", numberOf(a.Observed.Mean)},
			{"observed_unique_mean", numberOf(a.Observed.UniqueMean)},
			{"observed_shared_ratio", numberOf(a.Observed.SharedRatio)},
			{"declared_mean", numberOf(a.Declared.Mean)},
			{"declared_unique_mean", numberOf(a.Declared.UniqueMean)},
			{"declared_shared_ratio", numberOf(a.Declared.SharedRatio)},
		}},
		{"arrivals", arrivalsJSON(a.Arrivals)},
		{"sessions", sessionsJSON(a.Sessions)},
		{"reuse", reuseJSON(a.Prefix, d.Cache)},
		{"lengths", object{
			{"isl_per_osl", numberOf(a.Lengths.Ratio)}, // of the sums
			{"ratios", lengthJSON(a.Lengths.Ratios)},   // of each request with an answer
			{"pearson", numberOf(a.Lengths.Pearson)},
			{"spearman", numberOf(a.Lengths.Spearman)},
			{"isl_estimated", a.Lengths.EstimatedISL},
			{"osl_estimated", a.Lengths.EstimatedOSL},
			{"osl_missing", a.Lengths.MissingOSL},
		}},
		{"sharing", sharingJSON(a.Prefix)},
		{"concurrency", concurrencyJSON(d.Service, a.Arrivals != nil)},
	}
}

func blocksJSON(a *analyze.Analysis) object {
	p := a.Prefix
	if p == nil {
		return nulls("total", "unique", "size_source", "requests", "fitting", "better_size")
	}
	return object{
		{"total", p.TotalBlocks}, {"unique", p.UniqueBlocks},
		{"size_source", p.BlockSize.How}, // "given", "detected" or "assumed"
		{"requests", p.Requests},         // rows with ids
		{"fitting", a.BlockFit.Fits},     // rows that the block size fits
		{"better_size", orNull(a.BlockFit.Better, a.BlockFit.Better > 0)},
	}
}

func cacheJSON(p *analyze.Prefix, c *Cache) object {
	infinite := nulls("block_hit_rate", "token_hit_rate", "mean_request_hit_rate", "hit_blocks", "hit_tokens", "requests_no_hit", "requests_all_hit")
	if p != nil {
		infinite = object{
			{"block_hit_rate", number(p.Infinite.Block)}, {"token_hit_rate", numberOf(p.Infinite.Token)}, {"mean_request_hit_rate", number(p.Infinite.MeanRequest)},
			{"hit_blocks", p.HitBlocks}, {"hit_tokens", p.HitTokens}, {"requests_no_hit", p.NoHit}, {"requests_all_hit", p.AllHit},
		}
	}
	if c == nil || c.Curve == nil {
		return append(object{{"infinite", infinite}}, nulls("policies", "smallest", "workers", "room_for_reuse_blocks", "kv_bytes_per_token")...)
	}
	var policies, smallest, workers []object
	for _, point := range c.Points {
		r := point.Hits.Rates()
		policies = append(policies, append(object{{"policy", string(point.Policy)}}, append(c.capacityJSON(point.Capacity),
			field{"block_hit_rate", number(r.Block)}, field{"token_hit_rate", numberOf(r.Token)})...))
	}
	for _, share := range infiniteShares { // of the infinite token hit rate
		if c.Curve.Infinite().HitTokens > 0 {
			smallest = append(smallest, append(object{{"share", number(share)}}, c.capacityJSON(c.Curve.SmallestByToken(share))...))
		}
	}
	for _, f := range c.Fleets {
		for _, h := range f.all() {
			r := h.hits.Rates()
			workers = append(workers, object{{"routing", h.name}, {"workers", h.workers}, {"capacity_blocks", h.capacity},
				{"block_hit_rate", number(r.Block)}, {"token_hit_rate", numberOf(r.Token)}})
		}
	}
	return object{
		{"infinite", infinite},
		{"policies", policies},
		{"smallest", smallest},
		{"workers", workers},
		{"room_for_reuse_blocks", orNull(c.RoomForReuse.Value, c.RoomForReuse.Set)},
		{"kv_bytes_per_token", numberOr(c.BytesPerToken, c.BytesPerToken > 0)},
	}
}

func (c *Cache) capacityJSON(blocks int) object {
	return object{{"capacity_blocks", blocks}, {"capacity_tokens", blocks * c.BlockSize}, {"capacity_bytes", numberOf(c.bytes(blocks))}}
}

func arrivalsJSON(at *analyze.Arrivals) object {
	if at == nil {
		return nulls("rate", "cv", "peak_1s", "peak_60s", "distinct_timestamps", "max_per_timestamp", "grid_ms", "first_ms", "last_ms",
			"requests", "backwards", "dispersion_1s", "dispersion_60s")
	}
	var grid any
	if at.Grid != nil {
		grid = number(at.Grid.Step)
	}
	return object{
		{"rate", numberOf(at.Rate)}, {"cv", numberOf(at.CV)}, {"peak_1s", at.Peak1s}, {"peak_60s", at.Peak60s},
		{"distinct_timestamps", at.DistinctTimestamps}, {"max_per_timestamp", at.MostAtOnce}, {"grid_ms", grid},
		{"first_ms", number(at.First)}, {"last_ms", number(at.Last)},
		{"requests", at.Requests},   // rows with a timestamp
		{"backwards", at.Backwards}, // rows before the row above
		{"dispersion_1s", numberOf(at.Dispersion1s)}, {"dispersion_60s", numberOf(at.Dispersion60s)},
	}
}

func sessionsJSON(s *analyze.Sessions) any {
	if s == nil {
		return nil
	}
	return object{
		{"inferred", s.Inferred}, {"sessions", s.Sessions}, {"multi_turn", s.MultiTurn}, {"requests", s.Requests},
		{"turns", sampleJSON(s.Turns)}, {"gap_ms", sampleJSON(s.Gap)}, {"delay_ms", sampleJSON(s.Delay)}, {"growth", sampleJSON(s.Growth)},
	}
}

// reuseJSON has the time, the requests, and the different blocks since a block's
// last use, itself included: the LRU cache that would have held it.
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
	return object{{"time_ms", sampleJSON(p.Reuse.Time)}, {"requests", sampleJSON(p.Reuse.Requests)}, {"blocks", blocks}}
}

func sharingJSON(p *analyze.Prefix) any {
	if p == nil {
		return nil
	}
	var roots, popular []object
	for _, r := range p.Roots.Top {
		roots = append(roots, object{{"id", r.ID}, {"requests", r.Requests}, {"blocks", r.ChainBlocks}, {"tokens", r.ChainTokens}})
	}
	for _, b := range p.Popularity.Top {
		popular = append(popular, object{{"id", b.ID}, {"uses", b.Uses}, {"depth", b.Depth}})
	}
	z := p.Popularity.Zipf
	return object{
		{"roots_distinct", p.Roots.Distinct}, {"roots_shared", p.Roots.Shared}, {"root_requests", p.Roots.Requests},
		{"roots", roots}, {"popular", popular},
		{"zipf_exponent", numberOr(z.Value.Exponent, z.Set)}, {"zipf_r2", numberOr(z.Value.R2, z.Set)},
		{"tree_nodes", p.Tree.Nodes}, {"tree_leaves", p.Tree.Leaves}, {"tree_forks", p.Tree.Forks}, {"leaf_depth", sampleJSON(p.Tree.LeafDepth)},
	}
}

func concurrencyJSON(s *Service, timed bool) any {
	if s == nil || !timed {
		return nil
	}
	return object{{"ttft_ms", number(s.TTFT)}, {"tpot_ms", number(s.TPOT)}, {"little", numberOf(s.Little)}, {"mean", numberOf(s.Mean)}, {"peak", s.Peak}}
}

// sampleJSON is null for no values.
func sampleJSON(d stats.Sample) any {
	if d.Count == 0 {
		return nil
	}
	o := object{{"count", d.Count}, {"mean", number(d.Mean)}, {"std", number(d.Std)}, {"min", number(d.Min)}}
	for _, p := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99} {
		o = append(o, field{"p" + doc.Plain(p), number(d.Quantile(p / 100))})
	}
	return append(o, field{"p99_9", number(d.Quantile(0.999))}, field{"max", number(d.Max)}, field{"sum", number(d.Sum)})
}

// lengthJSON is a sample with its histogram, which has one edge more than counts.
// A count is of the values from its lower edge up to, and but for the last
// without, its upper one.
func lengthJSON(d stats.Sample) any {
	if d.Count == 0 {
		return nil
	}
	bins := binsOf(d)
	edges := make([]number, len(bins.Edges))
	for i, edge := range bins.Edges {
		edges[i] = number(edge)
	}
	// log: columns are equally wide on a log axis
	histogram := object{{"log", bins.Log}, {"edges", edges}, {"counts", d.Histogram(bins)}}
	return append(sampleJSON(d).(object), field{"histogram", histogram})
}
