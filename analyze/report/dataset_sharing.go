package report

import (
	"fmt"
	"strconv"

	"moontide/analyze"
	"moontide/trace"
)

func datasetSharing(d *document, a *analyze.Analysis) {
	p := a.Prefix
	if p == nil {
		return
	}
	d.section("Sharing")
	d.row("Requests with a shared root", grouped(p.Roots.Requests), "", share(p.Roots.Requests, p.Requests))
	d.row("Shared roots", grouped(p.Roots.Shared), "", "of "+grouped(p.Roots.Distinct)+" first blocks")
	if z := p.Popularity.Zipf; z.Set {
		d.row("Zipf exponent of the popularity", decimals(z.Value.Exponent, 3), "", "R2 "+decimals(z.Value.R2, 3))
	}
	d.row("Reuse interval, median", times(p.Reuse.Time.Count, p.Reuse.Time.Quantile(0.5)), "s", "since the last use")
	d.row("Reuse interval, p90", times(p.Reuse.Time.Count, p.Reuse.Time.Quantile(0.9)), "s", "")
	d.row("Prefix tree, leaves", grouped(p.Tree.Leaves), "", "of "+grouped(p.Tree.Nodes)+" blocks")
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

// times is milliseconds in seconds, absent where there are no values.
func times(count int, ms float64) string {
	if count == 0 {
		return absent
	}
	return decimals(ms/1000, 3)
}

func datasetArrivals(d *document, a *analyze.Analysis) {
	at := a.Arrivals
	if at == nil {
		return
	}
	d.section("Arrivals")
	d.row("Peak within 1 s", grouped(at.Peak1s), "", "requests")
	d.row("Peak within 60 s", grouped(at.Peak60s), "", "requests")
	d.row("Index of dispersion, 1 s", optional(at.Dispersion1s, 2), "", "1: Poisson, >1: bursts")
	d.row("Index of dispersion, 60 s", optional(at.Dispersion60s, 2), "", "")
	if g := at.Grid; g != nil {
		d.row("Time grid", decimals(g.Step, 3), "ms", percent(g.OnGrid)+" % on it")
		if g.Step > 1 {
			d.paragraph(fmt.Sprintf("All arrivals lie on a grid of %s ms: the clock of the recording, not the traffic.", decimals(g.Step, 0)),
				"A replay at the original timing sends all requests of a step at once, in bursts that production never saw.")
		}
	}
}

func datasetSessions(d *document, a *analyze.Analysis) {
	s := a.Sessions
	if s == nil {
		return
	}
	title, how := "Sessions", "session_id"
	if s.Inferred {
		title, how = "Sessions (inferred from block ids)", "extends an earlier one"
	}
	d.section(title)
	d.row("Sessions", grouped(s.Sessions), "", how)
	d.row("Sessions of several turns", grouped(s.MultiTurn), "", share(s.MultiTurn, s.Sessions))
	d.row("Turns, mean", decimals(s.Turns.Mean, 2), "", "up to "+decimals(s.Turns.Max, 0))
	d.row("Arrival to next turn, median", times(s.Gap.Count, s.Gap.Quantile(0.5)), "s", "answer and think time")
	d.row("Think time stated, median", times(s.Delay.Count, s.Delay.Quantile(0.5)), "s", "delay")
	growth := trace.Opt[float64]{Value: s.Growth.Quantile(0.5), Set: s.Growth.Count > 0}
	d.row("Growth of a prompt a turn, median", optional(growth, 0), "tokens", "")
}
