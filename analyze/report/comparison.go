package report

import (
	"io"
	"slices"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report/doc"
	"moontide/trace"
	"moontide/trace/stats"
)

// Comparison is traces side by side. The others are measured against the first.
type Comparison []Dataset

// Document has the statistics, caches and workers side by side, and the distance
// of each trace from the first.
func (c Comparison) Document() *doc.Document {
	d := doc.New("TRACE COMPARISON", "Measured against: "+c[0].Name)
	c.sideBySide(d.Section("Side by side"))
	c.caches(d)
	c.fleets(d)
	c.services(d)
	c.distances(d)
	return d
}

// sideBySide puts the statistics of all traces into one table.
func (c Comparison) sideBySide(s *doc.Section) {
	t := c.table()
	line := func(label string, value func(a *analyze.Analysis) string) {
		row := []string{label}
		for _, data := range c {
			row = append(row, value(data.Analysis))
		}
		t.Add(row...)
	}
	line("requests", func(a *analyze.Analysis) string { return doc.Int(a.Requests) })
	arrivals := func(label string, value func(at *analyze.Arrivals) string) {
		line(label, func(a *analyze.Analysis) string {
			if a.Arrivals == nil {
				return doc.Absent
			}
			return value(a.Arrivals)
		})
	}
	arrivals("duration, s", func(at *analyze.Arrivals) string { return doc.Fixed(at.Duration()/1000, 1) })
	arrivals("rate, req/s", func(at *analyze.Arrivals) string { return doc.FixedOr(at.Rate, 3) })
	arrivals("rows out of order", func(at *analyze.Arrivals) string { return doc.Int(at.Backwards) })
	arrivals("inter-arrival CV", func(at *analyze.Arrivals) string { return doc.FixedOr(at.CV, 3) })
	lengths := func(name string, of func(a *analyze.Analysis) stats.Sample) {
		line(name+" mean", func(a *analyze.Analysis) string { return doc.Fixed(of(a).Mean, 1) })
		line(name+" std", func(a *analyze.Analysis) string { return doc.Fixed(of(a).Std, 1) })
		line(name+" p50", func(a *analyze.Analysis) string { return doc.Fixed(of(a).Quantile(0.5), 1) })
		line(name+" p99", func(a *analyze.Analysis) string { return doc.Fixed(of(a).Quantile(0.99), 1) })
	}
	lengths("ISL", func(a *analyze.Analysis) stats.Sample { return a.ISL })
	lengths("OSL", func(a *analyze.Analysis) stats.Sample { return a.OSL })
	for _, of := range []struct {
		label string
		rows  func(l analyze.Lengths) int
	}{
		{"rows with an estimated ISL", func(l analyze.Lengths) int { return l.EstimatedISL }},
		{"rows with an estimated OSL", func(l analyze.Lengths) int { return l.EstimatedOSL }},
		{"rows without an OSL", func(l analyze.Lengths) int { return l.MissingOSL }},
	} {
		if slices.ContainsFunc(c, func(d Dataset) bool { return of.rows(d.Analysis.Lengths) > 0 }) {
			line(of.label, func(a *analyze.Analysis) string { return doc.Int(of.rows(a.Lengths)) })
		}
	}
	line("ISL-OSL rank correlation", func(a *analyze.Analysis) string { return doc.FixedOr(a.Lengths.Spearman, 3) })
	shared := func(label string, value func(p *analyze.Prefix) string) {
		line(label, func(a *analyze.Analysis) string {
			if a.Prefix == nil {
				return doc.Absent
			}
			return value(a.Prefix)
		})
	}
	shared("block size", func(p *analyze.Prefix) string { return doc.Int(p.BlockSize.Tokens) })
	line("rows that the block size fits", func(a *analyze.Analysis) string {
		if a.Prefix == nil {
			return doc.Absent
		}
		return doc.Share(a.BlockFit.Fits, a.BlockFit.Rows)
	})
	shared("unique / total blocks", func(p *analyze.Prefix) string { return doc.Share(p.UniqueBlocks, p.TotalBlocks) })
	shared("block hit rate, infinite cache", func(p *analyze.Prefix) string { return doc.Percent(p.Infinite.Block) + " %" })
	shared("token hit rate, infinite cache", func(p *analyze.Prefix) string { return doc.PercentOr(p.Infinite.Token) + " %" })
	line("observed context mean", func(a *analyze.Analysis) string { return doc.FixedOr(a.Observed.Mean, 1) })
	s.Table(t)
	for _, data := range c {
		if warning := BlockSizeWarning(data.Analysis); warning != "" {
			s.Warn(data.Name + ": " + warning)
		}
	}
}

// Distances are how far a trace is from another. What one of them cannot give
// is doc.Absent.
type Distances struct {
	analyze.Comparison
	LRU trace.Opt[cache.Gap]
}

// DistancesOf measures how far b is from a.
func DistancesOf(a, b Dataset) Distances {
	d := Distances{Comparison: analyze.Compare(a.Analysis, b.Analysis)}
	if a.Cache.known() && b.Cache.known() && a.Cache.BlockSize == b.Cache.BlockSize {
		d.LRU = trace.Some(cache.GapOf(a.Cache.Curve, b.Cache.Curve))
	}
	return d
}

func (c Comparison) distances(d *doc.Document) {
	for _, other := range c[1:] {
		x := DistancesOf(c[0], other)
		s := d.Section("Distance of " + other.Name)
		t := doc.Table{Columns: []string{"", "KS, 0..1", "Wasserstein", "unit"}, Left: 1}
		line := func(label, unit string, distance trace.Opt[analyze.Distance]) {
			if !distance.Set {
				t.Add(label, doc.Absent, doc.Absent, unit)
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
		if !x.LRU.Set {
			s.Text("LRU curves are compared only if both traces have block ids of the same size.")
			continue
		}
		s.Row("LRU curve, largest gap", doc.Percent(x.LRU.Value.Largest), "points", "at "+doc.Count(x.LRU.Value.At, "block"))
		s.Row("LRU curve, mean gap", doc.Percent(x.LRU.Value.Mean), "points", "over log capacity")
	}
}

type comparisonJSON struct {
	Traces    []datasetJSON   `json:"traces"`
	Distances []distancesJSON `json:"distances"` // of each but the first, to the first
}

type distancesJSON struct {
	Trace        string        `json:"trace"`
	ISL          *distanceJSON `json:"isl"`
	OSL          *distanceJSON `json:"osl"`
	Context      *distanceJSON `json:"context"`
	InterArrival *distanceJSON `json:"inter_arrival"`
	Turns        *distanceJSON `json:"turns"`
	TurnGap      *distanceJSON `json:"turn_gap"`
	Delay        *distanceJSON `json:"delay,omitempty"`
	LRULargest   *number       `json:"lru_largest_gap"`
	LRULargestAt *int          `json:"lru_largest_gap_blocks"`
	LRUMean      *number       `json:"lru_mean_gap"`
}

type distanceJSON struct {
	KS          number `json:"ks"`
	Wasserstein number `json:"wasserstein"`
}

// JSON writes the comparison as one indented JSON object: the traces as
// [Dataset.JSON] does, and the distances.
func (c Comparison) JSON(w io.Writer) error {
	var out comparisonJSON
	for i, data := range c {
		out.Traces = append(out.Traces, datasetOf(data))
		if i > 0 {
			out.Distances = append(out.Distances, distancesJSONOf(data.Name, DistancesOf(c[0], data)))
		}
	}
	return writeJSON(w, out)
}

func distancesJSONOf(name string, x Distances) distancesJSON {
	of := func(d trace.Opt[analyze.Distance]) *distanceJSON {
		if !d.Set {
			return nil
		}
		return &distanceJSON{number(d.Value.KS), number(d.Value.Wasserstein)}
	}
	out := distancesJSON{Trace: name, ISL: of(x.ISL), OSL: of(x.OSL), Context: of(x.Context), InterArrival: of(x.Gap),
		Turns: of(x.Turns), TurnGap: of(x.TurnGap), Delay: of(x.Delay)}
	if x.LRU.Set {
		g := x.LRU.Value
		out.LRULargest, out.LRULargestAt, out.LRUMean = new(number(g.Largest)), &g.At, new(number(g.Mean))
	}
	return out
}
