package report

import (
	"slices"

	"moontide/analyze/cache"
	"moontide/analyze/report/doc"
	"moontide/trace"
	"moontide/trace/routing"
)

// Cache holds the hits of caches of several sizes and policies on a trace.
type Cache struct{ cache.Results }

// Single caches for comparison: of one worker's size, and of all together.
const (
	sharedSingle = "shared-single"
	sharedTotal  = "shared-total"
)

type fleetHits struct {
	name              string
	workers, capacity int
	hits              cache.Hits
	load              string // of the busiest worker divided by the mean
}

// fleetHitsOf returns the hits under each routing, between those of the single caches.
func fleetHitsOf(f cache.FleetPoint) []fleetHits {
	list := []fleetHits{{sharedSingle, 1, f.Capacity, f.SharedSingle, ""}}
	for _, r := range f.Routed {
		list = append(list, fleetHits{string(r.Routing), f.Workers, f.Capacity, r.Hits, busiest(r)})
	}
	return append(list, fleetHits{sharedTotal, 1, f.Capacity * f.Workers, f.SharedTotal, ""})
}

// infiniteShares lists shares of the infinite hit rate.
var infiniteShares = []float64{0.90, 0.95, 0.99}

// curvePoints is the maximum number of LRU curve points.
const curvePoints = 400

// Sizes returns the capacities of the points in tokens.
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

// known reports whether the trace has blocks.
func (c *Cache) known() bool { return c != nil && c.Curve != nil && c.Curve.Infinite().Blocks > 0 }

func (c *Cache) addTo(to *doc.Document) {
	if c == nil {
		return
	}
	if !c.known() {
		if c.Workers > 0 {
			to.Section("Workers").Text("No row has block ids (hash_ids): the hits of", doc.Count(c.Workers, "worker"), "are unknown.")
		}
		return
	}
	s := to.Section("Cache size")
	if c.Curve.Infinite().HitBlocks == 0 {
		s.Text("No two prompts share a prefix: no cache of any size would hit.")
		return
	}
	s.Text("Hits of one cache shared by all requests: exact, in the order of the trace.", "All blocks of a request are looked up before any is inserted.")
	s.Table(c.pointTable())
	if n := c.RoomForReuse; n.Set {
		hold := "hold"
		if n.Value == 1 {
			hold = "holds"
		}
		s.Text(doc.Count(n.Value, "block"), hold, "everything that is still to be reused, including the block in use:",
			"from this size on Belady's bound is the infinite hit rate.",
			"It may get there a block earlier, since it need not insert blocks that are never used again.")
	}
	s.Text("Smallest LRU cache for a share of the infinite token hit rate:")
	smallest := doc.Table{Columns: []string{"share", "blocks", "tokens", "size"}, Left: 1}
	for _, share := range infiniteShares {
		n := c.Curve.SmallestByToken(share)
		smallest.Add(doc.Percent(share)+" %", doc.Int(n), doc.Int(n*c.BlockSize), c.gib(n))
	}
	s.Table(smallest)
	if c.BytesPerToken == 0 {
		s.Text("Set the KV cache bytes per token to see sizes in bytes.")
	}
	c.addFleets(to)
}

func (c *Cache) pointTable() doc.Table {
	t := doc.Table{Columns: []string{"policy", "blocks", "tokens", "size", "block hits", "token hits"}, Left: 1}
	for _, p := range c.Points {
		r := p.Hits.Rates()
		t.Add(string(p.Policy), doc.Int(p.Capacity), doc.Int(p.Capacity*c.BlockSize), c.gib(p.Capacity), doc.Percent(r.Block)+" %", doc.PercentOr(r.Token)+" %")
	}
	all := c.Curve.Infinite().Rates()
	t.Add("infinite", "", "", "", doc.Percent(all.Block)+" %", doc.PercentOr(all.Token)+" %")
	return t
}

const randomIsOneDraw = "Random routing is one draw with a fixed seed; hit rates of other seeds differ slightly."

func (c *Cache) addFleets(to *doc.Document) {
	if len(c.Fleets) == 0 {
		return
	}
	s := to.Section("Workers")
	s.Text("Each worker has its own LRU cache and sees only the requests routed to it.",
		"For comparison: one shared cache, with the size of one worker's cache or of all together.")
	t := doc.Table{Columns: []string{"routing", "workers", "blocks each", "block hits", "token hits", "most loaded"}, Left: 1}
	names := map[string]string{sharedSingle: "one cache, a worker's", sharedTotal: "one cache, all together"}
	for _, f := range c.Fleets {
		for _, h := range fleetHitsOf(f) {
			name, r := h.name, h.hits.Rates()
			if shared, ok := names[name]; ok {
				name = shared
			}
			t.Add(name, doc.Int(h.workers), doc.Int(h.capacity), doc.Percent(r.Block)+" %", doc.PercentOr(r.Token)+" %", h.load)
		}
	}
	s.Table(t)
	s.Text("Most loaded: prompt tokens of the busiest worker over the mean.")
	if slices.ContainsFunc(c.Fleets[0].Routed, func(r cache.Routed) bool { return r.Routing == routing.Random }) {
		s.Text(randomIsOneDraw)
	}
	if c.SessionsInferred {
		s.Text("The trace has no session ids: session routing uses sessions inferred from prompts that extend each other.")
	}
}

func busiest(r cache.Routed) string {
	most := 0
	for _, w := range r.Workers {
		most = max(most, w.Tokens)
	}
	if r.Hits.Tokens == 0 {
		return doc.Absent
	}
	return doc.Fixed(float64(most)*float64(len(r.Workers))/float64(r.Hits.Tokens), 2) + "x"
}

func (c *Cache) bytes(blocks int) trace.Opt[float64] {
	return trace.Opt[float64]{Value: float64(blocks) * float64(c.BlockSize) * c.BytesPerToken, Set: c.BytesPerToken > 0}
}

func (c *Cache) gib(blocks int) string {
	if size := c.bytes(blocks); size.Set {
		return doc.Fixed(size.Value/(1<<30), 2) + " GiB"
	}
	return doc.Absent
}

// Curves returns the Document with hit rates against cache sizes as its Data: of
// each policy at the requested capacities, by default the whole LRU curve, then of
// each worker routing.
func (d Trace) Curves() *doc.Document {
	to := d.Document()
	to.Data = d.Cache.curves()
	return to
}

func (c *Cache) curves() (data doc.Data) {
	data.Columns = []string{"policy", "capacity_blocks", "capacity_tokens", "block_hit_rate", "token_hit_rate", "capacity_bytes", "workers", "routing"}
	add := func(policy cache.Policy, capacity int, h cache.Hits, workers int, routing string) {
		r := h.Rates()
		data.Add(policy, capacity, capacity*c.BlockSize, r.Block, r.Token, c.bytes(capacity), workers, routing)
	}
	points := c.Points
	if isLRU := func(p cache.Point) bool { return p.Policy == cache.LRU }; c.Capacities == nil && slices.ContainsFunc(points, isLRU) {
		points = slices.DeleteFunc(slices.Clone(points), isLRU)
		for _, capacity := range c.Curve.Spaced(curvePoints) {
			add(cache.LRU, capacity, c.Curve.At(capacity), 1, "")
		}
	}
	for _, p := range points {
		add(p.Policy, p.Capacity, p.Hits, 1, "")
	}
	for _, f := range c.Fleets {
		for _, h := range fleetHitsOf(f) {
			add(cache.LRU, h.capacity, h.hits, h.workers, h.name)
		}
	}
	return data
}
