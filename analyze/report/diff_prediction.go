package report

import (
	"fmt"
	"strings"

	"moontide/analyze/diff"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/run"
	"moontide/trace"
)

// prediction shows how far the simulated side is off, and for which requests.
func (c Diff) prediction(d *doc.Document) {
	p := c.Prediction
	if p == nil {
		return
	}
	s := d.Section("Where the model is wrong")
	s.Text(c.predictedSide(), focusText(p))
	s.Table(predictionErrors(p))
	s.Table(phaseErrors(p))
	if cached := p.Cached; cached.Measured+cached.Predicted > 0 {
		s.Text(fmt.Sprintf("Cached tokens: %s measured, %s predicted. The prediction is exact for %s, too low for %s and too high for %s.",
			doc.Fixed(cached.Measured, 0), doc.Fixed(cached.Predicted, 0), doc.Count(cached.Equal, "request"), doc.Int(cached.Fewer), doc.Int(cached.More)))
	}
	s.Text("By kind of request: error of each mean, contribution of each band to the error of mean E2EL in ms, and its share of the error. Shares use the absolute errors of TTFT and decode time, so opposite errors do not cancel out.")
	for _, o := range c.Attributions {
		t := doc.Table{Columns: []string{o.By, "requests", "TTFT", "TPOT", "E2EL", "adds", "share of error"}, Left: 1}
		for _, band := range o.Bands {
			t.Add(c.predictedBand(band)...)
		}
		s.Table(t)
	}
}

func (c Diff) predictedSide() string {
	predicted, measured := "A", "B"
	if c.Prediction.OfB {
		predicted, measured = measured, predicted
	}
	return predicted + " is the prediction, " + measured + " the measurement. Errors are predicted / measured - 1."
}

// focusText says in which phase and which requests most of the error is.
func focusText(p *diff.Prediction) string {
	f := p.Focus
	first, decode := percentOf(p.Phases[diff.UntilFirstToken].Share), percentOf(p.Phases[diff.Decode].Share)
	switch {
	case f.Share == 0:
		return "The prediction is exact."
	case len(f.Where) == 0:
		return fmt.Sprintf("TTFT accounts for %s of the error, decode time for %s; no kind of request stands out.", first, decode)
	}
	names := map[diff.Phase]string{diff.UntilFirstToken: "TTFT", diff.Decode: "decode time"}
	var where []string
	for _, w := range f.Where {
		where = append(where, w.By+" "+w.Band)
	}
	return fmt.Sprintf("Most of the error (%s) is in the %s of %s of the requests: %s.", percentOf(f.Share), names[f.Phase], percentOf(f.Requests), strings.Join(where, ", "))
}

func percentOf(share float64) string { return doc.Fixed(100*share, 0) + " %" }

func predictionErrors(p *diff.Prediction) doc.Table {
	t := doc.Table{Columns: []string{"metric", "measured", "predicted", "error", "95 % interval"}, Left: 1}
	for _, e := range p.Errors {
		places, interval := placesOf(e.Metric), e.Interval
		interval.Value = diff.Interval{Low: 100 * interval.Value.Low, High: 100 * interval.Value.High}
		t.Add(e.Metric.Key, doc.Fixed(e.Measured, places), doc.Fixed(e.Predicted, places), errorText(e.Relative), intervalText(interval, 1))
	}
	return t
}

func phaseErrors(p *diff.Prediction) doc.Table {
	t := doc.Table{Columns: []string{"mean time per request, ms", "measured", "predicted", "adds", "share of error"}, Left: 1}
	names := map[diff.Phase]string{diff.UntilFirstToken: "queue and prefill (TTFT)", diff.Decode: "decode (E2EL - TTFT)"}
	for _, phase := range p.Phases {
		t.Add(names[phase.Phase], doc.Fixed(phase.Measured, 2), doc.Fixed(phase.Predicted, 2), plus(phase.Predicted-phase.Measured, 2), percentOf(phase.Share))
	}
	return t
}

func errorText(relative trace.Opt[float64]) string {
	if !relative.Set {
		return doc.Absent
	}
	return plus(100*relative.Value, 1) + " %"
}

// predictedBand returns the row of a band: the errors of its means, what it adds to
// the error of E2EL, and its share.
func (c Diff) predictedBand(band diff.Band) []string {
	cells, adds := []string{band.Name, doc.Int(band.Pairs)}, doc.Absent
	for _, l := range band.Latencies {
		cells = append(cells, errorText(c.bandError(l)))
		if l.Latency == run.E2EL && l.Count > 0 {
			adds = plus(c.towardsPrediction(l.Adds), 2)
		}
	}
	return append(cells, adds, percentOf(band.Share))
}

// bandError returns the relative error of a band's mean.
func (c Diff) bandError(l diff.BandLatency) trace.Opt[float64] {
	measured, predicted := l.B, l.A
	if c.Prediction.OfB {
		measured, predicted = predicted, measured
	}
	if measured <= 0 {
		return trace.Opt[float64]{}
	}
	return trace.Some(predicted/measured - 1)
}

// towardsPrediction returns B - A as predicted - measured.
func (c Diff) towardsPrediction(difference float64) float64 {
	if c.Prediction.OfB {
		return difference
	}
	return -difference
}

// scatters draws the TTFT and the TPOT of each request on both sides.
func (c Diff) scatters() (figures []figure.Figure) {
	for _, r := range c.Requests {
		if r.Latency == run.E2EL || len(r.Points) == 0 {
			continue
		}
		figures = append(figures, c.scatter(r))
	}
	return figures
}

// scatter puts the measured side, else A, on the x axis. Points on the line are
// equal on both sides.
func (c Diff) scatter(r diff.Requests) figure.Figure {
	x, y := "A: "+doc.Clean(c.NameA), "B: "+doc.Clean(c.NameB)
	swap := c.Prediction != nil && !c.Prediction.OfB
	if c.Prediction != nil {
		x, y = "Measured", "Predicted"
	}
	points := figure.Series{Name: "requests", Kind: figure.Points}
	for _, p := range r.Points {
		if swap {
			p.A, p.B = p.B, p.A
		}
		points.X, points.Y = append(points.X, p.A/1000), append(points.Y, p.B/1000)
	}
	return against(r.Latency.Label()+" of each request", x, y, figure.Axis{Quantity: figure.Duration, Log: true}, points)
}
