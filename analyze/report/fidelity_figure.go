package report

import (
	"fmt"
	"math"
	"slices"

	"moontide/analyze/fidelity"
	"moontide/analyze/report/figure"
)

// mostOfLimit is where the axis ends: gaps of several limits would crowd the others
// into a corner.
const mostOfLimit = 3

// figure has a row for each aspect with a gap. Limits are in different units, so all
// values are shares of the limit.
func (f Fidelity) figure() figure.Figure {
	zero, most := 0.0, 1.25
	fig := figure.Figure{
		Title: "Gaps beside noise floors and bounds",
		X:     figure.Axis{Label: "Share of the limit", Quantity: figure.Percent, Min: &zero, Max: &most},
		Marks: []figure.Mark{{Label: "limit", At: 1}},
	}
	gap, failed := figure.Series{Name: "gap", Kind: figure.Points}, figure.Series{Name: "gap beyond the limit", Kind: figure.Points}
	floor, bound := figure.Series{Name: "noise floor", Kind: figure.Points}, figure.Series{Name: "bound", Kind: figure.Points}
	for _, r := range slices.Backward(f.Results) { // the first one is at the top
		if !r.Gap.Set || !(r.Limit.Value > 0) {
			continue
		}
		row := float64(len(fig.Y.Names))
		fig.Y.Names = append(fig.Y.Names, r.Name)
		add := func(s *figure.Series, value float64, label string) {
			share := value / r.Limit.Value
			if share > mostOfLimit {
				label, share = fmt.Sprintf("%s of the limit", fig.X.Text(share)), mostOfLimit
			}
			most = max(most, math.Ceil(4*share+0.2)/4)
			s.X, s.Y, s.Labels = append(s.X, share), append(s.Y, row), append(s.Labels, label)
		}
		of := &gap
		if r.Outcome == fidelity.Failed {
			of = &failed
		}
		add(&bound, r.Bound, "")
		if r.Floor.Set {
			add(&floor, r.Floor.Value, "")
		}
		add(of, r.Gap.Value, "")
	}
	gap.Color, floor.Color, failed.Color, bound.Color = 1, 2, 3, 4
	fig.Series = figure.Drawn(gap, floor, failed, bound)
	fig.Height = max(60, 18*len(fig.Y.Names))
	return fig
}
