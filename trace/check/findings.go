package check

import (
	"cmp"
	"fmt"
	"slices"

	"moontide/trace"
)

// Finding groups all irregularities of one Kind in a trace.
type Finding struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// Message describes the kind and its effect on a replay or an analysis. It
	// is the same for every finding of a kind and severity.
	Message string `json:"message"`
	// Evidence lists the measured values behind a finding about the trace as a
	// whole; "" if the finding has examples.
	Evidence string `json:"evidence,omitempty"`
	Count    int    `json:"count"`
	Of       string `json:"of"` // what Count counts: OfRows or OfIDs
	// Examples are the first places, by line. A finding about the trace as a
	// whole has none.
	Examples []Example `json:"examples,omitempty"`
}

// Example is one place of a finding.
type Example struct {
	Line  int    `json:"line"` // from 1; 0 if unknown
	Value string `json:"value"`
}

// findings collects findings by kind, each with the first few examples.
type findings struct {
	examples int
	found    map[Kind]*Finding
}

func newFindings(examples int) *findings {
	return &findings{examples: examples, found: map[Kind]*Finding{}}
}

func (l *findings) of(kind Kind) *Finding {
	f := l.found[kind]
	if f == nil {
		d := descriptions[slices.IndexFunc(descriptions, func(d description) bool { return d.kind == kind })]
		f = &Finding{Kind: kind, Severity: d.severity, Message: d.message, Of: d.of}
		l.found[kind] = f
	}
	return f
}

// add counts one place of a kind. Examples are the first places by line, then by value.
func (l *findings) add(kind Kind, line int, format string, values ...any) {
	f := l.of(kind)
	f.Count++
	kept := len(f.Examples)
	if kept >= l.examples && (kept == 0 || line > f.Examples[kept-1].Line) {
		return
	}
	e := Example{line, fmt.Sprintf(format, values...)}
	i, _ := slices.BinarySearchFunc(f.Examples, e, compareExamples)
	f.Examples = slices.Insert(f.Examples, i, e)
	f.Examples = f.Examples[:min(len(f.Examples), l.examples)]
}

func compareExamples(a, b Example) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Value, b.Value))
}

// whole adds a finding about the trace as a whole.
func (l *findings) whole(kind Kind, count int, evidence string, values ...any) *Finding {
	f := l.of(kind)
	f.Count, f.Evidence = count, fmt.Sprintf(evidence, values...)
	return f
}

// part records that a check did not read some rows.
func (l *findings) part(rows int, evidence string, values ...any) {
	f := l.of(CheckedInPart)
	f.Count = max(f.Count, rows)
	if f.Evidence != "" {
		f.Evidence += "; "
	}
	f.Evidence += fmt.Sprintf(evidence, values...)
}

// count returns the number of places of a kind.
func (l *findings) count(kind Kind) int {
	if f := l.found[kind]; f != nil {
		return f.Count
	}
	return 0
}

// drop removes kinds that later rows disproved.
func (l *findings) drop(these ...Kind) {
	for _, kind := range these {
		delete(l.found, kind)
	}
}

// take adds the findings of another collection.
func (l *findings) take(from *findings) {
	for kind, f := range from.found {
		own := l.of(kind)
		own.Count += f.Count
		own.Examples = append(own.Examples, f.Examples...)
		slices.SortFunc(own.Examples, compareExamples)
		own.Examples = own.Examples[:min(len(own.Examples), max(l.examples, 0))]
	}
}

func (l *findings) list() []Finding {
	list := make([]Finding, 0, len(l.found))
	for _, d := range descriptions {
		if f := l.found[d.kind]; f != nil {
			list = append(list, *f)
		}
	}
	return list
}

// ms formats a time as a trace does.
func ms(t float64) string { return string(trace.AppendMS(nil, t)) }
