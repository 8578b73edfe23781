package report

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

func (c *Cache) policies() (list []cacheJSON) {
	for _, p := range c.Points {
		r := p.Hits.Rates()
		list = append(list, cacheJSON{string(p.Policy), p.Capacity, p.Capacity * c.BlockSize, numberOf(c.bytes(p.Capacity)), number(r.Block), numberOf(r.Token)})
	}
	return list
}

func (c *Cache) smallest() (list []smallestJSON) {
	if c.Curve.Infinite().HitTokens == 0 {
		return nil // no share of nothing
	}
	for _, share := range infiniteShares {
		n := c.Curve.SmallestByToken(share)
		list = append(list, smallestJSON{number(share), n, n * c.BlockSize, numberOf(c.bytes(n))})
	}
	return list
}

func (c *Cache) fleets() (list []fleetJSON) {
	for _, f := range c.Fleets {
		for _, h := range f.all() {
			r := h.hits.Rates()
			list = append(list, fleetJSON{h.name, h.workers, h.capacity, number(r.Block), numberOf(r.Token)})
		}
	}
	return list
}
