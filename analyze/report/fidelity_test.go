package report

import (
	"regexp"
	"strings"
	"testing"

	"moontide/analyze"
	"moontide/analyze/fidelity"
	"moontide/analyze/report/doc"
	"moontide/trace"
)

// judged has one aspect that passes, one of two values that fails by one of them, and one
// that is not applicable.
func judged() Fidelity {
	some := trace.Some[float64]
	aspect := func(name, outcome string, gap float64, values ...fidelity.Value) fidelity.Aspect {
		return fidelity.Aspect{
			Key: name, Name: name, Measure: fidelity.Relative, Bound: 0.02, Values: values,
			Gap: some(gap), Floor: some(0.01), Limit: some(0.02), Outcome: outcome,
		}
	}
	nothing := &analyze.Analysis{Arrivals: &analyze.Arrivals{}, Sessions: &analyze.Sessions{}}
	return Fidelity{SourceName: "source", DrawnName: "<drawn>", Report: &fidelity.Report{
		Source: &fidelity.Trace{Analysis: nothing}, Drawn: &fidelity.Trace{Analysis: nothing}, Aspects: []fidelity.Aspect{
			aspect("near", fidelity.Passed, 0.01, fidelity.Value{Name: "near", Source: some(100), Drawn: some(101), Gap: some(0.01)}),
			aspect("far", fidelity.Failed, 1, fidelity.Value{Name: "far", Source: some(100), Drawn: some(200), Gap: some(1)},
				fidelity.Value{Name: "not so far", Source: some(100), Drawn: some(100), Gap: some(0)}),
			{Name: "Neither", Values: []fidelity.Value{{Name: "neither"}}, Outcome: fidelity.NotApplicable, Reason: "no sessions"},
		},
	}}
}

// Every value has a row, with its own result.
func TestFidelityTable(t *testing.T) {
	var b strings.Builder
	if err := (doc.Terminal{Width: 100}).Write(&b, judged().Document()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		`near\s+100\s+101\s+1.0 %\s+1.0 %\s+2.0 %\s+pass`, `far\s+100\s+200\s+100.0 %\s+1.0 %\s+2.0 %\s+FAIL`,
		`not so far\s+100\s+100\s+0.0 %\s+1.0 %\s+2.0 %\s+pass`, `neither\s.*n/a`, `Not compared \(no sessions\): Neither\.`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestFidelityVerdict(t *testing.T) {
	v := judged().verdict()
	if v.Level != "FAIL" || len(v.Evidence) != 1 || v.Evidence[0].Text != "far: gap 100.0 %, limit 2.0 %" {
		t.Errorf("%s: %+v", v.Level, v.Evidence)
	}
	f := judged()
	f.Aspects[1] = fidelity.Aspect{Name: "far", Outcome: fidelity.Failed, Reason: "drawn trace: no sessions"}
	if v := f.verdict(); len(v.Evidence) != 1 || v.Evidence[0].Text != "far: drawn trace: no sessions" {
		t.Errorf("%s: %+v", v.Level, v.Evidence)
	}
}

func TestFidelityVerdictOnCopies(t *testing.T) {
	f := judged()
	f.Aspects = nil
	f.Copied, f.MaxCopied = 600, 5
	if v, want := f.verdict(), "novelty: the longest run copied from the source has 600 rows"; len(v.Evidence) != 1 || v.Evidence[0].Text != want {
		t.Errorf("%+v, want %q", v.Evidence, want)
	}
}
