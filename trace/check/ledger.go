package check

import (
	"cmp"
	"fmt"
	"moontide/trace"
	"slices"
)

// Finding is all that a trace has of one kind of irregularity.
type Finding struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// Says is a sentence or two: what it is, and what it does to a replay or an
	// analysis. It is the same for every finding of the kind and severity.
	Says string `json:"says"`
	// Evidence is what led to a finding about the trace as a whole, with
	// values; "" where the examples show it.
	Evidence string `json:"evidence,omitempty"`
	Count    int    `json:"count"`
	Of       string `json:"of"` // what Count counts: OfRows or OfIDs
	// Examples are the first few places, in order of their lines. A finding
	// about the trace as a whole has none.
	Examples []Example `json:"examples,omitempty"`
}

// Example is one place where a finding shows.
type Example struct {
	Line  int    `json:"line"` // from 1; 0 where the source did not tell
	Value string `json:"value"`
}

// ledger gathers findings by kind, with no more than the first examples.
type ledger struct {
	examples int
	found    map[Kind]*Finding
}

func newLedger(examples int) *ledger {
	return &ledger{examples: examples, found: map[Kind]*Finding{}}
}

func (l *ledger) of(kind Kind) *Finding {
	f := l.found[kind]
	if f == nil {
		what := meaningOf(kind)
		f = &Finding{Kind: kind, Severity: what.severity, Says: what.says, Of: what.of}
		l.found[kind] = f
	}
	return f
}

// add counts one more of a kind, and keeps its line and value if it is among
// the first to be added.
func (l *ledger) add(kind Kind, line int, format string, values ...any) {
	if l.more(kind) {
		l.keep(kind, line, format, values...)
	}
}

func (l *ledger) keep(kind Kind, line int, format string, values ...any) {
	f := l.of(kind)
	f.Examples = append(f.Examples, Example{line, fmt.Sprintf(format, values...)})
}

// more counts one more of a kind and reports whether its place is to be kept.
func (l *ledger) more(kind Kind) bool {
	f := l.of(kind)
	f.Count++
	return len(f.Examples) < l.examples
}

// addAll counts the places of a kind, which come in any order.
func (l *ledger) addAll(kind Kind, all []Example) {
	slices.SortFunc(all, func(a, b Example) int { return cmp.Compare(a.Line, b.Line) })
	for _, e := range all {
		l.add(kind, e.Line, "%s", e.Value)
	}
}

// whole notes what holds for the trace as a whole.
func (l *ledger) whole(kind Kind, count int, evidence string, values ...any) *Finding {
	f := l.of(kind)
	f.Count, f.Evidence = count, fmt.Sprintf(evidence, values...)
	return f
}

// part notes that a check did not look at so many rows.
func (l *ledger) part(rows int, evidence string, values ...any) {
	f := l.of(CheckedInPart)
	f.Count = max(f.Count, rows)
	if f.Evidence != "" {
		f.Evidence += "; "
	}
	f.Evidence += fmt.Sprintf(evidence, values...)
}

// countTo corrects the count of a kind of which not every place was added.
func (l *ledger) countTo(kind Kind, count int) {
	if count > 0 {
		l.of(kind).Count = count
	}
}

// count is how many of a kind were added.
func (l *ledger) count(kind Kind) int {
	if f := l.found[kind]; f != nil {
		return f.Count
	}
	return 0
}

// drop takes back what later rows put in another light.
func (l *ledger) drop(these ...Kind) {
	for _, kind := range these {
		delete(l.found, kind)
	}
}

// take adds all that was found in another ledger to what was found here.
func (l *ledger) take(from *ledger) {
	for kind, f := range from.found {
		own := l.of(kind)
		own.Count += f.Count
		own.Examples = append(own.Examples, f.Examples...)
		slices.SortStableFunc(own.Examples, func(a, b Example) int { return cmp.Compare(a.Line, b.Line) })
		own.Examples = own.Examples[:min(len(own.Examples), max(l.examples, 0))]
	}
}

func (l *ledger) list() []Finding {
	list := make([]Finding, 0, len(l.found))
	for _, what := range kinds {
		if f := l.found[what.kind]; f != nil {
			list = append(list, *f)
		}
	}
	return list
}

// ms is a time as a trace spells it.
func ms(t float64) string { return string(trace.AppendMS(nil, t)) }
