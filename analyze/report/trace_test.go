package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report"
	"moontide/trace"
	"moontide/trace/block"
	"moontide/trace/check"
	"moontide/trace/stats"
	"moontide/trace/tracetest"
)

// fullTrace contains every feature of a trace: shared prefixes, partial tails,
// equal times, declarations, a row without time and without ids.
func fullTrace() []trace.Request {
	row := func(ms float64, isl, osl, context int, ids ...uint64) trace.Request {
		return trace.Request{
			Timestamp: trace.Some(ms), InputLength: isl, OutputLength: osl, HashIDs: ids,
			ContextLen: trace.Some(context), UniquePromptLen: trace.Some(isl - context),
		}
	}
	return []trace.Request{
		row(0, 1000, 10, 512, 0, 1),
		row(0, 1025, 20, 1024, 0, 1, 2),
		row(2000, 600, 30, 512, 0, 3),
		row(4000, 1000, 40, 512, 0, 1),
		{InputLength: 1375, OutputLength: 0, SessionID: "a", Delay: trace.Some(5.0)},
	}
}

// changingTrace has answers that get longer after half of its time, which is an hour
// of the clock times a factor, and turns whose times are estimated.
func changingTrace(clock float64) (rows []trace.Request) {
	for i := range 1200 {
		r := trace.Request{
			Timestamp: trace.Some(clock * 3000 * float64(i)), SessionID: fmt.Sprint("s", i),
			InputLength: 1000 + i%7, OutputLength: 100 + i%5, HashIDs: []uint64{uint64(i % 3), uint64(10 + i)},
		}
		if i >= 600 {
			r.OutputLength *= 2
		}
		rows = append(rows, r)
		if i%4 == 0 {
			rows = append(rows, trace.Request{SessionID: r.SessionID, Delay: trace.Some(clock * 100), InputLength: 1010 + i%3, OutputLength: r.OutputLength, HashIDs: r.HashIDs})
		}
	}
	return rows
}

// bareTrace has lengths only.
func bareTrace() []trace.Request { return []trace.Request{{InputLength: 7, OutputLength: 1}} }

func TestTraceText(t *testing.T) {
	for name, rows := range map[string][]trace.Request{"full": fullTrace(), "bare": bareTrace(), "changing": changingTrace(1)} {
		d := report.Trace{Name: "example.jsonl", Analysis: analyzed(t, rows)}
		tracetest.Golden(t, "testdata/dataset_"+name+".txt", written(t, d.Document().WriteText))
	}
}

// The text states the source of the block size.
func TestTraceTextExplainsTheBlockSize(t *testing.T) {
	row := func(isl int, ids ...uint64) trace.Request { return trace.Request{InputLength: isl, HashIDs: ids} }
	for _, test := range []struct {
		name string
		size int
		rows []trace.Request
		want string
	}{
		{"detected", 0, []trace.Request{row(33, 1, 2, 3), row(41, 1, 2, 4, 5), row(12, 8, 9)}, "11 tokens detected"},
		{"given", 64, []trace.Request{row(33, 1, 2, 3)}, "64 tokens given"},
		{"a range", 0, []trace.Request{row(1000, 1, 2)}, "every size from 500 to 999 tokens fits"},
		{"no upper bound", 0, []trace.Request{row(300, 1)}, "every size from 300 tokens up fits"},
		{"contradiction", 0, []trace.Request{row(1000, 1, 2), row(10, 1, 2)}, "no single size fits"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := analyze.Trace(trace.FromSlice(test.rows), analyze.Options{BlockSize: test.size})
			if err != nil {
				t.Fatal(err)
			}
			if words := strings.Join(strings.Fields(written(t, report.Trace{Name: "x", Analysis: a}.Document().WriteText)), " "); !strings.Contains(words, test.want) {
				t.Errorf("%q is not in:\n%s", test.want, words)
			}
		})
	}
}

// flatten stores the leaves of decoded JSON under their paths.
func flatten(prefix string, value any, into map[string]any) {
	if object, ok := value.(map[string]any); ok {
		for key, member := range object {
			flatten(prefix+"."+key, member, into)
		}
		return
	}
	into[strings.TrimPrefix(prefix, ".")] = value
}

func traceJSON(t *testing.T, name string, a *analyze.Analysis) (text string, leaves map[string]any) {
	t.Helper()
	var out bytes.Buffer
	if err := (report.Trace{Name: name, Analysis: a}).JSON(&out); err != nil {
		t.Fatal(err)
	}
	return out.String(), leavesOf(t, out.Bytes())
}

func leavesOf(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	leaves := map[string]any{}
	flatten("", decoded, leaves)
	return leaves
}

// The numbers of fullTrace by hand: ISL 600 1000 1000 1025 1375 have mean 1000 and squares of
// deviations 160000 625 140625. Hits: 0, 2 of 3, 1 of 2, 2 of 2 blocks: 5 of 9; of 3625 tokens
// 1024 + 512 + 1000. Context: 1000, 1024, 512, 1000. Steps 0, 2000, 2000: mean 4000/3,
// deviation 2000 * sqrt(2)/3. Windows of a second hold 2, 0, 1, 0: mean 0.75, variance 0.6875.
// Deviations of lengths 0 25 -400 0 375 and -10 0 10 20 -20, ranks 2.5 4 1 2.5 5 and 2 3 4 5 1.
// Ratios 20, 25, 51.25, 100. Block 0 is used again after 0, 2000 and 2000 ms, block 1 after 0
// and 4000.
func TestTraceJSON(t *testing.T) {
	text, _ := traceJSON(t, "example.jsonl", analyzed(t, fullTrace()))
	tracetest.Golden(t, "testdata/dataset_full.json", text)
}

// Histograms hold every value, between its smallest and its largest.
func TestTraceJSONHistograms(t *testing.T) {
	rows := fullTrace()
	for i := range 100 { // for the ratio to span more than a linear axis shows
		rows = append(rows, trace.Request{InputLength: 1 + i*i*i, OutputLength: 1 + i%7})
	}
	_, got := traceJSON(t, "x", analyzed(t, rows))
	for _, key := range []string{"isl", "osl", "lengths.ratios"} {
		edges, counts := got[key+".histogram.edges"].([]any), got[key+".histogram.counts"].([]any)
		sum := 0.0
		for _, n := range counts {
			sum += n.(float64)
		}
		if len(edges) != len(counts)+1 || sum != got[key+".count"] || got[key+".histogram.log"] != true || edges[0] != got[key+".min"] || edges[len(edges)-1].(float64) < got[key+".max"].(float64) {
			t.Errorf("%s: edges %v, counts %v of %v values", key, edges, counts, sum)
		}
	}
}

// Missing values are null under the same key, or under that of the object that
// would contain it.
func TestTraceJSONOfABareTrace(t *testing.T) {
	_, full := traceJSON(t, "x", analyzed(t, fullTrace()))
	_, bare := traceJSON(t, "x", analyzed(t, bareTrace()))
	for key := range full {
		held := key
		value, ok := bare[held]
		for !ok && strings.Contains(held, ".") {
			held = held[:strings.LastIndexByte(held, '.')]
			value, ok = bare[held]
		}
		known := key == "trace" || key == "requests" || key == "lengths.isl_per_osl" || strings.HasPrefix(key, "isl.") || strings.HasPrefix(key, "osl.") || strings.HasPrefix(key, "lengths.ratios") ||
			strings.HasSuffix(key, "_estimated") || key == "lengths.osl_missing"
		switch {
		case !ok:
			t.Errorf("%s is missing", key)
		case known != (value != nil):
			t.Errorf("%s is %v", key, value)
		}
	}
}

// JSON has the number of estimated or missing lengths.
func TestTraceMarks(t *testing.T) {
	marked := func(extra string) trace.Request {
		return trace.Request{InputLength: 7, OutputLength: 2, Extra: []byte(extra)}
	}
	rows := []trace.Request{
		marked(`{"estimated": ["input_length"]}`), marked(`{"estimated": ["input_length", "output_length"]}`), marked(`{"estimated": "input_length"}`),
		marked(`{"missing": ["output_length"], "estimated": ["input_length"]}`), marked(`{"text_input": "\"estimated\""}`), marked(""),
	}
	_, keys := traceJSON(t, "x", analyzed(t, rows))
	for key, want := range map[string]float64{"isl_estimated": 3, "osl_estimated": 1, "osl_missing": 1} {
		if got := keys["lengths."+key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

func TestTraceJSONWritesPlainNumbersAndText(t *testing.T) {
	a := analyzed(t, []trace.Request{
		{Timestamp: trace.Some(0.0), InputLength: 3}, {Timestamp: trace.Some(1e13)}, {Timestamp: trace.Some(3e13)},
	})
	text, _ := traceJSON(t, "a<b>&\"\x01\xff.jsonl", a)
	for _, want := range []string{`"rate": 0.0000000001,`, `"last_ms": 30000000000000,`, `"cv": 0.3333333333333333,`, "\"trace\": \"a<b>&\\\"\\u0001\\ufffd.jsonl\""} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if !strings.HasSuffix(text, "\n}\n") || !strings.Contains(text, "\n  \"isl\": {\n    \"count\": 3,\n    \"mean\": 1,\n") {
		t.Errorf("not indented lines: %s", text)
	}
}

var errFull = errors.New("disk is full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// A block's reuse distance is the smallest LRU cache that would have kept it.
func TestReuseDistance(t *testing.T) {
	var b cache.CurveBuilder
	rows := []trace.Request{
		{InputLength: 1500, HashIDs: []uint64{0, 1, 2}}, {InputLength: 1000, HashIDs: []uint64{3, 4}}, {InputLength: 1500, HashIDs: []uint64{0, 1, 2}},
	}
	a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: 512, Watch: func(r trace.Request, blocks []uint32) { b.Add(blocks, r.InputLength) }})
	if err != nil {
		t.Fatal(err)
	}
	data := report.Trace{Name: "t", Analysis: a, Cache: &report.Cache{Results: cache.Results{BlockSize: 512, Curve: b.Curve(512)}}}
	var text, out bytes.Buffer
	if err := errors.Join(data.Document().WriteText(&text), data.JSON(&out)); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Reuse struct {
			Blocks struct{ P1, P50, P99, Max int }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	// 0, 1 and 2 come back after 3 and 4, used from tail to head: 0 was used last.
	if b := got.Reuse.Blocks; b.P1 != 3 || b.P50 != 4 || b.P99 != 5 || b.Max != 5 {
		t.Errorf("reuse distances %+v, want 3, 4 and 5 blocks", b)
	}
	if !regexp.MustCompile(`Stack distance, median +4 blocks`).MatchString(text.String()) {
		t.Errorf("no median stack distance of 4 blocks in\n%s", text.String())
	}
}

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
			[]string{"Request rate - req/s all at the same time", "ISL / OSL, of the sums - no response has tokens", "Index of dispersion, 1 s - needs two such windows"},
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

// A trace with the published statistics of Dynamo's synthetic trace is printed as
// they were published, line by line.
func TestPublishedDatagenBlock(t *testing.T) {
	want, err := os.ReadFile("testdata/published_datagen.txt")
	if err != nil {
		t.Fatal(err)
	}
	published := report.Trace{Name: "Mooncake-based Synthetic Trace", Analysis: &analyze.Analysis{
		Requests: 10_000,
		ISL:      stats.Sample{Count: 10_000, Mean: 39_186, Min: 12_801, Max: 109_459},
		OSL:      stats.Sample{Count: 10_000, Mean: 344, Min: 1, Max: 2_000},
		Prefix: &analyze.Prefix{
			Requests: 10_000, UniqueBlocks: 430_838, TotalBlocks: 770_934, BlockSize: block.Size{Tokens: 512, How: block.Given},
			Infinite: cache.Rates{Block: 0.441, Token: trace.Some(0.44)},
		},
		Declared: analyze.Context{Mean: trace.Some(22_400.0), UniqueMean: trace.Some(16_786.0), SharedRatio: trace.Some(0.572)},
	}}
	got, notes, _ := strings.Cut(written(t, report.Traces{published}.Datagen().WriteText), "max\n")
	if got += "max\n"; got != string(want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if notes != "\nContext: as the trace's generator declares it.\n" {
		t.Errorf("notes %q", notes)
	}
}

// The block of any trace has the same lines, and the notes that other forms have.
func TestDatagenBlock(t *testing.T) {
	bare := analyzed(t, []trace.Request{{Timestamp: trace.Some(0.0), InputLength: 100, OutputLength: 5}, {Timestamp: trace.Some(1.0), InputLength: 1100}})
	all := report.Traces{{Name: "full", Analysis: analyzed(t, fullTrace())}, {Name: "bare", Analysis: bare}}
	tracetest.Golden(t, "testdata/dataset_datagen.txt", written(t, all.Datagen().WriteText))
}

func checkText(t *testing.T, findings ...check.Finding) string {
	t.Helper()
	return written(t, report.Check{Name: "example.jsonl", Report: &check.Report{Requests: 5, Findings: findings}}.Document().WriteText)
}

func TestCheckText(t *testing.T) {
	tracetest.Golden(t, "testdata/check.txt", checkText(t,
		check.Finding{Kind: check.TimeBackwards, Severity: check.Error, Message: "The row arrives before the row above it.", Count: 1, Of: check.OfRows,
			Examples: []check.Example{{Line: 7, Value: "timestamp 5 after 9 on line 6"}}},
		check.Finding{Kind: check.TwoParents, Severity: check.Warning, Message: "The id is a partial block and a full one.", Count: 1200, Of: check.OfIDs,
			Examples: []check.Example{{Line: 3, Value: "id 1"}, {Line: 12_345, Value: "id 18446744073709551615 \x1b[2J"}}},
		check.Finding{Kind: check.TimeGrid, Severity: check.Note, Message: "Timestamps are on a grid.", Evidence: "3000 ms apart", Count: 5, Of: check.OfRows}))
}

func TestCheckVerdict(t *testing.T) {
	warning, note := check.Finding{Severity: check.Warning}, check.Finding{Severity: check.Note}
	for _, test := range []struct {
		findings []check.Finding
		says     string
	}{
		{nil, "No problems found: this trace can be replayed faithfully.\n"},
		{[]check.Finding{note}, "\n  This trace can be replayed faithfully.\n"},
		{[]check.Finding{note, warning}, "This trace can be replayed faithfully, except for the warnings above.\n"},
		{[]check.Finding{warning, {Severity: check.Error}}, "cannot be replayed faithfully.\n"},
	} {
		if got := checkText(t, test.findings...); !strings.HasSuffix(got, test.says) {
			t.Errorf("got\n%s\nwant %q at its end", got, test.says)
		}
	}
}
