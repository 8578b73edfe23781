package report

import (
	"moontide/analyze/measure"
)

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
	statistics := []measure.Statistic{measure.Mean, measure.Median, measure.Std, measure.Min, measure.Max}
	for _, p := range []float64{50, 90, 95, 99} {
		statistics = append(statistics, measure.Percentile(p))
	}
	for _, m := range measure.SessionMetrics(statistics) {
		keys[m.Key] = m.Value(result)
	}
	return jsonObject(keys)
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
		"live":              t.Live,                                // prompts that contain a real answer
		"answers_not_known": t.AnswerUnknown,                       // later turns that have the trace's answer because the real one was not known
		"answers":           t.Answers,                             // real answers in prompts
		"answers_shorter":   t.Shorter, "answers_longer": t.Longer, // than in the trace
		"answers_cut": t.Cut, "cut_tokens": t.CutTokens, // without room in the next prompt
		"reasoning_dropped": t.Dropped, "reasoning_tokens_dropped": t.DroppedTokens,
	}
}
