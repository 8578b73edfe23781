package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"moontide/analyze"
	"moontide/analyze/report/figure"
	"moontide/trace"
	"moontide/trace/stats"
)

func TestCumulative(t *testing.T) {
	lengths := func(name string, isl ...float64) Dataset {
		return Dataset{Name: name, Analysis: &analyze.Analysis{ISL: stats.Of(isl)}}
	}
	f := Comparison{lengths("a\nb", 0, 10, 20, 30, 40), lengths("c", 5), lengths("none")}.
		cumulative("title", "ISL", func(d Dataset) stats.Sample { return d.Analysis.ISL })
	if len(f.Series) != 3 || f.Series[0].Name != "a b" || f.Series[1].Name != "c" || f.Series[2].Name != "" {
		t.Fatalf("series %+v", f.Series)
	}
	line := f.Series[0]
	last := len(line.X) - 1
	if line.X[0] <= 0 || line.X[last] != 40 || line.Y[last] != 1 || !slices.IsSorted(line.X) || !slices.IsSorted(line.Y) {
		t.Errorf("from %v at %v to %v at %v", line.Y[0], line.X[0], line.Y[last], line.X[last])
	}
	if i := slices.Index(line.X, 20); i < 0 || math.Abs(line.Y[i]-0.5) > 1e-9 {
		t.Errorf("half of the values are not at most the median: %v, %v", line.X, line.Y)
	}
}

// Traces without block ids are compared by their lengths alone; with them, there
// is a line for each trace that has them.
func TestComparisonFigures(t *testing.T) {
	dataset := func(name string, rows ...trace.Request) Dataset {
		a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return Dataset{Name: name, Analysis: a}
	}
	titles := func(c Comparison) (all []string) {
		for _, f := range c.figures() {
			all = append(all, f.Title)
		}
		return all
	}
	bare := dataset("bare", trace.Request{InputLength: 5, OutputLength: 2})
	withIDs := dataset("ids", trace.Request{InputLength: 5, OutputLength: 2, HashIDs: []uint64{1}}, trace.Request{InputLength: 5, OutputLength: 2, HashIDs: []uint64{1}})
	lengths := []string{"Input sequence length", "Output sequence length"}
	if got := titles(Comparison{bare, bare}); !slices.Equal(got, lengths) {
		t.Errorf("without ids: %q", got)
	}
	mixed := Comparison{bare, withIDs}
	if got := titles(mixed); !slices.Equal(got, append(lengths, "Observed context")) {
		t.Errorf("with ids: %q", got)
	}
	if f := mixed.figures()[2]; len(f.Series) != 2 || f.Series[0].Name != "" || f.Series[1].Name != "ids" || f.Note != "only ids" || f.Y.Quantity != figure.Percent {
		t.Errorf("lines %+v, note %q", f.Series, f.Note)
	}
}

// Each trace has one line, of one colour, in every figure of what happens over time.
func TestComparisonOverTime(t *testing.T) {
	timed := Dataset{Name: "timed", Analysis: growing(t)}
	bare := Dataset{Name: "bare", Analysis: &analyze.Analysis{ISL: stats.Of([]float64{3}), OSL: stats.Of([]float64{3})}}
	titles := []string{"Arrivals over time", "ISL over time", "OSL over time", "Token hit rate over time"}
	for _, f := range (Comparison{timed, bare, timed}).overTime() {
		if f.Title != titles[0] || len(f.Series) != 3 || f.Series[0].Name != "timed" || len(f.Series[1].X) > 0 || len(f.Series[2].X) < 50 || f.X.Log {
			t.Errorf("%s: %d lines", f.Title, len(f.Series))
		}
		titles = titles[1:]
		if x := f.Series[0].X; x[0] != 0 || x[len(x)-1] < 3500 || x[len(x)-1] > 3600 {
			t.Errorf("%s: from %v to %v s", f.Title, x[0], x[len(x)-1])
		}
	}
	if len(titles) > 0 {
		t.Errorf("not drawn: %q", titles)
	}
	if got := (Comparison{bare, bare}).overTime(); got != nil {
		t.Errorf("%d figures without times", len(got))
	}
}

// Rows in which fewer than two traces have a value are left out, and named.
func TestComparableRows(t *testing.T) {
	bare := Dataset{Name: "bare", Analysis: &analyze.Analysis{Requests: 1, ISL: stats.Of([]float64{3}), OSL: stats.Of([]float64{3})}}
	var text bytes.Buffer
	if err := (Comparison{bare, {Name: "timed", Analysis: growing(t)}}).Document().WriteText(&text); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(text.String()), " ")
	if strings.Contains(got, " - ") || !strings.Contains(got, "fewer than two traces have a value: duration, s; rate, req/s;") {
		t.Errorf("got\n%s", text.String())
	}
}
