package report_test

import (
	"regexp"
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
func cached(t *testing.T, rows []trace.Request, capacities ...int) report.Trace {
	t.Helper()
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := report.Trace{Name: "x.jsonl", Analysis: a}
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
func TestTraceWithGaps(t *testing.T) {
	at := trace.Some[float64]
	for _, test := range []struct {
		name string
		rows []trace.Request
		says []string // in the text, words
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
			words := strings.Join(strings.Fields(written(t, data.Document().WriteText)), " ")
			for _, want := range test.says {
				if !strings.Contains(words, want) {
					t.Errorf("%q is not in:\n%s", want, words)
				}
			}
			json, page := written(t, data.JSON), written(t, data.Document().WriteHTML)
			before, _, _ := strings.Cut(page, "<script>")
			if number := regexp.MustCompile(`NaN|Inf\b`).FindString(json + words + before); number != "" {
				t.Errorf("not a number: %s", number)
			}
			if !strings.Contains(page, ">"+test.page+"</text>") {
				t.Errorf("the page has no figure %q", test.page)
			}
			leaves := leavesOf(t, []byte(json))
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
	words := strings.Join(strings.Fields(written(t, data.Document().WriteText)), " ")
	want := "2 blocks hold everything that is still to be reused, including the block in use: from this size on Belady's bound is the infinite hit rate. It may get there a block earlier"
	if !strings.Contains(words, want) {
		t.Errorf("%q is not in:\n%s", want, words)
	}
	if got := leavesOf(t, []byte(written(t, data.JSON)))["cache.room_for_reuse_blocks"]; got != 2.0 {
		t.Errorf("room for reuse is %v", got)
	}
}
