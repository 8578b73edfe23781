package report

import "moontide/analyze"

type lengthsJSON struct {
	Ratio    *number `json:"isl_per_osl"`
	Pearson  *number `json:"pearson"`
	Spearman *number `json:"spearman"`
}

type reuseJSON struct {
	TimeMs   *distJSON `json:"time_ms"`  // since a block's last use
	Requests *distJSON `json:"requests"` // since the request of its last use
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

func reuseOf(p *analyze.Prefix) *reuseJSON {
	return &reuseJSON{distOf(p.Reuse.Time), distOf(p.Reuse.Requests)}
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
