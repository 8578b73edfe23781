package format_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"moontide/trace"
	"moontide/trace/format"
)

// TestAnyWrapping: a file is the same trace plain, compressed, after a byte order
// mark, and as a stream.
func TestAnyWrapping(t *testing.T) {
	zipped := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write(b)
		z.Close()
		return out.Bytes()
	}
	names := append(slices.Collect(maps.Keys(fixtures)), "../../../traces/chat.jsonl")
	for _, name := range names {
		path := filepath.Join("testdata", name)
		if inFolder := map[string]string{"weka": "agent.json", "batch": "input.jsonl"}[name]; inFolder != "" {
			path = filepath.Join(path, inFolder)
		}
		text := readFile(t, path)
		want := native(t, path, withKey)
		z, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		for how, wrapped := range map[string][]byte{
			"plain": text, "gzip": zipped(text), "zstd": z.EncodeAll(text, nil), "marked": append([]byte("\xef\xbb\xbf"), text...),
			"CRLF":         bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r"), nil), []byte("\n"), []byte("\r\n")),
			"no last line": bytes.TrimRight(text, "\r\n"), "blank lines": slices.Concat([]byte("\n \n"), text, []byte("\n  \n\n")),
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "file")
				if err := os.WriteFile(file, wrapped, 0o644); err != nil {
					t.Fatal(err)
				}
				got := native(t, file, withKey)
				if how == "CRLF" { // white space in unknown keys is kept
					got = strings.ReplaceAll(got, "\r", "")
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("the file: %s", d)
				}
				r, err := format.NewReader(bytes.NewReader(wrapped), "stream", withKey)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				rows, err := trace.Collect(r.Requests())
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, strings.ReplaceAll(spelled(rows)+noted(r), "\r", "")); d != "" {
					t.Errorf("the stream: %s", d)
				}
			})
		}
	}
}

// testdata/detect.txt has formats, each with how a file of it may begin.
func TestDetect(t *testing.T) {
	for line := range strings.Lines(string(readFile(t, "testdata/detect.txt"))) {
		want, quoted, _ := strings.Cut(strings.TrimSpace(line), " ")
		head, err := strconv.Unquote(quoted)
		if got := format.Detect([]byte(head)); err != nil || string(got) != want {
			t.Errorf("%s is taken for %s, want %s (%v)", quoted, got, want, err)
		}
	}
	for _, f := range format.Formats() {
		if got, err := format.ParseFormat(string(f)); got != f || err != nil {
			t.Errorf("%s: %s, %v", f, got, err)
		}
	}
	if _, err := format.NewReader(strings.NewReader(""), "t", format.Options{Format: "csv"}); err == nil {
		t.Error("an unknown format is taken")
	}
}

// TestTokenizer: with a counter no length is estimated or marked as estimated, and
// a row whose tokens it cannot count is a bad row.
func TestTokenizer(t *testing.T) {
	words := func(text string) (int, error) {
		if strings.Contains(text, "!") {
			return 0, errors.New("an exclamation")
		}
		return len(strings.Fields(text)), nil
	}
	opts := format.Options{Tokens: words, SkipBadRows: true}
	rows, r, err := readText(`{"text_input": "one two three", "output_length": 1}
{"messages": [{"content": "one two"}, {"content": [{"text": "three"}]}], "output_length": 1}
{"text_input": "one!", "output_length": 1}
`, opts)
	if n, _ := r.Skipped(); err != nil || len(rows) != 2 || n != 1 {
		t.Fatal(rows, n, err)
	}
	for _, row := range rows {
		if _, marked := row.Raw("estimated"); row.InputLength != 3 || marked {
			t.Errorf("%+v", row)
		}
	}
	rows, _, err = readText(`[{"id": "x", "conversations": [{"from": "human", "value": "one two"}, {"from": "gpt", "value": "three"}]}]`, opts)
	if err != nil || len(rows) != 1 || rows[0].InputLength != 2 || rows[0].OutputLength != 1 || rows[0].Extra != nil {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestGivenIDs: only rows without ids get some. These differ between rows, from
// recorded ids, and between the parts of a trace.
func TestGivenIDs(t *testing.T) {
	text := `{"input_length": 20, "output_length": 1}
{"input_length": 20, "output_length": 1, "hash_ids": [0, 1]}
{"input_length": 40, "output_length": 1}
{"input_length": 20, "output_length": 1, "hash_ids": []}
`
	rows, r, err := readText(text, format.Options{UniqueIDs: true, BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	var ids [][]uint64
	for _, row := range rows {
		ids = append(ids, row.HashIDs)
	}
	const first = 1 << 52
	if want := [][]uint64{{first, first + 1}, {0, 1}, {first + 2, first + 3, first + 4}, {}}; !cmp.Equal(ids, want) {
		t.Errorf("ids are %v, want %v", ids, want)
	}
	own := map[uint64]int{}
	for part := range 3 {
		rows, _, err := readText(text, format.Options{UniqueIDs: true, BlockSize: 16, Part: part})
		if err != nil {
			t.Fatal(err)
		}
		last := rows[2].HashIDs[2]
		if own[last]++; own[last] > 1 {
			t.Errorf("part %d has an id of another part", part)
		}
	}
	if _, _, err := readText(text, format.Options{UniqueIDs: true, Part: 1 << 12}); err == nil {
		t.Error("a part beyond the last is read")
	}
	if !strings.Contains(noted(r), "got generated ones (unique, 16 tokens a block): 2") || r.BlockSize() != 16 {
		t.Errorf("%s, blocks of %d", noted(r), r.BlockSize())
	}
	// Blocks have one size in a trace.
	rows, _, err = readText(strings.Replace(bailianRow, `, "hash_ids": [10, 11, 12]`, "", 1)+bailianRow, format.Options{UniqueIDs: true})
	if err != nil || len(rows[0].HashIDs) != len(rows[1].HashIDs) {
		t.Errorf("given ids %v beside %v, %v", rows[0].HashIDs, rows[1].HashIDs, err)
	}
	rows, _, _ = readText(text, format.Options{})
	if rows[0].HashIDs != nil {
		t.Errorf("ids are invented: %v", rows[0].HashIDs)
	}
}

// TestBounds: input that would take too much memory, or never end, is rejected.
func TestBounds(t *testing.T) {
	deep := wekaOf(strings.Repeat(`{"t": 1, "type": "subagent", "requests": [`, 40) + wekaRequest + strings.Repeat(`]}`, 40))
	if _, _, err := readText(deep, format.Options{}); err == nil || !strings.Contains(err.Error(), "sub-agents are nested more than 16 deep") {
		t.Errorf("nested sub-agents: %.100v", err)
	}
	parallel := wekaOf(strings.Repeat(`{"t": 1, "in": 1, "out": 1, "api_time": 9},`, 20_000) + wekaRequest)
	if _, _, err := readText(parallel, format.Options{}); err == nil || !strings.HasPrefix(err.Error(), "t:1: requests[16384]: more than 16384 requests and sub-agents of a session run at the same time") {
		t.Errorf("parallel requests: %.200v", err)
	}
	if rows, _, err := readText(parallel, format.Options{RecordedTimes: true}); err != nil || len(rows) != 20_001 {
		t.Errorf("parallel requests at their recorded times: %d, %v", len(rows), err)
	}
	if _, _, err := readText(`{"chat_id": 1, "parent_chat_id": `+strings.Repeat("[", 1_000_000), format.Options{}); err == nil {
		t.Error("a million brackets are read")
	}
	if _, err := format.NewReader(strings.NewReader(strings.Repeat(",", 100_000)+"\n"), "t", format.Options{Format: format.Vidur}); err == nil || len(err.Error()) > 300 {
		t.Errorf("a header of 100,000 columns: %.300v", err)
	}
	_, r, err := readText(wekaOf(strings.Repeat("0, ", 100_000)+"0"), format.Options{SkipBadRows: true})
	if n, _ := r.Skipped(); err == nil || err.Error() != "t:1: reading: more than 10000 bad requests" || n != 10_000 {
		t.Errorf("%d bad requests are skipped, %v", n, err)
	}
	whole := `{"request":{"prompt":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `},"response":{}}`
	if _, r, _ := readText(logRow+whole, format.Options{Record: withKey.Record}); r == nil {
		t.Error("a log with many brackets is not read")
	}
}

func TestTimedTrace(t *testing.T) {
	rows := []trace.Request{
		{Timestamp: trace.Some(1500.0), InputLength: 70, OutputLength: 3, HashIDs: append(make([]uint64, 0, 8), 5, 6), SessionID: "s", Extra: []byte(`{"model": "m"}`)},
		{Timestamp: trace.Some(2000.25), InputLength: 64, OutputLength: 1, HashIDs: []uint64{5, 7}},
	}
	write := func(rows []trace.Request, blockSize int) (string, error) {
		timed, err := trace.Collect(format.TimedTrace(trace.FromSlice(rows), blockSize))
		return spelled(timed), err
	}
	if got, err := write(rows, 0); err != nil || got != `{"timestamp": 1.5, "input_length": 70, "output_length": 3, "hash_ids": [5, 6]}
{"timestamp": 2.00025, "input_length": 64, "output_length": 1, "hash_ids": [5, 7]}
` {
		t.Errorf("%s%v", got, err)
	}
	timed, err := trace.Collect(format.TimedTrace(trace.FromSlice([]trace.Request{rows[0], rows[0], rows[1]}), 32))
	if err != nil || len(timed[0].HashIDs) != 3 || !slices.Equal(timed[0].HashIDs[:2], rows[0].HashIDs) || timed[0].HashIDs[2] == timed[1].HashIDs[2] || !slices.Equal(timed[2].HashIDs, rows[1].HashIDs) {
		t.Errorf("ids that do not cover the prompt: %v, %v", timed, err)
	}
	if !slices.Equal(rows[0].HashIDs[:4], []uint64{5, 6, 0, 0}) {
		t.Error("the row itself was changed")
	}
	for name, tc := range map[string]struct {
		row  trace.Request
		want string
	}{
		"no time": {trace.Request{HashIDs: []uint64{1}}, "row 2 has no timestamp, which vLLM needs: set a rate to add arrivals"},
		"a delay": {trace.Request{Delay: trace.Some(1.0), HashIDs: []uint64{1}}, "row 2 has a delay and no timestamp, which vLLM needs: replay the trace and convert the recorded run"},
		"no ids":  {trace.Request{Timestamp: trace.Some(1.0), InputLength: 1}, "row 2 has no block ids, from which vLLM makes the prompt: generate some when reading"},
	} {
		for _, blockSize := range []int{0, 16} {
			if _, err := write([]trace.Request{rows[0], tc.row}, blockSize); err == nil || err.Error() != tc.want {
				t.Errorf("%s, blocks of %d: %v, want %s", name, blockSize, err, tc.want)
			}
		}
	}
}

// TestHeldIsLittle: the memory for a trace that is not in order of arrival does
// not grow with the ids of its requests.
func TestHeldIsLittle(t *testing.T) {
	const rows, ids = 300, 1000
	list := strings.Repeat("18446744073709551615,", ids-1) + "7"
	for name, text := range map[string]string{
		"dynamo": strings.Repeat(strings.NewReplacer("[7]", "["+list+"]", `"input_length":3`, `"input_length":16000`).Replace(dynamoRow), rows),
		"weka":   wekaOf(strings.Repeat(strings.NewReplacer("[1]", "["+list+"]", `"in": 100`, `"in": 64000`).Replace(wekaRequest)+",\n", rows-1) + wekaRequest),
	} {
		path := filepath.Join(t.TempDir(), "t.jsonl")
		write(t, filepath.Dir(path), "t.jsonl", text)
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		r, err := format.Open(path, format.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		r.BlockSize() // reads all
		if held := heap() - before; held > 1<<19 || r.BlockSize() == 0 {
			t.Errorf("%s: %d bytes for %d requests of %d ids", name, held, rows, ids)
		}
		got, err := trace.Collect(r.Requests())
		if err != nil || len(got) != rows || len(got[0].HashIDs) != ids {
			t.Errorf("%s: %d rows, %v", name, len(got), err)
		}
	}
}
