package report

import (
	"math"
	"slices"
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
	if len(f.Series) != 2 || f.Series[0].Name != "a b" || f.Series[1].Name != "c" {
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
		for _, row := range c.sheet().Rows {
			for _, f := range row.Figures {
				all = append(all, f.Title)
			}
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
	if f := mixed.figures()[2]; len(f.Series) != 1 || f.Series[0].Name != "ids" || f.Y.Quantity != figure.Percent {
		t.Errorf("lines %+v", f.Series)
	}
}
