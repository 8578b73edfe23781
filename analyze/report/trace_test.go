package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

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
