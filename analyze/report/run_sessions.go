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
	s.Row("Completed", doc.Int(of.Completed), "sessions", fmt.Sprintf("of %s that ended", doc.Int(of.Ended)))
	for _, row := range []struct {
		name, note string
		n          int
	}{
		{"Failed", "a request failed", of.Failed},
		{"Abandoned", "the client closed a request", of.Abandoned},
		{"Outgrew the context", "the model has no room for the next prompt", of.Cut.CutByContext},
		{"Cut by turns", "reached the limit of turns", of.Cut.CutByTurns},
		{"Cut by time", "reached the limit of their duration", of.Cut.CutByTime},
		{"Unfinished", "the run ended before", of.Cut.Unfinished},
	} {
		if row.n > 0 {
			s.Row(row.name, doc.Int(row.n), "sessions", row.note)
		}
	}
	s.Row("Per hour", doc.FixedOr(of.PerHour, 1), "sessions", "completed")
	if d := of.Duration; d.Count > 0 {
		seconds := func(x float64) string { return doc.Duration(1000 * x) }
		s.Row("Duration", seconds(d.Mean), "", fmt.Sprintf("mean; p50 %s, p90 %s, p99 %s; first request sent to last done", seconds(d.Quantile(0.5)), seconds(d.Quantile(0.9)), seconds(d.Quantile(0.99))))
		t := of.Turns
		s.Row("Turns", doc.Fixed(t.Mean, 1), "", fmt.Sprintf("mean; p50 %s, p99 %s, max %s", doc.Fixed(t.Quantile(0.5), 0), doc.Fixed(t.Quantile(0.99), 0), doc.Fixed(t.Max, 0)))
	}
	r.addTurns(s)
	if len(of.ByTurn) > 1 {
		s = d.Section("By turn of the session")
		addTurnTables(s, "turn", of.ByTurn)
		for _, f := range turnFigures(of) {
			s.Figure(f)
		}
		addTurnTables(d.Section("By context length"), "ISL", of.ByISL)
	}
}

// addTurnTables adds the latencies of groups and, if the server reported any, their
// cached tokens.
func addTurnTables(s *doc.Section, what string, groups []run.TurnGroup) {
	t := doc.Table{Columns: []string{what, "Completed", "Failed", "Mean ISL", "Median TTFT (ms)", "P99 TTFT (ms)", "Median E2EL (ms)", "P99 E2EL (ms)"}, Left: 1}
	cached := doc.Table{Columns: []string{what, "Cached tokens", "Share of input", "Predicted", "Requests as predicted"}, Left: 1}
	for _, g := range groups {
		cells := []string{g.Name, doc.Int(g.Completed), doc.Int(g.Failed), doc.Fixed(g.ISL, 0)}
		for _, l := range []stats.Sample{g.TTFT, g.E2EL} {
			for _, p := range []float64{0.5, 0.99} {
				cells = append(cells, doc.FixedOr(quantileOf(l, p, 1), 2))
			}
		}
		t.Add(cells...)
		c := g.Cached
		cells = []string{g.Name, doc.Int(c.Measured), doc.PercentOr(c.Share(c.Measured)) + " %", doc.Absent, doc.Absent}
		if c.Compared > 0 {
			cells[3], cells[4] = doc.Int(c.Predicted), fmt.Sprintf("%s of %s", doc.Int(c.Equal), doc.Int(c.Compared))
		}
		cached.Add(cells...)
	}
	s.Table(t)
	if slices.ContainsFunc(groups, func(g run.TurnGroup) bool { return g.Cached.Requests > 0 }) {
		s.Table(cached)
	}
}

// turnFigures draws TTFT, E2EL and the cached share by turn.
func turnFigures(s *run.Sessions) (figures []figure.Figure) {
	turns := s.EachTurn
	if last := len(turns) - 1; turns[last].From > run.MaxEachTurn {
		turns = turns[:last] // of several turns
	}
	if len(turns) < 2 {
		return nil
	}
	x := figure.Axis{Label: "Turn of the session"}
	line := func(name string, dashed bool, of func(g *run.TurnGroup) trace.Opt[float64]) (series figure.Series) {
		series = figure.Series{Name: name, Kind: figure.Line, Dashed: dashed}
		for i := range turns {
			if y := of(&turns[i]); y.Set {
				series.X, series.Y = append(series.X, float64(turns[i].From)), append(series.Y, y.Value)
			}
		}
		return series
	}
	latency := func(title, label string, of func(g *run.TurnGroup) stats.Sample) figure.Figure {
		f := figure.Figure{Title: title, X: x, Y: figure.Axis{Label: label, Quantity: figure.Duration}}
		for _, p := range []struct {
			name   string
			p      float64
			dashed bool
		}{{"median", 0.5, false}, {"p90", 0.9, false}, {"p99", 0.99, true}} {
			f.Series = append(f.Series, line(p.name, p.dashed, func(g *run.TurnGroup) trace.Opt[float64] { return quantileOf(of(g), p.p, 1.0/1000) }))
		}
		return f
	}
	figures = []figure.Figure{
		latency("TTFT by turn", "TTFT", func(g *run.TurnGroup) stats.Sample { return g.TTFT }),
		latency("E2EL by turn", "E2EL", func(g *run.TurnGroup) stats.Sample { return g.E2EL }),
	}
	share := figure.Figure{Title: "Cached share of prompts by turn", X: x, Y: figure.Axis{Label: "Cached", Quantity: figure.Percent, Max: new(1.0)}}
	measured := line("measured", false, func(g *run.TurnGroup) trace.Opt[float64] { return g.Cached.Share(g.Cached.Measured) })
	predicted := line("predicted", true, func(g *run.TurnGroup) trace.Opt[float64] {
		share := g.Cached.Share(g.Cached.Predicted)
		share.Set = share.Set && g.Cached.Compared > 0
		return share
	})
	for _, series := range []figure.Series{measured, predicted} {
		if len(series.X) > 0 {
			share.Series = append(share.Series, series)
		}
	}
	if len(share.Series) > 0 {
		figures = append(figures, share)
	}
	return figures
}

// addTurns adds how the prompts of later turns relate to those before them.
func (r Run) addTurns(s *doc.Section) {
	t := r.Result.Turns
	for _, row := range []struct {
		name, note string
		n          int
	}{
		{"Later turns", "whose prompt continues another", t.Later},
		{"Extend it", "begin with all of it", t.Extends},
		{"Shortened", "are not longer, as after a compaction", t.Shortened},
		{"Rewritten", "begin differently", t.Rewritten},
		{"Unknown", "the trace has no block ids to tell", t.Unknown},
		{"Lost turns", "are waited for and not in the trace", t.Lost},
		{"Real answers", "in " + doc.Count(t.Live, "prompt"), t.Answers},
		{"Shorter answers", "than in the trace; more new tokens follow", t.Shorter},
		{"Longer answers", "than in the trace; fewer new tokens follow", t.Longer},
		{"Answers cut", doc.Count(t.CutTokens, "token") + " had no room in the next prompt", t.Cut},
		{"Reasoning dropped", doc.Count(t.DroppedTokens, "token") + " not in the next prompt", t.Dropped},
		{"Answers not known", "such as those before a resume: the trace's were sent", t.AnswerUnknown},
	} {
		if row.n > 0 {
			s.Row(row.name, doc.Int(row.n), "", row.note)
		}
	}
}
