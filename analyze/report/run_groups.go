package report

import (
	"fmt"
	"slices"

	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/replay/runfile"
	"moontide/trace"
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
		{"Real responses", "in " + doc.Count(t.Live, "prompt"), t.Answers},
		{"Shorter responses", "than in the trace: more new tokens", t.Shorter},
		{"Longer responses", "than in the trace: fewer new tokens", t.Longer},
		{"Responses cut", "no room for " + doc.Count(t.CutTokens, "token"), t.Cut},
		{"Without reasoning", doc.Count(t.DroppedTokens, "token") + " dropped", t.Dropped},
		{"Unknown responses", "the trace's sent instead", t.AnswerUnknown},
	})
}

// configuredShare returns the share of a model in the mix of the run.
func (r Run) configuredShare(model string) (share trace.Opt[float64]) {
	models := r.Info.Target.Models
	if i := slices.IndexFunc(models, func(m runfile.ModelShare) bool { return m.Model == model }); i >= 0 {
		share = trace.Some(models[i].Share)
	}
	return share
}

// addModels adds a table of the models, if requests name several.
func (r Run) addModels(d *doc.Document) {
	const most = 20
	groups := r.Result.Models
	if len(groups) == 0 {
		return
	}
	s := d.Section("By model")
	t := doc.Table{Columns: []string{"ms", "requests", "share", "mix", "failed", "TTFT p50", "p99", "TPOT p50", "p99"}, Left: 1}
	for _, g := range groups[:min(len(groups), most)] {
		cells := []string{g.Name, doc.Int(g.Sent), percentText(trace.Some(g.Share), 1, " %"), percentText(r.configuredShare(g.Name), 1, " %"), doc.Int(g.Failed)}
		t.Add(append(cells, medianAndP99(g.TTFT, g.TPOT)...)...)
	}
	s.Table(t)
	if more := len(groups) - most; more > 0 {
		s.Text(fmt.Sprintf("%s more: see the summary as JSON.", doc.Count(more, "model")))
	}
}

// modelsJSON returns null unless requests name several models.
func (r Run) modelsJSON() []object {
	return objects(r.Result.Models, func(g measure.Group) object {
		return object{
			{"model", g.Name}, {"requests", g.Sent}, {"share", g.Share}, {"configured_share", r.configuredShare(g.Name)}, {"completed", g.Completed}, {"failed", g.Failed},
			{"median_ttft_ms", quantileOf(g.TTFT, 0.5, 1)}, {"p99_ttft_ms", quantileOf(g.TTFT, 0.99, 1)}, {"median_tpot_ms", quantileOf(g.TPOT, 0.5, 1)},
			{"p99_tpot_ms", quantileOf(g.TPOT, 0.99, 1)}, {"median_e2el_ms", quantileOf(g.E2EL, 0.5, 1)}, {"p99_e2el_ms", quantileOf(g.E2EL, 0.99, 1)},
		}
	})
}

// runSessionsJSON returns null if the trace has no sessions. Its keys are those of the
// metrics.
func runSessionsJSON(s *measure.Sessions) any {
	if s == nil {
		return nil
	}
	keys := map[string]any{
		"requests":            s.Requests, // of sessions
		"ended_sessions":      s.Ended,
		"outgrown_sessions":   s.Outgrown,   // ended because the next prompt did not fit the model's context
		"unfinished_sessions": s.Unfinished, // not over when the run ended
		"cut_turns":           s.CutTurns,   // not sent because their session was ended early
		"by_turn":             turnGroupsJSON("turn", s.EachTurn),
		"by_isl":              turnGroupsJSON("isl", s.ByISL),
	}
	result := &measure.Result{Sessions: s}
	for _, m := range measure.SessionMetrics(withPercentiles(fiveStatistics, []float64{50, 90, 95, 99})) {
		keys[m.Key] = m.Value(result)
	}
	return keys
}

// turnGroupsJSON names the groups by their lowest turn or ISL.
func turnGroupsJSON(what string, groups []measure.Group) []object {
	return append([]object{}, objects(groups, func(g measure.Group) object {
		c := g.Cached
		known, compared := c.Requests > 0, c.Compared > 0
		return object{
			{what, g.Name}, {"from", g.From}, {"completed", g.Completed}, {"failed", g.Failed}, {"mean_isl", g.ISL},
			{"predicted_tokens", orNull(c.Predicted, compared)}, {"equal_requests", orNull(c.Equal, compared)},
			{"measured_tokens", orNull(c.Measured, known)}, {"cached_share", c.Share(c.Measured)},
			{"median_ttft_ms", quantileOf(g.TTFT, 0.5, 1)}, {"p90_ttft_ms", quantileOf(g.TTFT, 0.9, 1)}, {"p99_ttft_ms", quantileOf(g.TTFT, 0.99, 1)},
			{"median_e2el_ms", quantileOf(g.E2EL, 0.5, 1)}, {"p99_e2el_ms", quantileOf(g.E2EL, 0.99, 1)},
		}
	})...)
}

// turnsJSON returns null if no prompt is known to continue another.
func turnsJSON(r *measure.Result) any {
	t := r.Turns
	if t == (measure.Turns{}) {
		return nil
	}
	return map[string]any{
		"later":   t.Relations.Turns(), // turns whose prompt continues another: the sum of the next four
		"extends": t.Extend, "shortened": t.Shortened, "rewritten": t.Rewritten, "unknown": t.Unknown,
		"lost":              t.Lost,                                // requests that are waited for and not in the trace
		"live":              t.Live,                                // prompts that contain a real response
		"answers_not_known": t.AnswerUnknown,                       // later turns that have the response of the trace because the real one was not known
		"answers":           t.Answers,                             // real responses in prompts
		"answers_shorter":   t.Shorter, "answers_longer": t.Longer, // than in the trace
		"answers_cut": t.Cut, "cut_tokens": t.CutTokens, // without room in the next prompt
		"reasoning_dropped": t.Dropped, "reasoning_tokens_dropped": t.DroppedTokens,
	}
}

// partsJSON returns null unless several processes drove the run.
func partsJSON(r *measure.Result) (all []map[string]any) {
	for _, p := range r.Parts {
		of, known := orZero(p.Result)
		all = append(all, map[string]any{
			"name": p.Name, "host": p.Run.Part.Host, "rows": p.Run.Rows, "sent": p.Run.Sent,
			"clock_offset_ms": p.OffsetMS,    // clock of part 1 minus that of the part, at the start
			"clock_bound_ms":  p.BoundMS,     // largest error of it during the run
			"started_late_ms": p.StartedLate, // after the agreed start
			"completed":       orNull(of.Completed, known), "failed": orNull(of.Failed, known),
			"median_ttft_ms": quantileOf(of.TTFT, 0.5, 1), "p99_client_lag_ms": quantileOf(of.ClientLag, 0.99, 1),
			"verdict": orNull(of.Verdict.Level.String(), known), "evidence": orNull(verdictOf(of.Verdict).Evidence, known), // of the part by itself
		})
	}
	return all
}

// addParts adds the parts of a run of several processes, with the evidence of each.
func (r Run) addParts(d *doc.Document) {
	if len(r.Result.Parts) == 0 {
		return
	}
	s := d.DetailSection("Parts")
	parts := doc.Table{Columns: []string{"Part", "Verdict", "Rows", "Completed", "Failed", "Median TTFT (ms)", "P99 client lag (ms)", "Start off by (ms)", "Clock offset (ms)", "known within (ms)", "Clock drift (ppm)"}, Left: 2}
	evidence := doc.Table{Columns: []string{"Part", "Level", "Evidence"}, Left: doc.AllLeft}
	for _, p := range r.Result.Parts {
		cells := []string{p.Name, doc.Absent, doc.Int(p.Run.Rows), doc.Absent, doc.Absent}
		of, known := orZero(p.Result)
		if known {
			cells[1], cells[3], cells[4] = of.Verdict.Level.String(), doc.Int(of.Completed), doc.Int(of.Failed)
		}
		for _, e := range of.Verdict.Evidence {
			evidence.Add(p.Name, e.Level.String(), e.Text)
		}
		cells = append(cells, doc.FixedOr(quantileOf(of.TTFT, 0.5, 1), 2), doc.FixedOr(quantileOf(of.ClientLag, 0.99, 1), 2))
		drift := trace.Opt[float64]{Value: 1e6 * p.Run.Part.Clock.Drift(), Set: p.BoundMS.Set}
		parts.Add(append(cells, doc.FixedOr(p.StartedLate, 3), doc.FixedOr(p.OffsetMS, 3), doc.FixedOr(p.BoundMS, 3), doc.FixedOr(drift, 1))...)
	}
	s.Table(parts)
	s.Table(evidence)
}
