package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"moontide/analyze/diff"
	"moontide/analyze/measure"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/analyze/slo"
	"moontide/trace"
)

// Difference is the comparison of two sides of a benchmark.
type Difference struct {
	*diff.Comparison
	NameA, NameB string
	Judgements   []slo.Judgement // of the gates
}

// Marks of differences with a reservation.
const (
	insignificant = "~"
	noInterval    = "?"
	equal         = "="
)

// Document contains the runs, the changed settings, and the differences of the
// metrics and per request. Its Data has one row per metric.
func (c Difference) Document() *doc.Document {
	d := doc.New("RUN COMPARISON", "A: "+c.NameA+"; B: "+c.NameB)
	c.runs(d)
	c.changes(d.Section("What was changed"))
	c.differences(d.Section("Differences"))
	c.requests(d.Section("Request by request"))
	d.Gates = gates(c.Judgements)
	d.Data = c.data()
	return d
}

func (c Difference) runs(d *doc.Document) {
	s := d.Section("Runs")
	t := doc.Table{Columns: []string{"", "run", "verdict", "completed", "failed"}, Left: doc.AllLeft}
	for i, side := range [][]*diff.Run{c.A, c.B} {
		for _, r := range side {
			t.Add("AB"[i:i+1], r.Name, r.Verdict.Level.String(), doc.Int(r.Completed), doc.Int(r.Failed))
		}
	}
	s.Table(t)
	for _, o := range c.Objections {
		s.Note("Not comparable", o.Reason+".")
	}
	for _, n := range c.notes() {
		s.Note(n.Kind, n.Text)
	}
	for _, r := range slices.Concat(c.A, c.B) {
		if level := r.Verdict.Level; level != measure.Valid {
			for _, reason := range r.Verdict.Reasons() {
				s.Warn(r.Name + " is " + level.String() + ": " + reason + ".")
			}
		}
	}
}

// notes returns the notes of all runs.
func (c Difference) notes() []doc.Note {
	var runs Runs
	for _, r := range slices.Concat(c.A, c.B) {
		runs = append(runs, Run{Name: r.Name, Info: r.Run, Result: r.Result})
	}
	return notesOf(runs)
}

func (c Difference) changes(s *doc.Section) {
	if len(c.Changes) == 0 {
		s.Text("No recorded setting differs.")
		return
	}
	t := doc.Table{Columns: []string{"setting", "A", "B"}, Left: doc.AllLeft}
	for _, change := range c.Changes {
		t.Add(change.Setting, settingText(change.A), settingText(change.B))
	}
	s.Table(t)
}

func settingText(values []string) string {
	return cmp.Or(strings.TrimSpace(strings.Join(values, ", ")), doc.Absent)
}

func (c Difference) differences(s *doc.Section) {
	s.Figures(c.figures()...)
	t := doc.Table{Columns: []string{"metric", "A", "B", "change", "", "B - A", "95 % interval"}, Left: 1}
	unsure, unknown := 0, 0
	for _, x := range c.Differences {
		if !x.A.Set && !x.B.Set {
			continue
		}
		change := changeText(x)
		switch change {
		case insignificant:
			unsure++
		case noInterval:
			unknown++
		}
		places, difference := placesOf(x.Metric), doc.Absent
		fine := finer(places, x.Difference.Value)
		if x.Difference.Set {
			difference = plus(x.Difference.Value, fine)
		}
		t.Add(x.Metric.Key, doc.FixedOr(x.A, places), doc.FixedOr(x.B, places), change, verdictWord(x), difference, intervalText(x.Interval, fine))
	}
	s.Table(t)
	var objectives []string
	for _, o := range c.A[0].Objectives {
		objectives = append(objectives, o.String())
	}
	if len(objectives) > 0 {
		s.Text("request_goodput counts requests that meet " + strings.Join(objectives, ", ") + ".")
	}
	if unsure > 0 {
		s.Text("~ not significant: the interval contains 0. Of 20 metrics that do not differ, about one appears significant by chance.")
	}
	if unknown > 0 {
		s.Text("? no interval: too little data, such as a p99 of fewer than about 1,200 requests or a rare failure.")
	}
	s.Text(c.certainty(unsure + unknown))
}

func (c Difference) certainty(open int) string {
	switch {
	case c.ByRuns():
		return "With several runs per side, the run means are the sample: the intervals are Welch's t intervals and cover the variation between runs."
	case open > 0:
		return "To decide metrics marked ~ or ?, use three or more runs of this trace per side (A1,A2,A3 B1,B2,B3). They also show the variation between runs, which these intervals do not cover."
	}
	return "The intervals cover the variation within these runs. Three or more runs per side (A1,A2,A3 B1,B2,B3) also show the variation between runs."
}

// changeText returns the relative change, or a mark.
func changeText(x diff.Difference) string {
	switch {
	case !x.Difference.Set:
		return doc.Absent
	case x.Difference.Value == 0:
		return equal
	case !x.Interval.Set:
		return noInterval
	case !x.Significant():
		return insignificant
	case !x.Relative.Set:
		return doc.Absent
	}
	return fmt.Sprintf("%+.2f %%", 100*x.Relative.Value)
}

func verdictWord(x diff.Difference) string { return []string{"worse", "", "better"}[x.Better()+1] }

func placesOf(m measure.Metric) int {
	if m.Unit == measure.Share {
		return 4
	}
	return 2
}

// finer returns more decimals for a small difference.
func finer(places int, difference float64) int {
	if math.Abs(difference) < 0.1 {
		return max(places, 4)
	}
	return places
}

// plus formats a number with its sign, unless it rounds to 0.
func plus(v float64, places int) string {
	text := doc.Fixed(v, places)
	switch {
	case strings.Trim(text, "-0.") == "":
		return strings.TrimPrefix(text, "-")
	case v > 0:
		return "+" + text
	}
	return text
}

func intervalText(i trace.Opt[diff.Interval], places int) string {
	if !i.Set {
		return doc.Absent
	}
	return plus(i.Value.Low, places) + " to " + plus(i.Value.High, places)
}

func (c Difference) requests(s *doc.Section) {
	if !c.Paired {
		s.Text("The two sides did not replay the same requests, so requests cannot be paired.")
		return
	}
	s.Row("completed on both sides", doc.Int(c.Pairs), "", doc.Plural(c.Pairs, "request"))
	if c.OnlyA+c.OnlyB > 0 {
		s.Row("completed in A alone", doc.Int(c.OnlyA), "", doc.Plural(c.OnlyA, "request"))
		s.Row("completed in B alone", doc.Int(c.OnlyB), "", doc.Plural(c.OnlyB, "request"))
	}
	if c.Pairs == 0 {
		return
	}
	t := doc.Table{Columns: []string{"B - A", "pairs", "mean", "95 % interval", "median", "95 % interval", "lower in B"}, Left: 1}
	for _, r := range c.Requests {
		if r.Count > 0 {
			mean, median := finer(2, r.Mean), finer(2, r.Median)
			t.Add(r.Latency.Key(), doc.Int(r.Count), plus(r.Mean, mean), intervalText(r.MeanInterval, mean), plus(r.Median, median), intervalText(r.MedianInterval, median), doc.Share(r.Lower, r.Count))
		}
	}
	s.Table(t)
}

func (c Difference) data() doc.Data {
	data := doc.Data{Columns: []string{"metric", "a", "b", "difference", "low", "high", "relative", "relative_low", "relative_high", "significant", "verdict"}}
	ends := func(i trace.Opt[diff.Interval]) (low, high any) {
		return orNull(i.Value.Low, i.Set), orNull(i.Value.High, i.Set)
	}
	for _, x := range c.Differences {
		low, high := ends(x.Interval)
		relativeLow, relativeHigh := ends(x.RelativeInterval)
		data.Add(x.Metric.Key, x.A, x.B, x.Difference, low, high,
			x.Relative, relativeLow, relativeHigh, orNull(x.Significant(), x.Interval.Set), verdictWord(x))
	}
	return data
}

// figures draws the latencies of the runs of both sides, in a colour for each side.
func (c Difference) figures() []figure.Figure {
	var runs Runs
	for i, side := range [][]*diff.Run{c.A, c.B} {
		name := []string{"A: " + c.NameA, "B: " + c.NameB}[i]
		for _, r := range side {
			runs = append(runs, Run{Name: name, Info: r.Run, Result: r.Result})
		}
	}
	figures := runs.overlays()
	for _, f := range figures {
		for i := range f.Series {
			s := &f.Series[i]
			if s.Color = 1; i >= len(c.A) {
				s.Color = 2
			}
		}
	}
	return figures
}

// JSON writes the comparison as one JSON object. Unknown values are null.
func (c Difference) JSON(w io.Writer) error {
	objections := []string{}
	for _, o := range c.Objections {
		objections = append(objections, o.Reason)
	}
	changes := objects(c.Changes, changeJSON)
	requests := objects(c.Requests, func(r diff.Requests) object {
		return object{
			{"latency", r.Latency.Key()}, {"pairs", r.Count}, {"mean", r.Mean}, {"mean_interval", r.MeanInterval},
			{"median", r.Median}, {"median_interval", r.MedianInterval}, {"lower_in_b", r.Lower}, {"higher_in_b", r.Higher},
		}
	})
	return writeJSON(w, object{
		{"a", sideJSON(c.NameA, c.A)}, {"b", sideJSON(c.NameB, c.B)}, {"confidence", diff.Level},
		{"objections", objections}, {"notes", noteTexts(c.notes())}, {"gates", gateObjects(c.Judgements)}, {"changes", append([]object{}, changes...)}, {"differences", objects(c.Differences, differenceJSON)},
		{"intervals_by_runs", c.ByRuns()}, // whether the run means are the sample
		{"paired", c.Paired}, {"pairs", c.Pairs}, {"completed_in_a_alone", c.OnlyA}, {"completed_in_b_alone", c.OnlyB},
		{"requests", append([]object{}, requests...)},
	})
}

func changeJSON(x diff.Change) object {
	return object{{"setting", x.Setting}, {"a", append([]string{}, x.A...)}, {"b", append([]string{}, x.B...)}}
}

func sideJSON(name string, runs []*diff.Run) object {
	return object{{"name", name}, {"runs", objects(runs, func(r *diff.Run) object {
		reasons := []string{}
		if r.Verdict.Level != measure.Valid {
			reasons = r.Verdict.Reasons()
		}
		return object{
			{"name", r.Name}, {"verdict", r.Verdict.Level.String()}, {"reasons", reasons}, {"completed", r.Completed}, {"failed", r.Failed},
			{"simulated", r.Run.Target.Simulated},
			{"itl_gaps_kept", r.GapsKept}, // below 1 if intervals of ITL are based on a subset of the gaps
		}
	})}}
}

func differenceJSON(x diff.Difference) object {
	return object{
		{"metric", x.Metric.Key}, {"a", x.A}, {"b", x.B}, {"a_runs", x.RunsA}, {"b_runs", x.RunsB},
		{"difference", x.Difference}, {"interval", x.Interval},
		{"relative", x.Relative}, {"relative_interval", x.RelativeInterval},
		{"significant", orNull(x.Significant(), x.Interval.Set)}, {"verdict", verdictWord(x)},
	}
}

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
	d.Data.Columns = []string{"run", "metric", "a", "b", "difference", "significant"}
	for _, p := range s.Points {
		for _, j := range p.Judgements {
			if d.Gates == nil {
				d.Gates = &doc.Verdict{Level: "PASS"}
			}
			if !j.Passed {
				d.Gates.Level = "FAIL"
			}
			d.Gates.Evidence = append(d.Gates.Evidence, gateEvidence(p.Point+": ", j, "FAIL"))
		}
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
	return d
}

// JSON writes the comparison of each point as one JSON object.
func (s Differences) JSON(w io.Writer) error {
	points := objects(s.Points, func(p PointDifference) object {
		return object{{"point", p.Point}, {"changes", objects(p.Changes, changeJSON)}, {"gates", gateObjects(p.Judgements)}, {"differences", objects(p.Differences, differenceJSON)}}
	})
	return writeJSON(w, object{{"a", s.Names[0]}, {"b", s.Names[1]}, {"confidence", diff.Level}, {"points", points}, {"alone", append([]string{}, s.Alone...)}})
}
