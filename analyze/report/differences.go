package report

import (
	"io"
	"slices"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/slo"
)

// Differences is the comparison of two sets: of their runs with the same settings.
type Differences struct {
	Names  [2]string
	Points []PointDifference
	Alone  []string // runs that only one of the sets has
}

// PointDifference compares the runs of two sets at one point.
type PointDifference struct {
	Point string
	Difference
}

// setKeys are the metrics of two sets that are compared, besides those of gates.
var setKeys = []string{"output_throughput", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "mean_e2el_ms"}

// keys returns the metrics that are shown.
func (s Differences) keys() []string {
	keys := slices.Clone(setKeys)
	for _, j := range s.Points[0].Judgements {
		if !slices.Contains(keys, j.Gate.Metric.Key) {
			keys = append(keys, j.Gate.Metric.Key)
		}
	}
	return keys
}

// Document has a table of each metric, with a row for each point, and the settings that
// differ. Its Data has a row for each point and metric.
func (s Differences) Document() *doc.Document {
	d := doc.New("SET COMPARISON", "A: "+s.Names[0]+"; B: "+s.Names[1])
	changed := d.Section("What was changed")
	s.Points[0].changes(changed)
	for _, key := range s.keys() {
		t := doc.Table{Columns: []string{"run", "A", "B", "change", ""}, Left: 1}
		for _, p := range s.Points {
			x, found := p.Find(key)
			if !found || !x.A.Set && !x.B.Set {
				continue
			}
			places := placesOf(x.Metric)
			t.Add(p.Point, doc.FixedOr(x.A, places), doc.FixedOr(x.B, places), changeText(x), verdictWord(x))
		}
		if len(t.Rows) > 0 {
			d.Section(measure.MustMetric(key).Label).Table(t)
		}
	}
	d.Section("Certainty").Text(insignificant + " not significant: the 95 % interval contains 0; " + noInterval + " no interval: too little data; " + equal + " equal.")
	var judgements []slo.Judgement
	d.Data.Columns = []string{"run", "metric", "a", "b", "difference", "significant"}
	for _, p := range s.Points {
		judgements = append(judgements, p.Judgements...)
		for _, o := range p.Objections {
			d.Note("Not comparable", p.Point+": "+o.Reason+".")
		}
		for _, x := range p.Differences {
			d.Data.Add(p.Point, x.Metric.Key, x.A, x.B, x.Difference, x.Significant())
		}
	}
	for _, alone := range s.Alone {
		d.Note("Note", "only one set has "+alone+".")
	}
	d.Gates = gates(judgements)
	return d
}

// JSON writes the comparison of each point as one JSON object.
func (s Differences) JSON(w io.Writer) error {
	points := objects(s.Points, func(p PointDifference) object {
		return object{{"point", p.Point}, {"changes", objects(p.Changes, changeJSON)}, {"gates", gateObjects(p.Judgements)}, {"differences", objects(p.Differences, differenceJSON)}}
	})
	return writeJSON(w, object{{"a", s.Names[0]}, {"b", s.Names[1]}, {"confidence", diff.Level}, {"points", points}, {"alone", append([]string{}, s.Alone...)}})
}
