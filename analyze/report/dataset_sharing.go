package report

import (
	"strconv"

	"moontide/analyze"
	"moontide/trace"
	"moontide/trace/stats"
)

func datasetSharing(d *document, a *analyze.Analysis, c *Cache) {
	p := a.Prefix
	if p == nil {
		return
	}
	d.section("Sharing")
	d.row("Requests with a shared root", grouped(p.Roots.Requests), "", share(p.Roots.Requests, p.Requests))
	d.row("Shared roots", grouped(p.Roots.Shared), "", "of "+counted(p.Roots.Distinct, "first block"))
	if z := p.Popularity.Zipf; z.Set {
		d.row("Zipf exponent of the popularity", decimals(z.Value.Exponent, 3), "", "R2 "+decimals(z.Value.R2, 3))
	}
	why := "no block is used again"
	if a.Arrivals == nil {
		why = "no row has a timestamp"
	}
	median, p90 := secondsOf(p.Reuse.Time, 0.5), secondsOf(p.Reuse.Time, 0.9)
	d.row("Reuse interval, median", optional(median, 3), "s", noteOr(median, "since the last use", why))
	d.row("Reuse interval, p90", optional(p90, 3), "s", noteOr(p90, "", why))
	if c.known() && p.HitBlocks > 0 {
		d.row("Reuse distance, median", grouped(c.Curve.SmallestByBlock(.5)), "blocks", "different ones since the last use")
		d.row("Reuse distance, p90", grouped(c.Curve.SmallestByBlock(.9)), "blocks", "an LRU cache that size keeps it")
	}
	d.row("Prefix tree, leaves", grouped(p.Tree.Leaves), "", "of "+counted(p.Tree.Nodes, "block"))
	d.row("Prefix tree, forks", grouped(p.Tree.Forks), "", "blocks with 2+ next")
	d.row("Prefix tree, depth of a leaf", decimals(p.Tree.LeafDepth.Mean, 1), "blocks", "up to "+decimals(p.Tree.LeafDepth.Max, 0))
	if len(p.Roots.Top) > 0 {
		d.pause()
		t := table{columns: []string{"shared root (first block)", "requests", "share", "common blocks", "common tokens"}}
		for _, r := range firstOf(p.Roots.Top, 5) {
			t.add(strconv.FormatUint(r.ID, 10), grouped(r.Requests), share(r.Requests, p.Requests), grouped(r.ChainBlocks), grouped(r.ChainTokens))
		}
		d.table(t)
	}
	if len(p.Popularity.Top) > 0 {
		d.pause()
		t := table{columns: []string{"popular block", "uses", "depth"}}
		for _, b := range firstOf(p.Popularity.Top, 5) {
			t.add(strconv.FormatUint(b.ID, 10), grouped(b.Uses), grouped(b.Depth))
		}
		d.table(t)
	}
}

func firstOf[T any](all []T, n int) []T { return all[:min(n, len(all))] }

// secondsOf is a quantile of times in ms, absent where there are none.
func secondsOf(d stats.Sample, p float64) trace.Opt[float64] {
	return trace.Opt[float64]{Value: d.Quantile(p) / 1000, Set: d.Count > 0}
}

func datasetArrivals(d *document, a *analyze.Analysis) {
	at := a.Arrivals
	if at == nil {
		return
	}
	d.section("Arrivals")
	d.row("Peak within 1 s", grouped(at.Peak1s), "", "requests")
	d.row("Peak within 60 s", grouped(at.Peak60s), "", "requests")
	d.row("Index of dispersion, 1 s", optional(at.Dispersion1s, 2), "", noteOr(at.Dispersion1s, "1: Poisson, >1: bursts", "needs two such windows"))
	d.row("Index of dispersion, 60 s", optional(at.Dispersion60s, 2), "", noteOr(at.Dispersion60s, "", "needs two such windows"))
	if g := at.Grid; g != nil {
		d.row("Time grid", decimals(g.Step, 3), "ms", percent(g.Share)+" % on it")
		d.paragraph(gridWords(at))
	}
}

func datasetSessions(d *document, a *analyze.Analysis) {
	s := a.Sessions
	if s == nil {
		return
	}
	title, how := "Sessions", "session_id"
	if s.Inferred {
		title, how = "Sessions (inferred from block ids)", "inferred"
	}
	d.section(title)
	if s.Inferred {
		d.paragraph("A request is the next turn of an earlier one whose whole prompt it extends. A session is a first turn and all that follow it.")
	}
	d.row("Sessions", grouped(s.Sessions), "", how)
	d.row("Sessions of several turns", grouped(s.MultiTurn), "", share(s.MultiTurn, s.Sessions))
	d.row("Turns, mean", decimals(s.Turns.Mean, 2), "", "up to "+decimals(s.Turns.Max, 0))
	why := "no turn after a first"
	if s.MultiTurn > 0 {
		why = "turns have no times"
	}
	gap, delay := secondsOf(s.Gap, 0.5), secondsOf(s.Delay, 0.5)
	growth := trace.Opt[float64]{Value: s.Growth.Quantile(0.5), Set: s.Growth.Count > 0}
	d.row("Arrival to next turn, median", optional(gap, 3), "s", noteOr(gap, "answer and think time", why))
	d.row("Think time stated, median", optional(delay, 3), "s", noteOr(delay, "delay", "no later turn has one"))
	d.row("Growth of a prompt a turn, median", optional(growth, 0), "tokens", noteOr(growth, "", "no turn after a first"))
}
