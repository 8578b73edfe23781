package diff

import (
	"fmt"
	"slices"

	"moontide/analyze/run"
)

// warmSigns are the ways in which a run can start warmer than another one. Each
// returns what happened, or "".
var warmSigns = []func(r *Run) string{
	func(r *Run) string {
		for _, e := range r.Verdict.Evidence {
			if (e.Check == run.WarmCacheCheck || e.Check == run.CachedCheck) && e.Level != run.Valid {
				return e.Text
			}
		}
		return ""
	},
	func(r *Run) string {
		if r.Run.Warmup == 0 {
			return ""
		}
		return fmt.Sprintf("%d warm-up requests were sent first", r.Run.Warmup)
	},
	func(r *Run) string {
		again := 0
		for _, part := range r.Run.Resumed {
			again += part.SentAgain
		}
		if again == 0 {
			return ""
		}
		return fmt.Sprintf("%d requests were sent again when it was resumed, so the server may have had their prompts in its cache", again)
	},
}

// warmthDiffers returns the signs of a warm start that only one of two runs has.
func warmthDiffers(a, b *Run) (reasons []string) {
	for _, sign := range warmSigns {
		warm, cold, what := a, b, sign(a)
		if what == "" {
			warm, cold, what = b, a, sign(b)
		}
		if what != "" && sign(cold) == "" {
			reasons = append(reasons, fmt.Sprintf("%s started warm and %s cold: in %s, %s", warm.Name, cold.Name, warm.Name, what))
		}
	}
	return reasons
}

// samePrompts warns of a run whose server may have had its prompts in the cache from
// an earlier run of the comparison, and which does not report cached tokens.
func samePrompts(a, b []*Run) (warnings []string) {
	runs := slices.Concat(a, b)
	for i, r := range runs {
		if slices.Contains(runs[:i], r) || slices.ContainsFunc(r.requests, func(q request) bool { return q.cachedKnown }) {
			continue
		}
		info := r.Run
		earlier := slices.IndexFunc(runs, func(other *Run) bool {
			o := other.Run
			return !info.Target.Simulated && o.Target.URL == info.Target.URL && info.Prompts != "" && o.Prompts == info.Prompts &&
				!o.Ended.IsZero() && !o.Ended.After(info.Started)
		})
		if earlier >= 0 {
			warnings = append(warnings, fmt.Sprintf("%s sent the same prompts as %s to the same server, which does not report cached tokens: unless it was restarted, its cache was warm.", r.Name, runs[earlier].Name))
		}
	}
	return warnings
}
