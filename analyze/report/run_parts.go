package report

import (
	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/trace"
)

// partsJSON returns null unless several processes drove the run.
func partsJSON(r *measure.Result) any {
	if len(r.Parts) == 0 {
		return nil
	}
	all := []any{}
	for _, p := range r.Parts {
		keys := map[string]any{
			"name": p.Name, "host": p.Run.Part.Host, "rows": p.Run.Rows, "sent": p.Run.Sent,
			"clock_offset_ms":   p.OffsetMS,    // clock of part 1 minus that of the part, at the start
			"clock_bound_ms":    p.BoundMS,     // largest error of it during the run
			"started_late_ms":   p.StartedLate, // after the agreed start
			"completed":         nil,
			"failed":            nil,
			"median_ttft_ms":    nil,
			"p99_client_lag_ms": nil,
			"verdict":           nil, // of the part by itself
			"evidence":          nil,
		}
		if of := p.Result; of != nil {
			keys["completed"], keys["failed"] = of.Completed, of.Failed
			keys["median_ttft_ms"], keys["p99_client_lag_ms"] = quantileOf(of.TTFT, 0.5, 1), quantileOf(of.ClientLag, 0.99, 1)
			keys["verdict"], keys["evidence"] = of.Verdict.Level.String(), evidenceJSON(of.Verdict)
		}
		all = append(all, jsonObject(keys))
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
		cells := []string{p.Name, doc.Absent, doc.Int(p.Run.Rows), doc.Absent, doc.Absent, doc.Absent, doc.Absent}
		if of := p.Result; of != nil {
			cells = []string{
				p.Name, of.Verdict.Level.String(), doc.Int(p.Run.Rows), doc.Int(of.Completed), doc.Int(of.Failed),
				doc.FixedOr(quantileOf(of.TTFT, 0.5, 1), 2), doc.FixedOr(quantileOf(of.ClientLag, 0.99, 1), 2),
			}
			for _, e := range of.Verdict.Evidence {
				evidence.Add(p.Name, e.Level.String(), e.Text)
			}
		}
		drift := trace.Opt[float64]{Value: 1e6 * p.Run.Part.Clock.Drift(), Set: p.BoundMS.Set}
		parts.Add(append(cells, doc.FixedOr(p.StartedLate, 3), doc.FixedOr(p.OffsetMS, 3), doc.FixedOr(p.BoundMS, 3), doc.FixedOr(drift, 1))...)
	}
	s.Table(parts)
	s.Table(evidence)
}
