package report

import (
	"slices"

	"moontide/analyze/cache"
	"moontide/trace"
	"moontide/trace/routing"
)

// Cache is what caches of some sizes and policies would hit on a trace.
type Cache struct {
	BlockSize int // tokens
	// Curve is the exact LRU curve.
	Curve *cache.Curve
	// Asked are the capacities that were asked for, in the units of the question;
	// nil where some that fit the trace were chosen.
	Asked []cache.Capacity
	// Points are the capacities, by policy.
	Points []CachePoint
	// RoomForReuse is [cache.RoomForReuse] where Belady's bound was asked for.
	RoomForReuse trace.Opt[int] // blocks
	// BytesPerToken is the size of a token in the KV cache; 0 is not known.
	// Arithmetic shows where it comes from.
	BytesPerToken float64
	Arithmetic    string
	// Workers is how many were asked about, 0 for none. Fleets compare them with
	// one cache, by capacity.
	Workers int
	Fleets  []FleetPoint
	// SessionsInferred says that session routing went by inferred sessions.
	SessionsInferred bool
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
	if c == nil {
		return
	}
	if !c.known() {
		if c.Workers > 0 {
			d.section("Many workers")
			d.paragraph("No row has block ids (hash_ids), so what", counted(c.Workers, "worker"), "would hit is not known.")
		}
		return
	}
	d.section("Cache size")
	if c.Curve.Infinite().HitBlocks == 0 {
		d.paragraph("No prompt begins like an earlier one: no cache of any size would hit, nor would several.")
		return
	}
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
	if n := c.RoomForReuse; n.Set {
		hold := " hold"
		if n.Value == 1 {
			hold = " holds"
		}
		d.paragraph(counted(n.Value, "block")+hold+" everything that is still to be reused, with the block in use:",
			"from there on Belady's bound is the hit rate of the infinite cache.",
			"It may get there a block earlier, for it need not let in what is never used again.")
		d.pause()
	}
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

// Sizes are the capacities of the points, in tokens: the same room at any block
// size.
func (c *Cache) Sizes() []cache.Capacity {
	var sizes []cache.Capacity
	for _, p := range c.Points {
		size := cache.Capacity{Amount: float64(p.Capacity * c.BlockSize), Unit: cache.Tokens}
		if !slices.Contains(sizes, size) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// known reports whether the trace has blocks, without which nothing can be told.
func (c *Cache) known() bool { return c != nil && c.Curve != nil && c.Curve.Infinite().Blocks > 0 }

// randomIsOneDraw keeps readers from reading much into its last digits.
const randomIsOneDraw = "Random routing is one draw, the same each time: another would hit a little more or less."

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
	if slices.ContainsFunc(c.Fleets[0].Routed, func(r cache.Routed) bool { return r.Routing == routing.Random }) {
		d.paragraph(randomIsOneDraw)
	}
	if c.SessionsInferred {
		d.paragraph("The trace names no sessions: session routing goes by the inferred ones, whose requests extend each other's prompts.")
	}
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
