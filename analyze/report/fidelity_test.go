package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"moontide/analyze/fidelity"
	"moontide/trace"
)

// judged has one aspect that passes, one that fails by 50 limits, and one that is not
// applicable.
func judged() Fidelity {
	some := trace.Some[float64]
	aspect := func(name string, bound float64) fidelity.Aspect {
		return fidelity.Aspect{Key: name, Name: name, Relative: true, Bound: bound}
	}
	return Fidelity{SourceName: "source", DrawnName: "<drawn>", Report: &fidelity.Report{
		Source: &fidelity.Trace{}, Drawn: &fidelity.Trace{}, Results: []fidelity.Result{
			{Aspect: aspect("near", 0.02), Source: some(1), Drawn: some(1.01), Gap: some(0.01), Floor: some(0.02), Limit: some(0.04), Outcome: fidelity.Passed},
			{Aspect: aspect("far", 0.02), Source: some(1), Drawn: some(2), Gap: some(1), Floor: some(0.001), Limit: some(0.02), Outcome: fidelity.Failed},
			{Aspect: aspect("neither", 0.02), Outcome: fidelity.NotApplicable, Reason: "no sessions"},
		},
	}}
}

// Every aspect with a gap has a row, the first at the top, and no point is beyond the
// axis.
func TestFidelityFigure(t *testing.T) {
	fig := judged().figure()
	if want := []string{"far", "near"}; !slices.Equal(fig.Y.Names, want) {
		t.Errorf("rows are %q, want %q", fig.Y.Names, want)
	}
	of := map[string][]float64{}
	for _, s := range fig.Series {
		for i, x := range s.X {
			if x > *fig.X.Max {
				t.Errorf("%s %v of %s is beyond the axis, which ends at %v", s.Name, x, fig.Y.Names[int(s.Y[i])], *fig.X.Max)
			}
		}
		of[s.Name] = s.X
	}
	for name, want := range map[string][]float64{
		"gap": {0.25}, "gap beyond the limit": {mostOfLimit}, "noise floor": {0.05, 0.5}, "bound": {1, 0.5},
	} {
		if !slices.EqualFunc(of[name], want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%s: %v of the limit, want %v", name, of[name], want)
		}
	}
	if label := fig.Series[2].Labels[0]; label != "5000 % of the limit" {
		t.Errorf("the gap outside is labelled %q", label)
	}
}

func TestFidelityVerdict(t *testing.T) {
	v := judged().verdict()
	if v.Level != "FAIL" || len(v.Evidence) != 1 || v.Evidence[0].Text != "far: gap 100.0 %, limit 2.0 %" {
		t.Errorf("%s: %+v", v.Level, v.Evidence)
	}
	f := judged()
	f.Results[1] = fidelity.Result{Aspect: f.Results[1].Aspect, Source: f.Results[1].Source, Outcome: fidelity.Failed, Reason: "drawn trace: no sessions"}
	if v := f.verdict(); len(v.Evidence) != 1 || v.Evidence[0].Text != "far: drawn trace: no sessions" {
		t.Errorf("%s: %+v", v.Level, v.Evidence)
	}
}

// Blocks count as copies only if both traces do not merely number them one after another.
func TestFidelityVerdictOnCopies(t *testing.T) {
	f := judged()
	f.Results = nil
	for _, test := range []struct {
		sequential bool
		want       string
	}{
		{false, "novelty: the longest runs copied from the source have 600 rows and 10 blocks"},
		{true, "novelty: the longest run copied from the source has 600 rows"},
	} {
		f.Novelty = fidelity.Novelty{Rows: 600, MaxRows: 5, Blocks: 10, Sequential: test.sequential}
		if v := f.verdict(); len(v.Evidence) != 1 || v.Evidence[0].Text != test.want {
			t.Errorf("sequential %v: %+v, want %q", test.sequential, v.Evidence, test.want)
		}
	}
}

// A trace at one instant does not say how long it keeps the engine busy.
func TestFidelityOfOneInstant(t *testing.T) {
	f := judged()
	f.Source, f.Drawn = &fidelity.Trace{}, &fidelity.Trace{}
	for busy, known := range map[float64]bool{.5: true, math.Inf(1): false, math.NaN(): false} {
		f.Engine = FidelityEngine{1, busy, .5}
		notes := strings.Join(f.notes(), "\n")
		if !strings.Contains(notes, "one engine, 1 times as fast") || strings.Contains(notes, "it is busy") != known {
			t.Errorf("busy %v: notes %q", busy, notes)
		}
	}
}
