package report

import (
	"fmt"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/replay/bench"
	"moontide/trace"
	"moontide/trace/stats"
)

// The interval that is shown for uncertain values.
const lowShare, highShare = 0.05, 0.95

// interval returns the interval of a metric over the draws of a prediction.
func (p Plan) interval(r *bench.Prediction, metric int) (low, high trace.Opt[float64]) {
	var values []float64
	for _, f := range r.Drawn {
		if v := f.Values[metric]; v.Set {
			values = append(values, v.Value)
		}
	}
	if len(values) == 0 {
		return low, high
	}
	of := stats.Of(values)
	return trace.Some(of.Quantile(lowShare)), trace.Some(of.Quantile(highShare))
}

// addUncertainty adds a table of intervals, unless nothing was drawn.
func (p Plan) addUncertainty(d *doc.Document) {
	t := doc.Table{Columns: []string{"Deployment"}, Left: 1}
	if len(p.Gates) > 0 {
		t.Columns = append(t.Columns, "Pass")
	}
	for _, m := range p.Metrics {
		t.Columns = append(t.Columns, planHeading(m))
	}
	draws := 0
	for i := range p.Predictions {
		r := &p.Predictions[i]
		if len(r.Drawn) == 0 {
			continue
		}
		draws = len(r.Drawn)
		cells := []string{markOf(r)}
		if len(p.Gates) > 0 {
			cells = append(cells, fmt.Sprintf("%d of %d", drawsMet(r), draws))
		}
		for k, m := range p.Metrics {
			low, high := p.interval(r, k)
			cells = append(cells, between(planCell(m, low), planCell(m, high)))
		}
		t.Add(cells...)
	}
	if draws == 0 {
		return
	}
	s := d.Section("Uncertainty of the fit")
	s.Text(fmt.Sprintf("From the 5th to the 95th percentile of %s with costs drawn from the fit's intervals.", doc.Count(draws, "engine")))
	s.Table(t)
}

func drawsMet(r *bench.Prediction) (met int) {
	for _, f := range r.Drawn {
		if f.Met {
			met++
		}
	}
	return met
}

// between joins two values, without repeating their unit.
func between(low, high string) string {
	number, unit, _ := strings.Cut(low, " ")
	switch {
	case low == high:
		return low
	case unit != "" && strings.HasSuffix(high, " "+unit):
		return number + "–" + high
	}
	return low + "–" + high
}
