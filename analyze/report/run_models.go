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
		mix := "-"
		if share := r.configuredShare(g.Name); share.Set {
			mix = doc.Fixed(100*share.Value, 1) + " %"
		}
		cells := []string{g.Name, doc.Int(g.Sent), doc.Fixed(100*g.Share, 1) + " %", mix, doc.Int(g.Failed)}
		t.Add(append(cells, medianAndP99(g.TTFT, g.TPOT)...)...)
	}
	s.Table(t)
	if more := len(groups) - most; more > 0 {
		s.Text(fmt.Sprintf("%s more: see the summary as JSON.", doc.Count(more, "model")))
	}
}

// modelsJSON returns null unless requests name several models.
func (r Run) modelsJSON() any {
	if len(r.Result.Models) == 0 {
		return nil
	}
	return objects(r.Result.Models, func(g measure.Group) object {
		of := object{
			{"model", g.Name}, {"requests", g.Sent}, {"share", g.Share}, {"configured_share", r.configuredShare(g.Name)},
			{"completed", g.Completed}, {"failed", g.Failed},
		}
		for _, l := range []struct {
			key    string
			sample stats.Sample
		}{{"ttft", g.TTFT}, {"tpot", g.TPOT}, {"e2el", g.E2EL}} {
			of = append(of, field{"median_" + l.key + "_ms", quantileOf(l.sample, 0.5, 1)}, field{"p99_" + l.key + "_ms", quantileOf(l.sample, 0.99, 1)})
		}
		return of
	})
}
