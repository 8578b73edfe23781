package report

import (
	"fmt"
	"slices"
	"testing"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report/figure"
	"moontide/trace"
	"moontide/trace/stats"
)

// dataset analyzes rows.
func traceOf(t *testing.T, name string, rows ...trace.Request) Trace {
	t.Helper()
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Trace{Name: name, Analysis: a}
}

// Figures are drawn of what traces have values of: of one, and of several in the same.
func TestTraceFigures(t *testing.T) {
	at := trace.Some[float64]
	lengths := []string{"Input sequence length", "Output sequence length"}
	ratio := "Input tokens for each output token"
	bare := traceOf(t, "bare", trace.Request{InputLength: 5, OutputLength: 2})
	ids := traceOf(t, "ids", trace.Request{InputLength: 5, OutputLength: 2, HashIDs: []uint64{1}}, trace.Request{InputLength: 5, OutputLength: 2, HashIDs: []uint64{1}})
	timed := traceOf(t, "timed", trace.Request{Timestamp: at(0), InputLength: 5, OutputLength: 1, HashIDs: []uint64{1}}, trace.Request{Timestamp: at(9), InputLength: 5, OutputLength: 1, HashIDs: []uint64{1}})
	over := []string{"Arrivals over time", "ISL over time", "OSL over time"}
	grows := Trace{Name: "grows", Analysis: growing(t)}
	for name, test := range map[string]struct {
		figures []figure.Figure
		want    []string
	}{
		"no answers": {traceOf(t, "x", trace.Request{InputLength: 5}).figures(), lengths},
		"bare":       {bare.figures(), append(lengths, ratio)},
		"no times":   {ids.figures(), append(lengths, ratio)},
		"timed":      {timed.figures(), append(lengths, ratio, "Reuse intervals")},
		"two bare":   {Traces{bare, bare}.figures(), lengths},
		"mixed":      {Traces{bare, ids}.figures(), append(lengths, "Observed context")},
		"grows":      {grows.figures()[3:6], over},
	} {
		var titles []string
		for _, f := range test.figures {
			titles = append(titles, f.Title)
			if len(f.Series) == 0 || f.X.Label == "" || f.Y.Label == "" || f.X.Unit == "" && f.X.Quantity == figure.Number && f.Title != ratio {
				t.Errorf("%s: figure %q has no series, label or unit: %+v", name, f.Title, f.X)
			}
		}
		if !slices.Equal(titles, test.want) {
			t.Errorf("%s: figures %q, want %q", name, titles, test.want)
		}
	}
	if f := (Traces{bare, ids}).figures()[2]; len(f.Series) != 2 || f.Series[0].Name != "" || f.Series[1].Name != "ids" || f.Note != "only ids" || f.Y.Quantity != figure.Percent {
		t.Errorf("lines %+v, note %q", f.Series, f.Note)
	}
	// Each trace has one line, of one colour, in every figure of what happens over time.
	all := Traces{grows, bare, grows}.figures()
	for _, title := range over {
		i := slices.IndexFunc(all, func(f figure.Figure) bool { return f.Title == title })
		if i < 0 || len(all[i].Series) != 3 || all[i].Series[0].Name != "grows" || len(all[i].Series[1].X) > 0 {
			t.Errorf("%s: figure %d", title, i)
		} else if x := all[i].Series[0].X; x[0] != 0 || x[len(x)-1] < 3500 || x[len(x)-1] > 3700 {
			t.Errorf("%s: from %v to %v s", title, x[0], x[len(x)-1])
		}
	}
}

func TestOverlay(t *testing.T) {
	lengths := figure.Axis{Label: "ISL", Unit: "tokens"}
	f := overlay("title", lengths, "Requests", []string{"a\nb", "c", "none"}, []stats.Sample{stats.Of([]float64{10, 20, 30, 40, 50}), stats.Of([]float64{5}), {}})
	if len(f.Series) != 3 || f.Series[0].Name != "a b" || f.Series[1].Name != "c" || f.Series[2].Name != "" {
		t.Fatalf("series %+v", f.Series)
	}
	line := f.Series[0]
	last := len(line.X) - 1
	if line.X[last] != 50 || line.Y[last] != 1 || !slices.IsSorted(line.X) || !slices.IsSorted(line.Y) {
		t.Errorf("%v, %v", line.X, line.Y)
	}
	if i := slices.Index(line.X, 30); i < 0 || line.Y[i] != 0.6 {
		t.Errorf("three of five values are at most 30: %v, %v", line.X, line.Y)
	}
}

// A histogram has all values, negligible ones in its first column.
func TestHistogram(t *testing.T) {
	tokens, time := figure.Axis{Unit: "tokens"}, figure.Axis{Quantity: figure.Duration}
	values := make([]float64, 2000)
	for i := range values {
		values[i] = float64(1 + i%50)
	}
	values[0], values[1] = 0, 100_000
	f := histogram("T", tokens, "Requests", stats.Of(values))
	sum := 0.0
	for _, y := range f.Series[0].Y {
		sum += y
	}
	if x := f.Series[0].X; !f.X.Log || sum != 2000 || x[0] <= 0 || x[len(x)-1] != 100_000 {
		t.Errorf("%v of %d values from %v to %v: %q", sum, len(values), x[0], x[len(x)-1], f.Note)
	}
	var labels []string
	for _, m := range histogram("T", time, "Requests", stats.Of([]float64{1000, 3000})).Marks {
		labels = append(labels, m.Label)
	}
	if got := fmt.Sprint(labels); got != "[median 2 s p99 2.98 s mean 2 s p25 1.5 s p75 2.5 s]" {
		t.Errorf("marks %s", got)
	}
	for _, value := range []float64{0, 600} {
		alike := histogram("T", tokens, "Requests", stats.Of([]float64{value, value, value})).Series[0]
		if len(alike.Y) != 1 || alike.Y[0] != 3 || alike.X[0] >= value || alike.X[1] <= value {
			t.Errorf("all %v: %+v", value, alike)
		}
	}
	if none := histogram("T", tokens, "Requests", stats.Sample{}); len(none.Series)+len(none.Marks) != 0 {
		t.Errorf("no values: %+v", none)
	}
	for n, want := range map[int]int{2: 8, 100: 20, 900: 60, 100_000: 60} {
		if got := len(extent{low: 1, high: 2}.edges(n, false)) - 1; got != want {
			t.Errorf("%d values get %d columns, want %d", n, got, want)
		}
	}
}

func TestCacheFigure(t *testing.T) {
	curve := func(blocks uint32) *Cache { // every block twice, all others between
		var s cache.Sequence
		for range 2 {
			for i := range blocks {
				s.Add([]uint32{i}, 16, "")
			}
		}
		return &Cache{cache.Results{BlockSize: 16, Curve: s.Curve(16)}}
	}
	hits := cache.Hits{Blocks: 4, HitBlocks: 1}
	c := curve(5000)
	c.Points = []cache.Point{{Policy: cache.Belady, Hits: hits}, {Policy: cache.Belady, Capacity: 100, Hits: hits}, {Policy: cache.FIFO, Capacity: 200, Hits: hits}}
	f := c.figure()
	var names []string
	for _, s := range f.Series {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"LRU", "FIFO", "Belady's bound"}) || f.Series[0].Kind != figure.Line {
		t.Errorf("series %q", names)
	}
	lru := f.Series[0].X
	if lru[0] < 5*16 || lru[0] > 6*16 || lru[len(lru)-1] != 5000*16 {
		t.Errorf("LRU from %v to %v tokens, want from a thousandth of 80,000 to all", lru[0], lru[len(lru)-1])
	}
	c.Points[1].Capacity, c.BytesPerToken = 2, 1024
	if f = c.figure(); f.X.Quantity != figure.Bytes {
		t.Errorf("LRU from %v, want bytes", f.Series[0].X[0])
	}
	if lru := curve(2).figure().Series[0]; lru.Kind != figure.Steps || !slices.Equal(lru.X, []float64{16, 32}) {
		t.Errorf("%+v, want steps at 16 and 32 tokens", lru)
	}
}
