package report

import (
	"moontide/analyze/report/doc"
	"moontide/trace"
)

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
