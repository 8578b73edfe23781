package report

import (
	"slices"
	"testing"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report/doc"
	"moontide/analyze/report/figure"
	"moontide/trace"
	"moontide/trace/stats"
)

func figuresOf(t *testing.T, rows []trace.Request) (titles []string) {
	t.Helper()
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range (Dataset{Name: "x", Analysis: a}).figures() {
		titles = append(titles, f.Title)
		if len(f.Series) == 0 || f.X.Label == "" || f.Y.Label == "" || f.X.Unit == "" && f.X.Quantity == figure.Number && f.Title != "Input tokens for each output token" {
			t.Errorf("figure %q has no series, label or unit: %+v", f.Title, f.X)
		}
	}
	return titles
}

func TestDatasetFigures(t *testing.T) {
	at := trace.Some[float64]
	lengths := []string{"Input sequence length", "Output sequence length"}
	ratio, reuse := "Input tokens for each output token", "Reuse intervals"
	for _, test := range []struct {
		name   string
		rows   []trace.Request
		titles []string
	}{
		{"everything", []trace.Request{{Timestamp: at(0), InputLength: 5, OutputLength: 1, HashIDs: []uint64{1}}, {Timestamp: at(9), InputLength: 5, OutputLength: 1, HashIDs: []uint64{1}}},
			append(lengths, ratio, reuse)},
		{"bare", []trace.Request{{InputLength: 5}}, lengths},
		{"one row", []trace.Request{{Timestamp: at(4), InputLength: 5, OutputLength: 1, HashIDs: []uint64{1}}}, append(lengths, ratio)},
		{"no times", []trace.Request{{InputLength: 5, OutputLength: 1, HashIDs: []uint64{1}}, {InputLength: 5, OutputLength: 1, HashIDs: []uint64{1}}}, append(lengths, ratio)},
	} {
		if titles := figuresOf(t, test.rows); !slices.Equal(titles, test.titles) {
			t.Errorf("%s: figures %q", test.name, titles)
		}
	}
}

func marksOf(f figure.Figure) (labels []string) {
	for _, m := range f.Marks {
		labels = append(labels, m.Label)
	}
	return labels
}

func TestHistogramFigure(t *testing.T) {
	spread := histogram("T", "ISL", "tokens", stats.Of([]float64{0, 0, 1, 50, 5000, 123_456}), 1)
	if !spread.X.Log || spread.Note != "2 of value 0 are not on the log axis" || spread.Series[0].X[0] != 1 {
		t.Errorf("zeros on a log axis: %+v", spread)
	}
	if got := marksOf(spread); !slices.Equal(got, []string{"median 25.5", "p99 117,533"}) {
		t.Errorf("marks %q", got)
	}
	seconds := histogram("T", "Time", "", stats.Of([]float64{1000, 3000}), 1000)
	seconds.X.Quantity = figure.Duration
	nameMarks(&seconds)
	if got := marksOf(seconds); !slices.Equal(got, []string{"median 2 s", "p99 2.98 s"}) {
		t.Errorf("marks %q", got)
	}
	for _, value := range []float64{0, 600} {
		alike := histogram("T", "ISL", "tokens", stats.Of([]float64{value, value, value}), 1)
		x := alike.Series[0].X
		if len(alike.Series[0].Y) != 1 || alike.Series[0].Y[0] != 3 || x[0] > value || x[1] < value || *alike.X.Min != 0 || x[1]-x[0] > *alike.X.Max/25 {
			t.Errorf("all %v: %+v on %v to %v", value, alike.Series[0], *alike.X.Min, *alike.X.Max)
		}
		if got := marksOf(alike); !slices.Equal(got, []string{"all " + doc.Fixed(value, 0)}) {
			t.Errorf("marks %q", got)
		}
	}
	if none := histogram("T", "ISL", "tokens", stats.Sample{}, 1); len(none.Series)+len(none.Marks) != 0 {
		t.Errorf("no values: %+v", none)
	}
	for n, want := range map[int]int{1: 1, 4: 10, 100: 20, 900: 60, 100_000: 60} {
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(i)/float64(n) + 1
		}
		if got := len(binsOf(stats.Of(values)).Edges) - 1; got != want {
			t.Errorf("%d values get %d columns, want %d", n, got, want)
		}
	}
}

func TestCacheFigure(t *testing.T) {
	var s cache.Sequence
	for i := range uint32(5000) { // every block twice, 5,000 blocks apart
		s.Add([]uint32{i}, 16, "")
	}
	for i := range uint32(5000) {
		s.Add([]uint32{i}, 16, "")
	}
	hits := cache.Hits{Blocks: 4, HitBlocks: 1}
	c := &Cache{cache.Results{BlockSize: 16, Curve: s.Curve(16), Points: []cache.Point{{Policy: cache.Belady, Hits: hits}, {Policy: cache.Belady, Capacity: 100, Hits: hits}, {Policy: cache.FIFO, Capacity: 200, Hits: hits}}}}
	f := c.figure()
	var names []string
	for _, s := range f.Series {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"LRU", "FIFO", "Belady's bound"}) {
		t.Errorf("series %q", names)
	}
	if f.Series[0].Kind != figure.Line {
		t.Error("a curve of which not every size is drawn has steps")
	}
	lru := f.Series[0].X
	if lru[0] < 5*16 || lru[0] > 6*16 || lru[len(lru)-1] != 5000*16 {
		t.Errorf("LRU from %v to %v tokens, want from a thousandth of 80,000 to all", lru[0], lru[len(lru)-1])
	}
	c.Points[1].Capacity, c.BytesPerToken = 2, 1024
	if f = c.figure(); f.Series[0].X[0] != 2*16*1024 || f.X.Quantity != figure.Bytes {
		t.Errorf("LRU from %v, want from the smallest that was asked for, in bytes", f.Series[0].X[0])
	}
}

func TestFigureOfASmallCurve(t *testing.T) {
	var s cache.Sequence
	s.Add([]uint32{0, 1}, 32, "")
	s.Add([]uint32{0, 1}, 32, "")
	f := (&Cache{cache.Results{BlockSize: 16, Curve: s.Curve(16)}}).figure()
	if lru := f.Series[0]; lru.Kind != figure.Steps || !slices.Equal(lru.X, []float64{16, 32}) || !slices.Equal(lru.Y, []float64{0.25, 0.5}) {
		t.Errorf("%+v, want steps at 16 and 32 tokens", lru)
	}
}
