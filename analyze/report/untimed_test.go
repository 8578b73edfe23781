package report_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report"
	"moontide/trace"
)

// TestEveryFormSaysThatTimesAreEstimated: so do the reports of traces side by side.
func TestEveryFormSaysThatTimesAreEstimated(t *testing.T) {
	rows := []trace.Request{
		{Timestamp: trace.Some(0.0), SessionID: "a", InputLength: 600, OutputLength: 5, HashIDs: []uint64{1, 2}},
		{Delay: trace.Some(99.0), SessionID: "a", InputLength: 600, OutputLength: 5, HashIDs: []uint64{1, 2}},
		{Timestamp: trace.Some(50.0), InputLength: 600, OutputLength: 5, HashIDs: []uint64{1, 2}},
	}
	study := cache.NewStudy(cache.Question{})
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: 512, Watch: study.Add, Watched: study.Finish})
	if err != nil {
		t.Fatal(err)
	}
	results, err := study.Results(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := report.Dataset{Name: "t.jsonl", Analysis: a, Cache: &report.Cache{Results: *results}}
	both := report.Comparison{d, d}
	for name, write := range map[string]func(io.Writer) error{
		"text": d.Document().WriteText, "Markdown": d.Document().WriteMarkdown, "HTML": d.Document().WriteHTML,
		"CSV": d.Curves().WriteCSV, "JSON": d.JSON,
		"text of two": both.Document().WriteText, "Markdown of two": both.Document().WriteMarkdown, "HTML of two": both.Document().WriteHTML, "JSON of two": both.JSON,
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{"The times of 1 turn are estimated", "1 turn without a timestamp cannot have been sent at their position in the trace"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, out.String())
			}
		}
		if name == "HTML" && !strings.Contains(text, "The order of 1 turn is estimated from delays") {
			t.Errorf("the figure of hit rates does not say so")
		}
	}
}
