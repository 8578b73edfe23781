package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/analyze"
	"moontide/analyze/cache"
	"moontide/analyze/report"
	"moontide/trace"
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

func TestTraceJSON(t *testing.T) {
	_, got := traceJSON(t, "example.jsonl", analyzed(t, fullTrace()))
	// ISL 600 1000 1000 1025 1375: mean 1000, squares of deviations 160000 625
	// 140625. Hits: 0, 2 of 3, 1 of 2, 2 of 2 blocks: 5 of 9; of 3625 tokens
	// 1024 + 512 + 1000. Context: 1000, 1024, 512, 1000.
	want := map[string]any{
		"trace": "example.jsonl", "requests": 5.0, "duration_ms": 4000.0, "block_size": 512.0,
		"isl.count": 5.0, "isl.mean": 1000.0, "isl.std": math.Sqrt(301250.0 / 5), "isl.min": 600.0,
		"isl.p1": 616.0, "isl.p5": 680.0, "isl.p10": 760.0, "isl.p25": 1000.0, "isl.p50": 1000.0, "isl.p75": 1025.0,
		"isl.p90": 1235.0, "isl.p95": 1305.0, "isl.p99": 1361.0, "isl.p99_9": 1373.6, "isl.max": 1375.0, "isl.sum": 5000.0,
		"osl.count": 5.0, "osl.mean": 20.0, "osl.std": math.Sqrt(200), "osl.min": 0.0,
		"osl.p1": 0.4, "osl.p5": 2.0, "osl.p10": 4.0, "osl.p25": 10.0, "osl.p50": 20.0, "osl.p75": 30.0,
		"osl.p90": 36.0, "osl.p95": 38.0, "osl.p99": 39.6, "osl.p99_9": 39.96, "osl.max": 40.0, "osl.sum": 100.0,
		"isl.histogram.log": false, "osl.histogram.log": false, "lengths.ratios.histogram.log": false,
		"blocks.total": 9.0, "blocks.unique": 4.0, "blocks.size_source": "assumed", "blocks.requests": 4.0, "blocks.fitting": 4.0, "blocks.better_size": nil,
		"cache.infinite.block_hit_rate": 5.0 / 9, "cache.infinite.token_hit_rate": 2536.0 / 3625,
		"cache.infinite.mean_request_hit_rate": (2.0/3 + 1.0/2 + 1) / 4,
		"cache.infinite.hit_blocks":            5.0, "cache.infinite.hit_tokens": 2536.0,
		"cache.infinite.requests_no_hit": 1.0, "cache.infinite.requests_all_hit": 1.0,
		"cache.policies": nil, "cache.smallest": nil, "cache.workers": nil, "cache.room_for_reuse_blocks": nil, "cache.kv_bytes_per_token": nil,
		"context.observed_mean": 884.0, "context.observed_unique_mean": 22.25, "context.observed_shared_ratio": 3536.0 / 3625,
		"context.declared_mean": 640.0, "context.declared_unique_mean": 266.25, "context.declared_shared_ratio": 2560.0 / 3625,
		// Steps 0, 2000, 2000: mean 4000/3, deviation 2000 * sqrt(2)/3.
		"arrivals.rate": 1.0, "arrivals.cv": math.Sqrt2 / 2, "arrivals.peak_1s": 2.0, "arrivals.peak_60s": 4.0,
		// Windows of a second hold 2, 0, 1, 0: mean 0.75, variance 0.6875.
		"arrivals.dispersion_1s": 0.6875 / 0.75, "arrivals.dispersion_60s": nil,
		"arrivals.estimated": 0.0, "time": nil,
		"arrivals.distinct_timestamps": 3.0, "arrivals.max_per_timestamp": 2.0, "arrivals.grid_ms": nil,
		"arrivals.first_ms": 0.0, "arrivals.last_ms": 4000.0, "arrivals.requests": 4.0, "arrivals.backwards": 0.0,
		// Deviations 0 25 -400 0 375 and -10 0 10 20 -20; ranks 2.5 4 1 2.5 5 and 2 3 4 5 1.
		"lengths.isl_estimated": 0.0, "lengths.osl_estimated": 0.0, "lengths.osl_missing": 0.0,
		"lengths.isl_per_osl": 50.0, "lengths.pearson": -11500 / math.Sqrt(301250*1000), "lengths.spearman": -6.5 / math.Sqrt(95),
		// Of the four requests with an answer: 20, 25, 51.25, 100.
		"lengths.ratios.count": 4.0, "lengths.ratios.mean": 196.25 / 4, "lengths.ratios.p50": 38.125, "lengths.ratios.p99_9": 100 - 0.003*48.75, "lengths.ratios.max": 100.0,
		// Block 0 is used again after 0, 2000 and 2000 ms, block 1 after 0 and 4000.
		"reuse.time_ms.mean": 1600.0, "reuse.time_ms.p50": 2000.0, "reuse.time_ms.max": 4000.0,
		"reuse.requests.mean": 1.2, "reuse.requests.p50": 1.0, "reuse.requests.max": 2.0, "reuse.blocks": nil,
		"sessions.inferred": false, "sessions.sessions": 1.0, "sessions.multi_turn": 0.0, "sessions.requests": 1.0,
		"sessions.turns.mean": 1.0, "sessions.turns.p50": 1.0, "sessions.turns.max": 1.0,
		"sessions.gap_ms": nil, "sessions.delay_ms": nil, "sessions.growth": nil,
		"sharing.roots_distinct": 1.0, "sharing.roots_shared": 1.0, "sharing.root_requests": 4.0,
		"sharing.roots": []any{map[string]any{"id": 0.0, "requests": 4.0, "blocks": 1.0, "tokens": 512.0}},
		"untimed":       nil, "graph": nil, "sessions.relations": nil, "sessions.think_ms": nil, "sessions.tool_ms": nil,
	}
	// Three values represent the other distributions.
	for key := range got {
		part, stat := key[:strings.IndexByte(key+".", '.')], key[strings.LastIndexByte(key, '.')+1:]
		rest := []string{"std", "min", "p1", "p5", "p10", "p25", "p75", "p90", "p95", "p99", "sum"}
		if part != "lengths" {
			rest = append(rest, "count", "p99_9")
		}
		if stat == "edges" || stat == "counts" || part != "isl" && part != "osl" && part != "blocks" && slices.Contains(rest, stat) {
			delete(got, key)
		}
	}
	close := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got, close); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
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
