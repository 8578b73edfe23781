package report_test

import (
	"bytes"
	"image/png"
	"slices"
	"strings"
	"testing"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report"
	"moontide/trace"
	"moontide/trace/block"
)

// cached adds the hits of LRU and Belady's bound at the given capacities.
func cached(t *testing.T, rows []trace.Request, capacities ...int) report.Dataset {
	t.Helper()
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := report.Dataset{Name: "x.jsonl", Analysis: a}
	if a.Prefix == nil {
		return data
	}
	var table block.Table
	var sequence cache.Sequence
	for _, r := range rows {
		sequence.Add(table.AppendNumbers(nil, r.HashIDs), r.InputLength, r.SessionID)
	}
	size := a.Prefix.BlockSize.Tokens
	data.Cache = &report.Cache{Results: cache.Results{BlockSize: size, Curve: sequence.Curve(size), RoomForReuse: trace.Some(cache.RoomForReuse(&sequence))}}
	bound, err := cache.Simulate(&sequence, cache.Belady, size, capacities...)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range capacities {
		data.Cache.Points = append(data.Cache.Points,
			cache.Point{Policy: cache.LRU, Capacity: n, Hits: data.Cache.Curve.At(n)},
			cache.Point{Policy: cache.Belady, Capacity: n, Hits: bound[i]})
	}
	return data
}

// If a trace lacks something, every report format explains why.
func TestDatasetWithGaps(t *testing.T) {
	at := trace.Some[float64]
	for _, test := range []struct {
		name string
		rows []trace.Request
		says []string // in the text and the Markdown, words
		null []string // in the JSON
		page string   // in the page: a figure that is present although others are missing
	}{
		{"no ids", []trace.Request{{Timestamp: at(0), InputLength: 600, OutputLength: 5}, {Timestamp: at(1500), InputLength: 700, OutputLength: 9}},
			[]string{"No row has block ids (hash_ids): hit rates, shared prefixes, sessions, and the hits of caches and workers are unknown.", "Inter-arrival CV - needs two gaps", "Average context, observed - tokens no row has block ids"},
			[]string{"block_size", "blocks.total", "cache.infinite.block_hit_rate", "cache.policies", "cache.smallest", "context.observed_mean", "reuse", "sharing", "sessions", "arrivals.cv", "arrivals.grid_ms"},
			"Output sequence length"},
		{"no timestamps", []trace.Request{{InputLength: 600, OutputLength: 5, HashIDs: []uint64{1, 2}}, {InputLength: 700, OutputLength: 9, HashIDs: []uint64{1, 3}}},
			[]string{"Duration - s no row has a timestamp", "Reuse interval, median - s no row has a timestamp", "Arrival to next turn, median - s turns have no times"},
			[]string{"duration_ms", "arrivals.rate", "arrivals.peak_1s", "arrivals.first_ms", "reuse.time_ms", "sessions.gap_ms"},
			"Hit rate against cache size"},
		{"one row", []trace.Request{{Timestamp: at(7), InputLength: 600, OutputLength: 5, HashIDs: []uint64{1, 2}}},
			[]string{"Request rate - req/s all at the same time", "no cache of any size would hit", "Correlation of ISL and OSL - all lengths are equal",
				"Reuse interval, median - s no block is reused", "Arrival to next turn, median - s no second turn"},
			[]string{"arrivals.rate", "arrivals.cv", "lengths.pearson", "reuse.time_ms", "reuse.requests", "cache.smallest"},
			"Output sequence length"},
		{"one time, no answers", slices.Repeat([]trace.Request{{Timestamp: at(3), InputLength: 600, HashIDs: []uint64{1, 2}}}, 9),
			[]string{"Request rate - req/s all at the same time", "ISL / OSL, of the sums - no answer has tokens", "Index of dispersion, 1 s - needs two such windows"},
			[]string{"arrivals.rate", "arrivals.cv", "arrivals.dispersion_1s", "lengths.isl_per_osl", "lengths.ratios", "arrivals.grid_ms"},
			"Reuse intervals"},
		{"empty prompts", []trace.Request{{Timestamp: at(3), HashIDs: []uint64{1}}, {Timestamp: at(9), HashIDs: []uint64{1}}},
			[]string{"Token hit rate - %", "of 1 first block", "Shared prefix ratio, observed - % no prompt has tokens"},
			[]string{"cache.infinite.token_hit_rate", "cache.smallest", "context.observed_shared_ratio"},
			"Input sequence length"},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := cached(t, test.rows, 1, 2)
			var text, markdown, page, picture, json bytes.Buffer
			for _, err := range []error{data.Document().WriteText(&text), data.Document().WriteMarkdown(&markdown), data.Document().WriteHTML(&page), data.Document().WritePNG(&picture), data.JSON(&json)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			words := strings.Join(strings.Fields(text.String()), " ")
			cells := strings.Join(strings.Fields(strings.NewReplacer("|", " ", "\\", "").Replace(markdown.String())), " ")
			for _, want := range test.says {
				if !strings.Contains(words, want) {
					t.Errorf("%q is not in:\n%s", want, text.String())
				}
				if !strings.Contains(cells, want) {
					t.Errorf("%q is not in:\n%s", want, markdown.String())
				}
			}
			for name, form := range map[string]string{"text": words, "Markdown": cells, "page": unscripted(page.String()), "JSON": json.String()} {
				if strings.Contains(form, "NaN") || strings.Contains(form, "Inf") {
					t.Errorf("%s has a number that is none:\n%s", name, form)
				}
			}
			if !strings.Contains(page.String(), ">"+test.page+"</text>") {
				t.Errorf("the page has no figure %q", test.page)
			}
			if _, err := png.Decode(&picture); err != nil {
				t.Error(err)
			}
			leaves := leavesOf(t, json.Bytes())
			for _, key := range test.null {
				if value, ok := leaves[key]; !ok || value != nil {
					t.Errorf("%s is %v, there: %v", key, value, ok)
				}
			}
		})
	}
}

// The bound may need one block less than a cache that must admit every block;
// the report explains both facts.
func TestRoomForReuse(t *testing.T) {
	row := func(ids ...uint64) trace.Request { return trace.Request{InputLength: 512 * len(ids), HashIDs: ids} }
	// Block 1 is used again after 2, which is not.
	data := cached(t, []trace.Request{row(1, 2), row(1, 3), row(1, 3)}, 1, 2, 3)
	var text, json bytes.Buffer
	if err := data.Document().WriteText(&text); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(text.String()), " ")
	want := "2 blocks hold everything that is still to be reused, including the block in use: from this size on Belady's bound is the infinite hit rate. It may get there a block earlier"
	if !strings.Contains(words, want) {
		t.Errorf("%q is not in:\n%s", want, text.String())
	}
	if err := data.JSON(&json); err != nil {
		t.Fatal(err)
	}
	if got := leavesOf(t, json.Bytes())["cache.room_for_reuse_blocks"]; got != 2.0 {
		t.Errorf("room for reuse is %v", got)
	}
	data.Cache.RoomForReuse = trace.Opt[int]{}
	text.Reset()
	if err := data.Document().WriteText(&text); err != nil || strings.Contains(text.String(), "still to be reused") {
		t.Errorf("it speaks of a bound that nobody asked for: %v\n%s", err, text.String())
	}
}

// unscripted returns a page without its own script.
func unscripted(page string) string {
	before, _, _ := strings.Cut(page, "<script>")
	return before
}

// A page works with any file name and loads nothing.
func TestPageIsHarmlessAndWhole(t *testing.T) {
	data := cached(t, fullTrace(), 1, 2)
	data.Name = `<script src="http://x/y.js">&"'</style>.jsonl`
	data.Cache.Arithmetic, data.Cache.BytesPerToken = `<b onclick="x()">`, 2
	var page bytes.Buffer
	if err := data.Document().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	text, script, _ := strings.Cut(page.String(), "<script>")
	if strings.Count(script, "<script") > 0 {
		t.Error("the page has several scripts")
	}
	for _, bad := range []string{"<script", "<b ", "<link", "<img", "<iframe", "@import", "url(", "src=", "href="} {
		if strings.Contains(strings.ReplaceAll(text, "src=&#34;", ""), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if n := strings.Count(page.String(), "&lt;script src=&#34;http://x/y.js&#34;&gt;&amp;&#34;&#39;&lt;/style&gt;.jsonl"); n != 2 {
		t.Errorf("its title and its subject do not name the trace: %d", n)
	}
	if n := strings.Count(page.String(), "</style>"); n != 1 {
		t.Errorf("%d ends of style", n)
	}
	if n := strings.Count(page.String(), `<div class=figures>`); n != 1 || strings.Count(page.String(), "<svg") != 5 {
		t.Errorf("%d groups of figures, %d figures", n, strings.Count(page.String(), "<svg"))
	}
}
