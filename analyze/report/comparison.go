package report

import (
	"io"
	"slices"
	"strings"

	"moontide/analyze"
	"moontide/analyze/report/doc"
	"moontide/trace"
	"moontide/trace/stats"
)

// Comparison compares traces side by side. The first is the baseline.
type Comparison []Dataset

// Document contains all results side by side, and the distance of each trace from
// the first.
func (c Comparison) Document() *doc.Document {
	d := doc.New("TRACE COMPARISON", "Measured against: "+c[0].Name)
	c.sideBySide(d.Section("Side by side"))
	c.caches(d)
	c.fleets(d)
	c.services(d)
	c.distances(d)
	s := d.Section("Figures")
	s.Lead = true
	for _, f := range c.figures() {
		s.Figure(f)
	}
	return d
}

func (c Comparison) sideBySide(s *doc.Section) {
	t := c.table()
	for _, data := range c {
		for i, row := range c.statistics(data.Analysis) {
			if i == len(t.Rows) {
				t.Add(row[0])
			}
			t.Rows[i] = append(t.Rows[i], row[1])
		}
	}
	rows, left := comparable(t.Rows)
	t.Rows = rows
	s.Table(t)
	leftOut(s, left)
	for _, data := range c {
		addOrderNotes(s, data.Name+": ", data.Analysis)
		if warning := BlockSizeWarning(data.Analysis); warning != "" {
			s.Warn(data.Name + ": " + warning)
		}
	}
}

// comparable splits rows into those of which at least two columns have a value and
// the names of the others.
func comparable(rows [][]string) (kept [][]string, left []string) {
	for _, row := range rows {
		known := 0
		for _, value := range row[1:] {
			if value != doc.Absent {
				known++
			}
		}
		if known >= 2 {
			kept = append(kept, row)
		} else {
			left = append(left, row[0])
		}
	}
	return kept, left
}

func leftOut(s *doc.Section, names []string) {
	if len(names) > 0 {
		s.Text("Omitted, because fewer than two traces have a value: " + strings.Join(names, "; ") + ".")
	}
}

// statistics returns the names and values of a column, with the same names for all
// traces.
func (c Comparison) statistics(a *analyze.Analysis) (rows [][2]string) {
	add := func(name, value string) { rows = append(rows, [2]string{name, value}) }
	addIf := func(known bool, name, value string) {
		if !known {
			value = doc.Absent
		}
		add(name, value)
	}
	add("requests", doc.Int(a.Requests))
	at, timed := orZero(a.Arrivals)
	addIf(timed, "duration, s", doc.Fixed(at.Duration()/1000, 1))
	addIf(timed, "rate, req/s", doc.FixedOr(at.Rate, 3))
	if slices.ContainsFunc(c, func(d Dataset) bool { return d.Analysis.Arrivals != nil && d.Analysis.Arrivals.Backwards > 0 }) {
		addIf(timed, "rows out of order", doc.Int(at.Backwards))
	}
	addIf(timed, "inter-arrival CV", doc.FixedOr(at.CV, 3))
	for _, of := range []struct {
		name string
		stats.Sample
	}{{"ISL", a.ISL}, {"OSL", a.OSL}} {
		add(of.name+" mean", doc.Fixed(of.Mean, 1))
		add(of.name+" std", doc.Fixed(of.Std, 1))
		add(of.name+" p50", doc.Fixed(of.Quantile(0.5), 1))
		add(of.name+" p99", doc.Fixed(of.Quantile(0.99), 1))
	}
	for i, of := range doubtfulLengths(a.Lengths) {
		if slices.ContainsFunc(c, func(d Dataset) bool { return doubtfulLengths(d.Analysis.Lengths)[i].rows > 0 }) {
			add("rows "+of.which, doc.Int(of.rows))
		}
	}
	add("ISL-OSL rank correlation", doc.FixedOr(a.Lengths.Spearman, 3))
	p, hasBlocks := orZero(a.Prefix)
	addIf(hasBlocks, "block size", doc.Int(p.BlockSize.Tokens))
	addIf(hasBlocks, "rows that the block size fits", doc.Share(a.BlockFit.Fits, a.BlockFit.Rows))
	addIf(hasBlocks, "unique / total blocks", doc.Share(p.UniqueBlocks, p.TotalBlocks))
	addIf(hasBlocks, "block hit rate, infinite cache", doc.Percent(p.Infinite.Block)+" %")
	addIf(hasBlocks, "token hit rate, infinite cache", doc.PercentOr(p.Infinite.Token)+" %")
	add("observed context mean", doc.FixedOr(a.Observed.Mean, 1))
	over, known := orZero(a.Time)
	for _, v := range varied[:3] {
		addIf(known, "last / first third, "+v.name, doc.FixedOr(lastOverFirst(over, v.of), 2))
	}
	return rows
}

func (c Comparison) distances(d *doc.Document) {
	for _, other := range c[1:] {
		x := analyze.Compare(c[0].Analysis, other.Analysis)
		s := d.Section("Distance of " + other.Name)
		var left []string
		t := doc.Table{Columns: []string{"", "KS, 0..1", "Wasserstein", "unit"}, Left: 1}
		line := func(label, unit string, distance trace.Opt[analyze.Distance]) {
			if !distance.Set {
				left = append(left, label)
				return
			}
			t.Add(label, doc.Fixed(distance.Value.KS, 4), doc.Fixed(distance.Value.Wasserstein, 2), unit)
		}
		line("ISL", "tokens", x.ISL)
		line("OSL", "tokens", x.OSL)
		line("observed context", "tokens", x.Context)
		line("inter-arrival", "ms", x.Gap)
		line("turns per session", "turns", x.Turns)
		line("turn to next turn", "ms", x.TurnGap)
		if x.Delay.Set { // few traces have any
			line("given delay", "ms", x.Delay)
		}
		s.Table(t)
		leftOut(s, left)
	}
}

// JSON writes the traces as [Dataset.JSON] does, and their distances from the first.
func (c Comparison) JSON(w io.Writer) error {
	distances := objects(c[1:], func(d Dataset) object { return distancesJSON(d.Name, analyze.Compare(c[0].Analysis, d.Analysis)) })
	return writeJSON(w, object{{"traces", objects(c, datasetJSON)}, {"distances", distances}})
}

func distancesJSON(name string, x analyze.Comparison) object {
	of := func(d trace.Opt[analyze.Distance]) any {
		return orNull(object{{"ks", d.Value.KS}, {"wasserstein", d.Value.Wasserstein}}, d.Set)
	}
	o := object{
		{"trace", name}, {"isl", of(x.ISL)}, {"osl", of(x.OSL)}, {"context", of(x.Context)}, {"inter_arrival", of(x.Gap)},
		{"turns", of(x.Turns)}, {"turn_gap", of(x.TurnGap)},
	}
	if x.Delay.Set {
		o = append(o, field{"delay", of(x.Delay)})
	}
	return o
}
