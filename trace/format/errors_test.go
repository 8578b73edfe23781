package format_test

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"moontide/trace"
	"moontide/trace/format"
)

const (
	azureHead   = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	azureRow    = "2023-11-16 18:15:46.6805900,374,44\n"
	burstHead   = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	burstRow    = "5,ChatGPT,472,18,490,Conversation log\n"
	vidurHead   = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
	bailianRow  = `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "output_length": 7, "hash_ids": [10, 11, 12]}` + "\n"
	dynamoRow   = `{"event":{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":20,"request":{"output_tokens":1,"replay":{"trace_block_size":16,"input_length":3,"input_sequence_hashes":[7]}}}}` + "\n"
	traceLabRow = `{"session_id": "a", "input_tokens_total": 5, "output_tokens": 2, "timing_events": [{"event_type": "text", "timestamp": "2026-06-01T05:40:20Z"}]}` + "\n"
	nativeRow   = `{"timestamp": 1, "input_length": 5, "output_length": 2}` + "\n"
	logRow      = `{"id":"g","timestamp":1700000000,"request":{"model":"m","prompt":"a"},"response":{"usage":{"prompt_tokens":5,"completion_tokens":2}}}` + "\n"
	talk        = `{"id": "a", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]}`
	wekaRequest = `{"t": 1, "type": "s", "in": 100, "out": 2, "hash_ids": [1]}`
)

func wekaOf(requests string) string {
	return `{"id": "c", "block_size": 64, "hash_id_scope": "local", "requests": [` + requests + `]}` + "\n"
}

func readText(text string, opts format.Options) ([]trace.Request, *format.Reader, error) {
	r, err := format.NewReader(strings.NewReader(text), "t", opts)
	if err != nil {
		return nil, nil, err
	}
	rows, err := trace.Collect(r.Requests())
	return rows, r, err
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// badRow is a row that is no request, the rows before and after it, and the error.
type badRow struct{ before, bad, after, want string }

// badRows reads testdata/bad.txt. A case begins with "== " and its name, the lines of its
// bad row with "! ", and the error with "=> ".
func badRows(t *testing.T) map[string]badRow {
	t.Helper()
	all := map[string]badRow{}
	for _, text := range strings.Split(string(readFile(t, "testdata/bad.txt")), "== ")[1:] {
		name, rest, _ := strings.Cut(text, "\n")
		rows, want, _ := strings.Cut(rest, "=> ")
		c := badRow{want: strings.TrimSpace(want)}
		for line := range strings.Lines(rows) {
			bad, is := strings.CutPrefix(line, "! ")
			switch {
			case is:
				c.bad += bad
			case c.bad == "":
				c.before += line
			default:
				c.after += line
			}
		}
		all[name] = c
	}
	return all
}

// TestBadRows: each error names its line and value. The row before a bad row is
// read, and with SkipBadRows also the row after it.
func TestBadRows(t *testing.T) {
	cases := badRows(t)
	maps.Copy(cases, map[string]badRow{
		"burstgpt: two marked files":  {burstHead + burstRow, "\ufeff" + burstHead, burstRow, `t:3: the header is repeated: these are two files in one`},
		"mooncake: control character": {nativeRow, "{\"input_length\": 5, \"output_length\": 1, \"session_id\": \"a\x01\"}" + "\n", nativeRow, `t:2: not a JSON object`},
		"mooncake: invalid UTF-8":     {nativeRow, "{\"input_length\": 5, \"output_length\": 1, \"x\": \"\xff\"}" + "\n", nativeRow, `t:2: not a JSON object`},
		"log: deep":                   {logRow, strings.Repeat("[", 1_000_000) + "\n", logRow, `t:2: not a JSON object, or cut off`},
		"log: a row of many MB":       {logRow, `{"request":{"prompt":"` + strings.Repeat("secret", format.MaxRow/6+1) + `"},"response":{}}` + "\n", logRow, `t:2: row is longer than 64 MiB`},
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := tc.before + tc.bad + tc.after
			_, _, err := readText(text, format.Options{Record: withKey.Record})
			if err == nil || err.Error() != tc.want {
				t.Fatalf("error is\n%v\nwant\n%v", err, tc.want)
			}
			var row *trace.RowError
			if !errors.As(err, &row) || row.File != "t" {
				t.Errorf("%#v does not name the place", err)
			}
			good, _, err := readText(tc.before, format.Options{SkipBadRows: true, Record: withKey.Record})
			if err != nil {
				t.Fatal(err)
			}
			rows, r, err := readText(text, format.Options{SkipBadRows: true, Record: withKey.Record})
			if err != nil {
				t.Fatal(err)
			}
			skipped, reasons := r.Skipped()
			if skipped != 1 || len(reasons) != 1 || reasons[0].Error() != tc.want {
				t.Errorf("%d rows were skipped: %v", skipped, reasons)
			}
			if len(rows) != len(good)+1 {
				t.Errorf("%d rows are left, want %d and one more", len(rows), len(good))
			}
		})
	}
}

// TestHalfFiles: a file that is truncated, or continues after its end, is reported
// after the rows before that point.
func TestHalfFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
		rows       int
	}{
		"weka, cut":              {wekaOf(wekaRequest)[:90], `t:1: the file ends within the object that starts on line 1`, 0},
		"weka, the second cut":   {wekaOf(wekaRequest) + wekaOf(wekaRequest)[:90], `t:2: the file ends within the object that starts on line 2`, 1},
		"sharegpt, cut":          {"[\n" + talk + ",\n" + talk[:30], `t:3: the file ends within the object that starts on line 3`, 1},
		"sharegpt, no end":       {"[\n" + talk + "\n", `t:3: the file ends within its array`, 1},
		"sharegpt, no comma":     {"[" + talk + "\n" + talk + "]", `t:2: expected a comma or the end of the array`, 1},
		"sharegpt, a comma more": {"[" + talk + ",]", `t:1: not a JSON object`, 1},
		"sharegpt, and more":     {"[" + talk + "]\n" + talk, `t:2: text after the end of the array`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readText(tc.text, format.Options{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("error is\n%v\nwant\n%v", err, tc.want)
			}
			rows, r, err := readText(tc.text, format.Options{SkipBadRows: true})
			if n, _ := r.Skipped(); err != nil || n != 1 || len(rows) != tc.rows {
				t.Errorf("%d skipped, %d rows, %v", n, len(rows), err)
			}
		})
	}
	for _, head := range []string{"", "a,b\n", "TIMESTAMP,ContextTokens\n"} {
		_, err := format.NewReader(strings.NewReader(head), "t", format.Options{Format: format.Azure})
		if err == nil || !strings.Contains(err.Error(), "not the header of an Azure trace, which has the columns TIMESTAMP, ContextTokens, GeneratedTokens") {
			t.Errorf("header %q: %v", head, err)
		}
	}
	if _, err := format.NewReader(strings.NewReader("TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\n"), "t", format.Options{}); err == nil {
		t.Error("a column twice is read")
	}
	for _, text := range []string{"\xff\xfe{\x00", "\xfe\xff\x00{"} { // as some spreadsheets write
		if _, err := format.NewText(strings.NewReader(text), "t"); err == nil || err.Error() != "t:1: the file is in UTF-16: save it in UTF-8" {
			t.Error(err)
		}
	}
}

// broken fails in the middle.
type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = errors.New("the disk is gone")
	}
	return n, err
}

// TestDamagedFiles: an error of the whole file is not skipped like a bad row.
func TestDamagedFiles(t *testing.T) {
	for name, text := range map[string]string{
		"azure": azureHead + azureRow, "bailian": bailianRow, "dynamo": dynamoRow, "weka": wekaOf(wekaRequest), "sharegpt": "[" + talk + ",", "mooncake": nativeRow, "tracelab": traceLabRow, "openai-log": `{"request":{},"response":{}}` + "\n",
	} {
		r, err := format.NewReader(broken{strings.NewReader(text)}, "t", format.Options{SkipBadRows: true, Record: withKey.Record})
		if err == nil {
			_, err = trace.Collect(r.Requests())
		}
		if err == nil || !strings.Contains(err.Error(), "the disk is gone") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFolders(t *testing.T) {
	open := func(dir string) ([]trace.Request, *format.Reader, error) {
		r, err := format.Open(dir, format.Options{})
		if err != nil {
			return nil, nil, err
		}
		defer r.Close()
		rows, err := trace.Collect(r.Requests())
		return rows, r, err
	}
	t.Run("empty", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "notes.txt", "x")
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), "a folder without files that end in .json or .jsonl") {
			t.Error(err)
		}
	})
	t.Run("of another format", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "a.jsonl", bailianRow)
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), "only weka and dynamo traces and request logs can be folders") {
			t.Error(err)
		}
	})
	t.Run("of two formats", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "a.json", wekaOf(wekaRequest))
		write(t, dir, "b.jsonl", nativeRow)
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), `b.jsonl:1: a row of a Mooncake trace among those of a Weka trace: no id in`) {
			t.Error(err)
		}
	})
	t.Run("compressed", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"agent.json", "other.json"} {
			var packed strings.Builder
			z := gzip.NewWriter(&packed)
			z.Write(readFile(t, filepath.Join("testdata/weka", name)))
			z.Close()
			write(t, dir, name+".gz", packed.String())
		}
		want, _ := collect(t, "testdata/weka", format.Options{})
		if got, _, err := open(dir); err != nil || !cmp.Equal(want, got) {
			t.Error(err, cmp.Diff(want, got))
		}
	})
	t.Run("links", func(t *testing.T) {
		dir, other := t.TempDir(), t.TempDir()
		write(t, other, "real", wekaOf(wekaRequest))
		write(t, dir, "a.json", strings.Replace(wekaOf(wekaRequest), `"c"`, `"d"`, 1))
		for from, to := range map[string]string{"b.json": filepath.Join(other, "real"), "c.json": dir, "d.json": os.DevNull} {
			if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
				t.Skip(err)
			}
		}
		rows, r, err := open(dir)
		if err != nil || len(rows) != 2 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
		if !strings.Contains(noted(r), "not read: 2\n") {
			t.Errorf("notes\n%s", noted(r))
		}
		if err := os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "e.json")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), "e.json") {
			t.Errorf("a link to nothing: %v", err)
		}
	})
	t.Run("shards of Dynamo", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "trace.000000.jsonl", strings.Replace(dynamoRow, ":20,", ":50,", 1))
		write(t, dir, "trace.000001.jsonl", dynamoRow)
		rows, _, err := open(dir)
		if err != nil || len(rows) != 2 || rows[0].Timestamp.Value != 0 || rows[1].Timestamp.Value != 30 {
			t.Errorf("%v, %v", rows, err)
		}
		write(t, dir, "trace.000002.jsonl", strings.Replace(dynamoRow, ":16", ":32", 1))
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), "trace.000002.jsonl:1: request.replay.trace_block_size is not 16 as in ") {
			t.Error(err)
		}
	})
}
