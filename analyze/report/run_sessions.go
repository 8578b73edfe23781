package report

import (
	"fmt"
	"slices"

	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/trace"
	"moontide/trace/stats"
)

// sessionMetrics returns the metrics of sessions if a run has any.
func (runs Runs) sessionMetrics() []run.Metric {
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Result.Sessions != nil }) {
		return nil
	}
	return run.SessionMetrics(runs[0].View.statistics())
}

// addSessions adds the sessions, and the requests by turn and by ISL.
func (r Run) addSessions(d *doc.Document) {
	of := r.Result.Sessions
	if of == nil {
		return
	}
	s := d.Section("Sessions")
	s.Row("Completed sessions", doc.Int(of.Completed), "", fmt.Sprintf("of %s that ended", doc.Int(of.Ended)))
	s.Row("Per hour", doc.FixedOr(of.PerHour, 1), "", "completed")
	addCounts(s, []countRow{
		{"Failed", "a request failed", of.Failed},
		{"Abandoned", "the client closed a request", of.Abandoned},
		{"Outgrown", "next prompt exceeds the context length", of.Outgrown},
		{"Unfinished", "still in progress at the end", of.Unfinished},
		{"Turns cut", "not sent: session ended early", of.CutTurns},
	})
	r.addTurns(s)
	t := doc.Table{Columns: []string{"", "Mean", "Median", "P90", "P99", "Max"}, Left: 1}
	for _, row := range []struct {
		name     string
		of       stats.Sample
		decimals int
	}{{"Duration (s), first sent to last done", of.Duration, 2}, {"Requests", of.Turns, 1}} {
		if q := row.of.Quantile; row.of.Count > 0 {
			cells := []string{row.name}
			for _, x := range []float64{row.of.Mean, q(0.5), q(0.9), q(0.99), row.of.Max} {
				cells = append(cells, doc.Fixed(x, row.decimals))
			}
			t.Add(cells...)
		}
	}
	s.Table(t)
	if len(of.ByTurn) > 1 {
		s = d.Section("By turn of the session")
		s.PageOnly = true
		addTurnTables(s, "turn", of.ByTurn)
		for _, f := range turnFigures(of) {
			s.Figure(f)
		}
		addTurnTables(d.Section("By context length"), "ISL", of.ByISL)
	}
}

// addTurnTables adds the latencies of groups and, if the server reported any, their
// cached tokens.
func addTurnTables(s *doc.Section, what string, groups []run.Group) {
	columns := []string{what, "requests", "mean ISL", "TTFT p50", "p99", "TPOT p50", "p99", "E2EL p50", "p99"}
	failed := slices.ContainsFunc(groups, func(g run.Group) bool { return g.Failed > 0 })
	if failed {
		columns = slices.Insert(columns, 2, "failed")
	}
	t := doc.Table{Columns: columns, Left: 1}
	cached := doc.Table{Columns: []string{what, "cached tokens", "of input", "predicted", "requests as predicted"}, Left: 1}
	for _, g := range groups {
		cells := []string{g.Name, doc.Int(g.Completed), doc.Fixed(g.ISL, 0)}
		if failed {
			cells = slices.Insert(cells, 2, doc.Int(g.Failed))
		}
		t.Add(append(cells, medianAndP99(g.TTFT, g.TPOT, g.E2EL)...)...)
		c := g.Cached
		cells = []string{g.Name, doc.Int(c.Measured), doc.PercentOr(c.Share(c.Measured)) + " %", doc.Absent, doc.Absent}
		if c.Compared > 0 {
			cells[3], cells[4] = doc.Int(c.Predicted), fmt.Sprintf("%s of %s", doc.Int(c.Equal), doc.Int(c.Compared))
		}
		cached.Add(cells...)
	}
	s.Text("TTFT, TPOT and E2EL are in ms.")
	s.Table(t)
	if slices.ContainsFunc(groups, func(g run.Group) bool { return g.Cached.Requests > 0 }) {
		s.Table(cached)
	}
}

// turnFigures draws TTFT, E2EL and the cached share by turn, if there are several.
func turnFigures(s *run.Sessions) (figures []figure.Figure) {
	if s == nil || len(s.EachTurn) == 0 {
		return nil
	}
	turns := s.EachTurn
	if last := len(turns) - 1; turns[last].From > run.MaxEachTurn {
		turns = turns[:last] // of several turns
	}
	if len(turns) < 2 {
		return nil
	}
	x := figure.Axis{Label: "Turn of the session", Min: new(1.0)}
	line := func(name string, dashed bool, of func(g *run.Group) trace.Opt[float64]) (series figure.Series) {
		series = figure.Series{Name: name, Kind: figure.Line, Dashed: dashed}
		for i := range turns {
			if y := of(&turns[i]); y.Set {
				series.X, series.Y = append(series.X, float64(turns[i].From)), append(series.Y, y.Value)
			}
		}
		return series
	}
	latency := func(title, label string, of func(g *run.Group) stats.Sample) figure.Figure {
		f := figure.Figure{Title: title, X: x, Y: figure.Axis{Label: label, Quantity: figure.Duration}}
		for _, p := range []struct {
			name   string
			p      float64
			dashed bool
		}{{"median", 0.5, false}, {"p90", 0.9, false}, {"p99", 0.99, true}} {
			f.Series = append(f.Series, line(p.name, p.dashed, func(g *run.Group) trace.Opt[float64] { return quantileOf(of(g), p.p, 1000) }))
		}
		return f
	}
	figures = []figure.Figure{
		latency("TTFT by turn", "TTFT", func(g *run.Group) stats.Sample { return g.TTFT }),
		latency("E2EL by turn", "E2EL", func(g *run.Group) stats.Sample { return g.E2EL }),
	}
	share := figure.Figure{Title: "Cached share of prompts by turn", X: x, Y: figure.Axis{Label: "Cached", Quantity: figure.Percent, Max: new(1.0)}}
	measured := line("measured", false, func(g *run.Group) trace.Opt[float64] { return g.Cached.Share(g.Cached.Measured) })
	predicted := line("predicted", true, func(g *run.Group) trace.Opt[float64] {
		share := g.Cached.Share(g.Cached.Predicted)
		share.Set = share.Set && g.Cached.Compared > 0
		return share
	})
	if share.Series = figure.Drawn(measured, predicted); len(share.Series) > 0 {
		figures = append(figures, share)
	}
	return figures
}

// countRow is a count that is shown unless it is 0.
type countRow struct {
	name, note string
	n          int
}

func addCounts(s *doc.Section, rows []countRow) {
	for _, row := range rows {
		if row.n > 0 {
			s.Row(row.name, doc.Int(row.n), "", row.note)
		}
	}
}

// addTurns adds how the prompts of later turns relate to those before them.
func (r Run) addTurns(s *doc.Section) {
	t := r.Result.Turns
	addCounts(s, []countRow{
		{"Later turns", "prompts that continue another", t.Later},
		{"Extending", "begin with the previous one", t.Extends},
		{"Shortened", "not longer, as after compaction", t.Shortened},
		{"Rewritten", "longer, but begin differently", t.Rewritten},
		{"Unknown", "unknown, no block ids", t.Unknown},
		{"Lost turns", "waited for, but not in the trace", t.Lost},
		{"Real answers", "in " + doc.Count(t.Live, "prompt"), t.Answers},
		{"Shorter answers", "than in the trace: more new tokens", t.Shorter},
		{"Longer answers", "than in the trace: fewer new tokens", t.Longer},
		{"Answers cut", "no room for " + doc.Count(t.CutTokens, "token"), t.Cut},
		{"Without reasoning", doc.Count(t.DroppedTokens, "token") + " dropped", t.Dropped},
		{"Unknown answers", "the trace's sent instead", t.AnswerUnknown},
	})
}
