package report

import (
	"moontide/analyze/cache"
	"moontide/trace"
)

type cacheJSON struct {
	Policy         string  `json:"policy"`
	CapacityBlocks int     `json:"capacity_blocks"`
	CapacityTokens int     `json:"capacity_tokens"`
	CapacityBytes  *number `json:"capacity_bytes"`
	BlockHitRate   number  `json:"block_hit_rate"`
	TokenHitRate   *number `json:"token_hit_rate"`
}

type smallestJSON struct {
	Share          number  `json:"share"` // of the infinite token hit rate
	CapacityBlocks int     `json:"capacity_blocks"`
	CapacityTokens int     `json:"capacity_tokens"`
	CapacityBytes  *number `json:"capacity_bytes"`
}

type fleetJSON struct {
	Routing        string  `json:"routing"`
	Workers        int     `json:"workers"`
	CapacityBlocks int     `json:"capacity_blocks"` // of each worker
	BlockHitRate   number  `json:"block_hit_rate"`
	TokenHitRate   *number `json:"token_hit_rate"`
}

func (c *Cache) policies() []cacheJSON {
	var out []cacheJSON
	for _, p := range c.Points {
		r := p.Hits.Rates()
		out = append(out, cacheJSON{string(p.Policy), p.Capacity, p.Capacity * c.BlockSize, c.bytesJSON(p.Capacity), number(r.Block), numberOf(r.Token)})
	}
	return out
}

func (c *Cache) smallest() []smallestJSON {
	if c.Curve.Infinite().HitTokens == 0 {
		return nil // no share of nothing
	}
	var out []smallestJSON
	for _, share := range reached {
		n := c.Curve.SmallestByToken(share)
		out = append(out, smallestJSON{number(share), n, n * c.BlockSize, c.bytesJSON(n)})
	}
	return out
}

func (c *Cache) fleets() []fleetJSON {
	var out []fleetJSON
	for _, f := range c.Fleets {
		f.each(func(name string, workers, capacity int, h cache.Hits) {
			r := h.Rates()
			out = append(out, fleetJSON{name, workers, capacity, number(r.Block), numberOf(r.Token)})
		})
	}
	return out
}

// Single caches beside the workers: of one worker's size, and of all together.
const (
	sharedSingle = "shared-single"
	sharedTotal  = "shared-total"
)

// each tells what the workers hit by each routing, between one cache of a
// worker's size and one of all together.
func (f FleetPoint) each(tell func(name string, workers, capacity int, h cache.Hits)) {
	tell(sharedSingle, 1, f.Capacity, f.SharedSingle)
	for _, routed := range f.Routed {
		tell(string(routed.Routing), f.Workers, f.Capacity, routed.Hits)
	}
	tell(sharedTotal, 1, f.Capacity*f.Workers, f.SharedTotal)
}

func (c *Cache) bytesJSON(blocks int) *number {
	if c.BytesPerToken == 0 {
		return nil
	}
	return numberOf(trace.Some(float64(blocks) * float64(c.BlockSize) * c.BytesPerToken))
}
