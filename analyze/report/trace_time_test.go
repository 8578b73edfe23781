package report

import (
	"bytes"
	"strings"
	"testing"

	"moontide/analyze"
	"moontide/analyze/report/figure"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// growing has prompts that get longer, and twice the rate from half of its hour on.
func growing(t *testing.T) *analyze.Analysis {
	t.Helper()
	var rows []trace.Request
	for at := 0.0; at < 3600e3; at += 1000 {
		rows = append(rows, trace.Request{
			Timestamp: trace.Some(at + float64(len(rows)%7)), OutputLength: 100,
			InputLength: 1000 + int(at/2000) + len(rows)*31%200, HashIDs: []uint64{uint64(len(rows) % 9), 100},
		})
		if at < 1800e3 {
			at += 1000
		}
	}
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestChangeSentence(t *testing.T) {
	if got, want := changeSentence(growing(t).Time), "The last third has 2.00 times the rate, 1.86 times the ISL, and 1.00 times the OSL of the first."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each window is in JSON, and each figure shows all of them.
func TestTimeIsInEveryForm(t *testing.T) {
	a := growing(t)
	var text bytes.Buffer
	if err := (Trace{Name: "t", Analysis: a}).JSON(&text); err != nil {
		t.Fatal(err)
	}
	tracetest.Golden(t, "testdata/dataset_growing.json", text.String())
	figures := timeFigures(a)
	if len(figures) != 4 || len(figures[3].Series) != 2 {
		t.Fatalf("figures %+v", figures)
	}
	if isl := figures[1].Series[0]; isl.Kind != figure.Steps || len(isl.X) != len(a.Time.Windows)+1 || len(isl.Y) != len(isl.X) {
		t.Errorf("%d windows are drawn as %d steps", len(a.Time.Windows), len(isl.X)-1)
	}
}

func TestGridSentence(t *testing.T) {
	for _, test := range []struct {
		name     string
		requests int
		grid     trace.Grid
		says     string
	}{
		{"bursts", 1000, trace.Grid{Step: 3000, Ticks: 899, Steps: 898}, "bursts that did not occur in production"},
		{"a metronome", 1000, trace.Grid{Step: 3000, Ticks: 1000, Steps: 999}, "constant rate"},
		{"hardly any together", 1000, trace.Grid{Step: 3000, Ticks: 900, Steps: 4000}, "adds no bursts"},
	} {
		if got := gridSentence(&analyze.Arrivals{Requests: test.requests, Grid: &test.grid}); !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, want %q", test.name, got, test.says)
		}
	}
}
