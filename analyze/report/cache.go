package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"moontide/analyze/cache"
	"moontide/trace"
)

// Cache is what caches of some sizes and policies would hit on a trace.
type Cache struct {
	BlockSize int // tokens
	// Curve is the exact LRU curve.
	Curve *cache.Curve
	// Points are the capacities that were asked for, by policy.
	Points []CachePoint
	// BytesPerToken is the size of a token in the KV cache; 0 is not known.
	// Arithmetic shows where it comes from.
	BytesPerToken float64
	Arithmetic    string
	// Fleets are comparisons of many workers with one cache, by capacity.
	Fleets []FleetPoint
}

// CachePoint is what one policy hits at one capacity.
type CachePoint struct {
	Policy   cache.Policy
	Capacity int // blocks
	Hits     cache.Hits
}

// FleetPoint is what workers hit that have a cache of a capacity each.
type FleetPoint struct {
	cache.Fleet
	cache.Comparison
}

// reached are the shares of the infinite hit rate for which the smallest cache
// is told.
var reached = []float64{0.90, 0.95, 0.99}

func (c *Cache) describe(d *document) {
	if c == nil || c.Curve == nil || c.Curve.Infinite().Blocks == 0 {
		return
	}
	d.section("Cache size")
	d.paragraph("What a cache of a given size and policy would hit, shared by all requests: exact, in order of the trace.",
		"A request's blocks are looked up together, against what was there before it arrived.")
	t := table{columns: []string{"policy", "blocks", "tokens", "size", "block hits", "token hits"}}
	for _, p := range c.Points {
		r := p.Hits.Rates()
		t.add(string(p.Policy), grouped(p.Capacity), grouped(p.Capacity*c.BlockSize), c.bytes(p.Capacity), percent(r.Block)+" %", tokenRate(r))
	}
	all := c.Curve.Infinite().Rates()
	t.add("infinite", "", "", "", percent(all.Block)+" %", tokenRate(all))
	d.table(t)
	d.pause()
	d.paragraph("The smallest LRU cache that reaches a share of the infinite token hit rate:")
	s := table{columns: []string{"share", "blocks", "tokens", "size"}}
	for _, share := range reached {
		n := c.Curve.SmallestByToken(share)
		s.add(percent(share)+" %", grouped(n), grouped(n*c.BlockSize), c.bytes(n))
	}
	d.table(s)
	switch {
	case c.Arithmetic != "":
		d.paragraph("Sizes are those of the KV cache of " + c.Arithmetic + ".")
	case c.BytesPerToken == 0:
		d.paragraph("--kv-model or --kv-bytes-per-token gives sizes in bytes.")
	}
	c.describeFleets(d)
}

func (c *Cache) describeFleets(d *document) {
	if len(c.Fleets) == 0 {
		return
	}
	d.section("Many workers")
	d.paragraph("Each worker has an LRU cache of its own and sees only what the router sends it.",
		"One shared cache, of a worker's size and of all together, is the mark.")
	t := table{columns: []string{"routing", "workers", "blocks each", "block hits", "token hits", "most loaded"}}
	for _, f := range c.Fleets {
		line := func(name string, workers, capacity int, h cache.Hits, load string) {
			r := h.Rates()
			t.add(name, grouped(workers), grouped(capacity), percent(r.Block)+" %", tokenRate(r), load)
		}
		line("one cache, a worker's", 1, f.Capacity, f.SharedSingle, "")
		for _, routed := range f.Routed {
			line(string(routed.Routing), f.Workers, f.Capacity, routed.Hits, mostLoaded(routed))
		}
		line("one cache, all together", 1, f.Capacity*f.Workers, f.SharedTotal, "")
	}
	d.table(t)
	d.paragraph("Most loaded is the prompt tokens of the busiest worker over the mean.")
}

// mostLoaded is the load of the worker with the most tokens over the mean.
func mostLoaded(r cache.Routed) string {
	most := 0
	for _, w := range r.Workers {
		most = max(most, w.Tokens)
	}
	if r.Hits.Tokens == 0 {
		return absent
	}
	return decimals(float64(most)*float64(len(r.Workers))/float64(r.Hits.Tokens), 2) + "x"
}

func tokenRate(r cache.Rates) string { return optionalPercent(r.Token) + " %" }

// bytes is the size of a number of blocks in GiB.
func (c *Cache) bytes(blocks int) string {
	if c.BytesPerToken == 0 {
		return absent
	}
	return decimals(float64(blocks)*float64(c.BlockSize)*c.BytesPerToken/(1<<30), 2) + " GiB"
}

// curvePoints is how many points of the LRU curve a file or a figure gets.
const curvePoints = 400

// CSV writes the curves as one table: the LRU curve at capacities from 1 block
// to the one from which on nothing more is hit, then the other policies at the
// capacities that were asked for. The errors are those of w.
func (c *Cache) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"policy", "capacity_blocks", "capacity_tokens", "block_hit_rate", "token_hit_rate"})
	line := func(policy cache.Policy, capacity int, h cache.Hits) {
		r := h.Rates()
		token := ""
		if r.Token.Set {
			token = strconv.FormatFloat(r.Token.Value, 'f', -1, 64)
		}
		out.Write([]string{string(policy), strconv.Itoa(capacity), strconv.Itoa(capacity * c.BlockSize), strconv.FormatFloat(r.Block, 'f', -1, 64), token})
	}
	for _, capacity := range c.Curve.Spaced(curvePoints) {
		line(cache.LRU, capacity, c.Curve.At(capacity))
	}
	for _, p := range c.Points {
		if p.Policy != cache.LRU {
			line(p.Policy, p.Capacity, p.Hits)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing curves: %w", err)
	}
	return nil
}

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
		line := func(name string, workers, capacity int, h cache.Hits) {
			r := h.Rates()
			out = append(out, fleetJSON{name, workers, capacity, number(r.Block), numberOf(r.Token)})
		}
		line("shared-single", 1, f.Capacity, f.SharedSingle)
		for _, routed := range f.Routed {
			line(string(routed.Routing), f.Workers, f.Capacity, routed.Hits)
		}
		line("shared-total", 1, f.Capacity*f.Workers, f.SharedTotal)
	}
	return out
}

func (c *Cache) bytesJSON(blocks int) *number {
	if c.BytesPerToken == 0 {
		return nil
	}
	return numberOf(trace.Some(float64(blocks) * float64(c.BlockSize) * c.BytesPerToken))
}
