package report

import (
	"moontide/analyze"
)

type reuseJSON struct {
	TimeMs   *distJSON `json:"time_ms"`  // since a block's last use
	Requests *distJSON `json:"requests"` // since the request of its last use
	// Blocks are the different blocks used since its last use, itself included:
	// the LRU cache that would have held it. Null where there is no curve.
	Blocks *reuseBlocksJSON `json:"blocks"`
}

type reuseBlocksJSON struct {
	P1  int `json:"p1"`
	P10 int `json:"p10"`
	P25 int `json:"p25"`
	P50 int `json:"p50"`
	P75 int `json:"p75"`
	P90 int `json:"p90"`
	P95 int `json:"p95"`
	P99 int `json:"p99"`
	Max int `json:"max"`
}

type sharingJSON struct {
	RootsDistinct int         `json:"roots_distinct"`
	RootsShared   int         `json:"roots_shared"`
	RootRequests  int         `json:"root_requests"`
	Roots         []rootJSON  `json:"roots"`
	Popular       []blockJSON `json:"popular"`
	ZipfExponent  *number     `json:"zipf_exponent"`
	ZipfR2        *number     `json:"zipf_r2"`
	TreeNodes     int         `json:"tree_nodes"`
	TreeLeaves    int         `json:"tree_leaves"`
	TreeForks     int         `json:"tree_forks"`
	LeafDepth     *distJSON   `json:"leaf_depth"`
}

type rootJSON struct {
	ID       uint64 `json:"id"`
	Requests int    `json:"requests"`
	Blocks   int    `json:"blocks"`
	Tokens   int    `json:"tokens"`
}

type blockJSON struct {
	ID    uint64 `json:"id"`
	Uses  int    `json:"uses"`
	Depth int    `json:"depth"`
}

type sessionsJSON struct {
	Inferred  bool      `json:"inferred"`
	Sessions  int       `json:"sessions"`
	MultiTurn int       `json:"multi_turn"`
	Requests  int       `json:"requests"`
	Turns     *distJSON `json:"turns"`
	GapMs     *distJSON `json:"gap_ms"`
	DelayMs   *distJSON `json:"delay_ms"`
	Growth    *distJSON `json:"growth"`
}

type concurrencyJSON struct {
	TTFTMs number  `json:"ttft_ms"`
	TPOTMs number  `json:"tpot_ms"`
	Little *number `json:"little"`
	Mean   *number `json:"mean"`
	Peak   int     `json:"peak"`
}

func reuseOf(p *analyze.Prefix, c *Cache) *reuseJSON {
	r := &reuseJSON{TimeMs: distOf(p.Reuse.Time), Requests: distOf(p.Reuse.Requests)}
	if c.known() && p.HitBlocks > 0 {
		at := c.Curve.SmallestByBlock
		r.Blocks = &reuseBlocksJSON{at(.01), at(.1), at(.25), at(.5), at(.75), at(.9), at(.95), at(.99), at(1)}
	}
	return r
}

func sharingOf(p *analyze.Prefix) *sharingJSON {
	s := &sharingJSON{
		RootsDistinct: p.Roots.Distinct, RootsShared: p.Roots.Shared, RootRequests: p.Roots.Requests,
		TreeNodes: p.Tree.Nodes, TreeLeaves: p.Tree.Leaves, TreeForks: p.Tree.Forks, LeafDepth: distOf(p.Tree.LeafDepth),
	}
	for _, r := range p.Roots.Top {
		s.Roots = append(s.Roots, rootJSON{r.ID, r.Requests, r.ChainBlocks, r.ChainTokens})
	}
	for _, b := range p.Popularity.Top {
		s.Popular = append(s.Popular, blockJSON{b.ID, b.Uses, b.Depth})
	}
	if z := p.Popularity.Zipf; z.Set {
		s.ZipfExponent, s.ZipfR2 = new(number(z.Value.Exponent)), new(number(z.Value.R2))
	}
	return s
}

func sessionsOf(s *analyze.Sessions) *sessionsJSON {
	return &sessionsJSON{
		Inferred: s.Inferred, Sessions: s.Sessions, MultiTurn: s.MultiTurn, Requests: s.Requests,
		Turns: distOf(s.Turns), GapMs: distOf(s.Gap), DelayMs: distOf(s.Delay), Growth: distOf(s.Growth),
	}
}
