package format_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/log"
)

var logFixtures = []string{"batch/input.jsonl", "batch/output.jsonl", "exchange.jsonl", "litellm.jsonl", "otel.jsonl", "otelconsole.json", "otellogs.jsonl"}

// readLog returns everything that reading a log tells.
func readLog(t *testing.T, text []byte) string {
	t.Helper()
	r, err := format.NewReader(bytes.NewReader(text), "t", format.Options{Format: format.OpenAILog, SkipBadRows: true, Record: withKey.Record})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := trace.Collect(r.Requests())
	_, reasons := r.Skipped()
	return spelled(rows) + noted(r) + fmt.Sprint(err, reasons)
}

// replacements returns copies of a JSON value in each of which another string, number,
// truth value or key is the canary; also within strings of JSON. Names of models stay.
func replacements(v any, canary string) (all []any) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if strings.Contains(strings.ToLower(key), "model") {
				continue
			}
			for _, r := range replacements(member, canary) {
				all = append(all, with(v, key, key, r))
			}
			all = append(all, with(v, key, canary, member))
		}
	case []any:
		for i, element := range v {
			if pair, ok := element.(map[string]any); ok && strings.Contains(fmt.Sprint(pair["key"]), "model") {
				continue
			}
			for _, r := range replacements(element, canary) {
				changed := slices.Clone(v)
				changed[i] = r
				all = append(all, changed)
			}
		}
	case string:
		var inner any
		if json.Unmarshal([]byte(v), &inner) == nil {
			for _, r := range replacements(inner, canary) {
				text, _ := json.Marshal(r)
				all = append(all, string(text))
			}
		}
		all = append(all, canary)
	case nil:
	default:
		all = append(all, canary)
	}
	return all
}

// with returns an object with another member.
func with(object map[string]any, old, key string, value any) map[string]any {
	changed := map[string]any{}
	for k, v := range object {
		if k != old {
			changed[k] = v
		}
	}
	changed[key] = value
	return changed
}

// No text, id, name, header or key of a log is in a row, a note or an error, wherever it
// stands, and however wrong it is there. The names of models that answered are. It tries one
// place in seven unless MOONTIDE_ALL is set.
func TestNoTextOfLogs(t *testing.T) {
	const canary = "xCANARYx"
	for _, name := range logFixtures {
		text := readFile(t, filepath.Join("testdata", name))
		decoder := json.NewDecoder(bytes.NewReader(text))
		places := 0
		for decoder.More() {
			var object any
			if err := decoder.Decode(&object); err != nil {
				t.Fatal(err)
			}
			for _, changed := range replacements(object, canary) {
				log, _ := json.Marshal(changed)
				if places++; places%7 != 0 && os.Getenv("MOONTIDE_ALL") == "" {
					continue
				}
				for _, log := range [][]byte{log, log[:len(log)-2], append(log[:len(log):len(log)], canary...)} {
					if told := readLog(t, log); strings.Contains(told, canary) || strings.Contains(told, "squeal") {
						t.Fatalf("%s: of\n%s\nthe notes are:\n%s", name, log, told)
					}
				}
			}
		}
		if places < 50 {
			t.Errorf("%s has %d places", name, places)
		}
	}
}

// The order of the entries does not matter: they are sorted by their times.
func TestLogsInAnyOrder(t *testing.T) {
	for _, name := range []string{"litellm.jsonl", "otellogs.jsonl"} {
		text := readFile(t, filepath.Join("testdata", name))
		rows := func(lines []string) string {
			told := readLog(t, []byte(strings.Join(lines, "\n")))
			told, _, _ = strings.Cut(told, "#")
			return told
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		want := rows(lines)
		random := rand.New(rand.NewPCG(1, 2))
		for range 5 {
			random.Shuffle(len(lines), func(i, k int) { lines[i], lines[k] = lines[k], lines[i] })
			if d := cmp.Diff(want, rows(lines)); d != "" {
				t.Fatal(name, d)
			}
		}
	}
}

// The same conversation has the same block ids in each log that keeps its messages, and
// in a capture: those of its body.
func TestLogsShareIDs(t *testing.T) {
	cfg, _ := withKey.Record()
	var line struct{ Body json.RawMessage }
	input := readFile(t, "testdata/batch/input.jsonl")
	first, _, _ := bytes.Cut(input, []byte("\n"))
	if err := json.Unmarshal(first, &line); err != nil {
		t.Fatal(err)
	}
	reader := log.NewReader(cfg)
	call, err := reader.Read(log.Chat, line.Body)
	if err != nil {
		t.Fatal(err)
	}
	turn := &log.Turn{}
	blocks := reader.Hash(call)
	log.NewSessions(1).Join(turn, "", blocks, "s")
	want := log.NewRows(cfg, turn.Arrived).Row(&log.Exchange{Turn: turn, Call: call, Blocks: blocks, Input: trace.Some(37)}).HashIDs
	if len(want) != 3 {
		t.Fatal(want)
	}
	for _, name := range []string{"batch", "litellm.jsonl"} {
		r, err := format.Open(filepath.Join("testdata", name), withKey)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var row trace.Request
		if err := r.Read(&row); err != nil || !slices.Equal(row.HashIDs, want) {
			t.Errorf("%s: %v, want %v (%v)", name, row.HashIDs, want, err)
		}
	}
}

// A conversation has the same block ids if its messages are attributes of its span, in
// log records with one message each, and in one with the details.
func TestLogRecordsShareIDs(t *testing.T) {
	const ids = `"traceId":"ab","spanId":"cd",`
	span := func(attributes string) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[{` + ids + `"startTimeUnixNano":"1735000000000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"37"}}` + attributes + `]}]}]}]}`
	}
	messages := `,{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"` + strings.Repeat("squeal ", 20) + `\"}]}]"}}`
	message := func(id string) string {
		return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{` + id + `"eventName":"gen_ai.user.message","body":{"kvlistValue":{"values":[{"key":"content","value":{"stringValue":"` + strings.Repeat("squeal ", 20) + `"}}]}}}]}]}]}`
	}
	details := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{` + ids + `"eventName":"gen_ai.client.inference.operation.details","attributes":[` + messages[1:] + `]}]}]}]}`
	want := ""
	for i, log := range []string{
		span(messages), span("") + "\n" + message(ids), message(ids) + "\n" + span(""), span("") + "\n" + details, span(messages) + "\n" + message(ids), span(messages) + "\n" + details,
	} {
		rows, _, err := readText(log, format.Options{Record: withKey.Record})
		if err != nil || len(rows) != 1 || len(rows[0].HashIDs) == 0 {
			t.Fatal(i, rows, err)
		}
		if want == "" {
			want = spelled(rows)
		}
		if got := spelled(rows); got != want {
			t.Errorf("log %d: %s, want %s", i, got, want)
		}
	}
	// A record of another span is not joined.
	rows, r, err := readText(span("")+"\n"+message(`"traceId":"ab","spanId":"ce",`), format.Options{Record: withKey.Record})
	if err != nil || len(rows) != 1 || rows[0].HashIDs != nil || !strings.Contains(noted(r), "log records with messages of no request") {
		t.Error(rows, noted(r), err)
	}
}

// A name that two logs have for different things is read as its log means it, and an error is
// one wherever it stands, unless it is empty.
func TestMeaningsOfNames(t *testing.T) {
	const (
		litellm = `{"call_type":"acompletion","status":"success","startTime":1700000000.25,"model":"m","messages":[{"role":"user","content":"hello"}],"prompt_tokens":3,"completion_tokens":2,`
		row     = `{"timestamp":1700000000,"status":200,"request":{"model":"m","prompt":"hello"},`
		record  = `{"trace_id":"ab","span_id":"cd","timestamp":1700000000,"body":"hello","attributes":`
		span    = `{"context":{"trace_id":"ab","span_id":"cd"},"start_time":1700000000,"attributes":{"gen_ai.operation.name":"chat"}}`
	)
	for log, want := range map[string]string{
		litellm + `"response_time":1.25,"response":{}}`:                `"outcome":"ok"}`,
		litellm + `"response":{"error":{"message":"no"}}}`:             `"outcome":"server"}`,
		row + `"response_time":1700000001,"response":{}}`:              `"outcome":"ok","status":200,"e2el_ms":1000}`,
		row + `"error":{},"response":{"error":""}}`:                    `"outcome":"ok","status":200}`,
		record + `{"event.name":"gen_ai.user.message"}}` + "\n" + span: `"hash_ids"`,
		record + `{"event.name":"started"}}` + "\n" + span:             `"outcome":"ok"`,
	} {
		rows, _, err := readText(log, format.Options{Format: format.OpenAILog, Record: withKey.Record})
		if err != nil || !strings.Contains(spelled(rows), want) {
			t.Errorf("%s is read as %s, want %s: %v", log, spelled(rows), want, err)
		}
	}
}

// Messages that are too long together are not read, and that is reported.
func TestLongLogRecords(t *testing.T) {
	span := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"ab","spanId":"cd","startTimeUnixNano":"1735000000000000000","attributes":{"gen_ai.operation.name":"chat","gen_ai.usage.input_tokens":37}}]}]}]}` + "\n"
	message := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"ab","spanId":"cd","eventName":"gen_ai.user.message","body":{"stringValue":"` + strings.Repeat("squeal ", format.MaxRow/14) + `"}}]}]}]}` + "\n"
	for records, want := range []string{"", "", "requests whose log records have more than 64 MiB, read without them: 1"} {
		rows, r, err := readText(span+strings.Repeat(message, records), format.Options{Record: withKey.Record})
		if err != nil || len(rows) != 1 || (len(rows[0].HashIDs) > 0) != (records == 1) || !strings.Contains(noted(r), want) {
			t.Error(records, len(rows), noted(r), err)
		}
	}
}

// A log is refused without a key, whatever names its format.
func TestLogsNeedKey(t *testing.T) {
	for _, as := range []format.Format{"", format.OpenAILog} {
		_, err := format.Open("testdata/otel.jsonl", format.Options{Format: as})
		if err == nil || !strings.Contains(err.Error(), "a log of requests with their texts") {
			t.Error(err)
		}
	}
	_, err := format.Open("testdata/otel.jsonl", format.Options{Record: func() (log.Config, error) { return log.Config{}, nil }})
	if err == nil || !strings.Contains(err.Error(), "key is missing") {
		t.Error(err)
	}
}

// Entries on a page of LiteLLM's API are found.
func TestLogPages(t *testing.T) {
	lines := readFile(t, "testdata/litellm.jsonl")
	page := append([]byte(`{"total": 9, "data": [`), bytes.ReplaceAll(bytes.TrimSpace(lines), []byte("\n"), []byte(","))...)
	if d := cmp.Diff(readLog(t, lines), readLog(t, append(page, "]}"...))); d != "" {
		t.Error(d)
	}
}

// sizedLog is a log of n requests of each of some models, whose tokens have so many bytes:
// all but every tenth one, which have other bytes. Their prompts have 200 tokens. All
// prompts of a model share the first 100.
func sizedLog(n int, models map[string]float64) string {
	var b strings.Builder
	random := rand.New(rand.NewPCG(1, 1))
	for i := range n {
		for model, size := range models {
			if i%10 == 9 {
				size *= 3
			}
			text := func(tokens int, of string) string { return strings.Repeat(of, 1000)[:int(float64(tokens)*size)] }
			prompt := text(100, model+" rises ") + text(100, fmt.Sprint(random.Uint64()))
			fmt.Fprintf(&b, `{"timestamp":%d,"request":{"model":"%s","prompt":"%s"},"response":{"usage":{"prompt_tokens":200,"completion_tokens":1}}}`+"\n", 1_700_000_000+i, model, prompt)
		}
	}
	return b.String()
}

// Without a tokenizer, blocks have as many bytes as tokens of the log have: prompts
// share the blocks that their tokens share.
func TestTextsAreMeasured(t *testing.T) {
	for _, c := range []struct {
		requests int
		given    float64
		models   map[string]float64
		shared   int // blocks of 10 tokens
		note     string
	}{
		{100, 0, map[string]float64{"m": 2.5}, 10, "estimated: 2.5 bytes per token, as the log counts"},
		{100, 0, map[string]float64{"m": 2.61}, 10, "estimated: 2.5 bytes per token, as the log counts"},
		{19, 0, map[string]float64{"m": 2.5}, 6, "estimated: 4 bytes per token; the log counts"},
		{5000, 0, map[string]float64{"m": 2.5}, 10, "estimated: 2.5 bytes per token, as the log counts"},
		{100, 5, map[string]float64{"m": 2.5}, 5, "estimated: 5 bytes per token; the log counts"},
	} {
		configure := func() (log.Config, error) {
			return log.Config{Key: log.Key{1}, BlockSize: 10, BytesPerToken: c.given}, nil
		}
		rows, r, err := readText(sizedLog(c.requests, c.models), format.Options{Format: format.OpenAILog, Record: configure})
		if err != nil || len(rows) != c.requests*len(c.models) {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		uses := map[uint64]int{}
		for _, row := range rows {
			for _, id := range row.HashIDs {
				uses[id]++
			}
		}
		shared := 0
		for _, n := range uses {
			if n > c.requests/2 {
				shared++
			}
		}
		if want := c.shared * len(c.models); shared != want || !strings.Contains(noted(r), c.note) {
			t.Errorf("%v of %d requests: %d blocks are shared, want %d; %s", c.models, c.requests, shared, want, noted(r))
		}
	}
}
