package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"moontide/.ci/results"
	"moontide/analyze/report/doc"
	"moontide/trace/stats"
)

// page renders results as Markdown.
func page(r *measurements) string {
	p := &writer{measurements: r}
	p.Line(head, r.Date, r.Version)
	for _, length := range lengths {
		p.overview(length)
	}
	p.Line(details)
	for _, s := range r.Sources {
		p.source(s)
	}
	return p.String()
}

const head = `# Fidelity of generated traces

moontide learns a model from each of many source traces, generates new traces with several seeds and two lengths, and
compares each with its source, using ` + "`moontide synth --from SOURCE --check --json -`" + `. The script in this folder
generates the sources, runs everything and writes this page; all numbers come from [results.json](results.json).
Measured on %s with %s.

` + "```bash" + `
.ci/fidelity/run                   # the generated sources
.ci/fidelity/run --traces FOLDER   # also the traces in FOLDER, in any format
.ci/fidelity/run --small           # a few minutes: two seeds, no long sources
.ci/fidelity/run --render          # only render this page from results.json
` + "```" + `

An aspect passes if its gap is at most its bound, or at most twice its noise floor. The noise floor is the gap between
the source and resamples of itself.`

const details = `
## Source by source

Gaps cover all seeds. They are relative to the source's value (%%), differences of two shares (percentage points, pt), or
KS distances (0 to 1). Noise is the median noise floor.`

type writer struct {
	results.Page
	*measurements
}

// of returns the drawings of a source in a length.
func (p *writer) of(source string, length int) (found []drawing) {
	for _, d := range p.Draws {
		if d.Source == source && d.Length == length {
			found = append(found, d)
		}
	}
	return found
}

// outcome is an aspect over all seeds.
type outcome struct {
	aspect
	gaps, noise   []float64
	passed, drawn int
}

// outcomes returns the aspects of drawings that apply, in the order of the reports.
func outcomes(draws []drawing) (all []*outcome) {
	for _, d := range draws {
		for _, a := range d.Aspects {
			if a.Outcome == "n/a" {
				continue
			}
			i := slices.IndexFunc(all, func(o *outcome) bool { return o.Key == a.Key })
			if i < 0 {
				i = len(all)
				all = append(all, &outcome{aspect: a})
			}
			o := all[i]
			o.drawn++
			if a.Gap != nil {
				o.gaps, o.noise = append(o.gaps, *a.Gap), append(o.noise, *a.Noise)
			}
			if a.Outcome == "pass" {
				o.passed++
			}
		}
	}
	return all
}

// times names a length.
func times(length int) string {
	if length == 1 {
		return "the length of the source"
	}
	return fmt.Sprintf("%d times the length of the source", length)
}

// overview is the table of all sources in one length.
func (p *writer) overview(length int) {
	p.Line("\n## At %s", times(length))
	p.Table("source", "rows", "aspects passed with all seeds", "failing aspects: passed seeds, worst gap")
	for _, s := range p.Sources {
		draws := p.of(s.Name, length)
		all := outcomes(draws)
		good := 0
		var failed []string
		for _, d := range draws {
			if d.Error != "" && !slices.Contains(failed, d.Error) {
				failed = append(failed, d.Error)
			}
		}
		for _, o := range all {
			if o.passed == o.drawn {
				good++
				continue
			}
			failed = append(failed, fmt.Sprintf("%s %d/%d, %s", o.Name, o.passed, o.drawn, o.format(worst(o.gaps))))
		}
		p.Row(s.Name, doc.Int(s.Rows), fmt.Sprintf("%d of %d", good, len(all)), strings.Join(failed, "; "))
	}
}

func (p *writer) source(s source) {
	p.Line("\n### %s\n\n%s: %s rows.", s.Name, s.About, doc.Int(s.Rows))
	for _, length := range lengths {
		all := outcomes(p.of(s.Name, length))
		if len(all) == 0 {
			continue
		}
		p.Line("\nAt %s:", times(length))
		p.Table("aspect", "median gap", "worst gap", "noise", "bound", "passed seeds")
		for _, o := range all {
			p.Row(o.Name, o.format(median(o.gaps)), o.format(worst(o.gaps)), o.format(median(o.noise)), o.format(o.Bound), fmt.Sprintf("%d of %d", o.passed, o.drawn))
		}
	}
}

// format formats a gap.
func (o *outcome) format(v float64) string {
	switch {
	case math.IsNaN(v):
		return doc.Absent
	case o.Kind == "ks":
		return doc.Fixed(v, 3)
	case o.Kind == "relative":
		return doc.Fixed(100*v, 1) + " %"
	}
	return doc.Fixed(100*v, 1) + " pt"
}

// worst returns the largest value, NaN if there is none.
func worst(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Max(values)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return stats.Of(values).Quantile(0.5)
}
