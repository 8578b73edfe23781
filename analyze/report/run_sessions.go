package report

import (
	"fmt"
	"slices"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/trace/stats"
)

// sessionMetrics returns the metrics of sessions if a run has any.
func (runs Runs) sessionMetrics() []measure.Metric {
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Result.Sessions != nil }) {
		return nil
	}
	return measure.SessionMetrics(runs[0].View.statistics())
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
		addTurnTables(d.Section("By context length"), "ISL", of.ByISL)
	}
}

// addTurnTables adds the latencies of groups and, if the server reported any, their
// cached tokens.
func addTurnTables(s *doc.Section, what string, groups []measure.Group) {
	columns := []string{what, "requests", "mean ISL", "TTFT p50", "p99", "TPOT p50", "p99", "E2EL p50", "p99"}
	failed := slices.ContainsFunc(groups, func(g measure.Group) bool { return g.Failed > 0 })
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
	if slices.ContainsFunc(groups, func(g measure.Group) bool { return g.Cached.Requests > 0 }) {
		s.Table(cached)
	}
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
		{"Later turns", "prompts that continue another", t.Relations.Turns()},
		{"Extending", "begin with the previous one", t.Extend},
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
