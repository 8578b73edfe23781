package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	stdjson "encoding/json"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/tracetest"
)

func readString(text string, opts Options) ([]trace.Request, *Reader, error) {
	r, err := NewReader(strings.NewReader(text), "t.jsonl", opts)
	if err != nil {
		return nil, nil, err
	}
	rows, err := trace.Collect(r.Requests())
	return rows, r, err
}

func TestReadRows(t *testing.T) {
	const plain = `"input_length": 5, "output_length": 2`
	base := trace.Request{InputLength: 5, OutputLength: 2}
	with := func(f func(*trace.Request)) trace.Request { r := base; f(&r); return r }
	for name, tc := range map[string]struct {
		row  string
		want trace.Request
	}{
		"published": {`{"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [0, 1]}`,
			trace.Request{Timestamp: trace.Some(0.0), InputLength: 5, OutputLength: 2, HashIDs: []uint64{0, 1}}},
		"compact, other order": {`{"hash_ids":[7],"output_length":2,"input_length":5,"timestamp":3}`,
			trace.Request{Timestamp: trace.Some(3.0), InputLength: 5, OutputLength: 2, HashIDs: []uint64{7}}},
		"no times, no ids":     {`{` + plain + `}`, base},
		"empty ids":            {`{` + plain + `, "hash_ids": []}`, with(func(r *trace.Request) { r.HashIDs = []uint64{} })},
		"null ids":             {`{` + plain + `, "hash_ids": null}`, base},
		"decimal time":         {`{"timestamp": 1234.5678, ` + plain + `}`, with(func(r *trace.Request) { r.Timestamp = trace.Some(1234.5678) })},
		"exponent time":        {`{"timestamp": 1.5e3, ` + plain + `}`, with(func(r *trace.Request) { r.Timestamp = trace.Some(1500.0) })},
		"long decimal time":    {`{"timestamp": 0.12345678901234567890, ` + plain + `}`, with(func(r *trace.Request) { r.Timestamp = trace.Some(0.12345678901234568) })},
		"delay instead":        {`{"delay": 2.5, "session_id": "s", ` + plain + `}`, with(func(r *trace.Request) { r.Delay, r.SessionID = trace.Some(2.5), "s" })},
		"aliases":              {`{"created_time": 9, "delay_ms": 1, "input_tokens": 5, "output_tokens": 2}`, with(func(r *trace.Request) { r.Timestamp, r.Delay = trace.Some(9.0), trace.Some(1.0) })},
		"alias beside its key": {`{"input_tokens": 99, ` + plain + `}`, with(func(r *trace.Request) { r.Extra = []byte(`{"input_tokens": 99}`) })},
		"alias of a null":      {`{"input_length": null, "input_tokens": 5, "output_length": 2}`, base},
		"whole floats":         {`{"input_length": 5.0, "output_length": 2e0}`, base},
		"ids beyond int64":     {`{` + plain + `, "hash_ids": [18446744073709551615, 9223372036854775808, 3, 3]}`, with(func(r *trace.Request) { r.HashIDs = []uint64{1<<64 - 1, 1 << 63, 3, 3} })},
		"zero output":          {`{"input_length": 5, "output_length": 0}`, trace.Request{InputLength: 5}},
		"declared context":     {`{` + plain + `, "context_len": 3, "unique_user_prompt_len": 2}`, with(func(r *trace.Request) { r.ContextLen, r.UniquePromptLen = trace.Some(3), trace.Some(2) })},
		"escaped session":      {`{` + plain + `, "session_id": "\u00e9\n"}`, with(func(r *trace.Request) { r.SessionID = "é\n" })},
		"graph": {`{` + plain + `, "request_id": "c", "after": ["a", "b"], "delay": 3, "delay_kind": "tool"}`, with(func(r *trace.Request) {
			r.ID, r.After, r.Delay, r.DelayKind = "c", []string{"a", "b"}, trace.Some(3.0), trace.Tool
		})},
		"after nothing":         {`{` + plain + `, "after": []}`, with(func(r *trace.Request) { r.After = []string{} })},
		"after null":            {`{` + plain + `, "after": null}`, base},
		"request_id of a kind":  {`{` + plain + `, "request_id": 7}`, with(func(r *trace.Request) { r.Extra = []byte(`{"request_id": 7}`) })},
		"unknown keys":          {`{"model": "m", ` + plain + `, "priority":1.0,"x":{"a": [1, null]}}`, with(func(r *trace.Request) { r.Extra = []byte(`{"model": "m", "priority": 1.0, "x": {"a": [1, null]}}`) })},
		"white space":           {"\t{ \"input_length\" :5 ,\"output_length\":\t2 , \"hash_ids\" : [ 1 ,2 ] } ", with(func(r *trace.Request) { r.HashIDs = []uint64{1, 2} })},
		"beyond uint64 is kept": {`{` + plain + `, "n": 123456789012345678901234567890}`, with(func(r *trace.Request) { r.Extra = []byte(`{"n": 123456789012345678901234567890}`) })},
	} {
		t.Run(name, func(t *testing.T) {
			rows, _, err := readString(tc.row, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]trace.Request{tc.want}, rows); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestBadRows(t *testing.T) {
	for name, tc := range map[string]struct{ row, want string }{
		"not JSON":           {`TIMESTAMP,ContextTokens`, `t.jsonl:2: not a JSON object: "TIMESTAMP,ContextTokens"`},
		"array":              {`[1, 2]`, `t.jsonl:2: not a JSON object: "[1, 2]"`},
		"half":               {`{"input_length": 5, "outp`, `t.jsonl:2: not a JSON object: "{\"input_length\": 5, \"outp"`},
		"no input":           {`{"output_length": 5}`, `t.jsonl:2: no input_length in "{\"output_length\": 5}"`},
		"null output":        {`{"input_length": 5, "output_length": null}`, `t.jsonl:2: no output_length in "{\"input_length\": 5, \"output_length\": null}" (format aiperf accepts such rows, with length 0 and a mark)`},
		"negative":           {`{"input_length": -5, "output_length": 1}`, `t.jsonl:2: input_length is out of range: "-5" tokens`},
		"absurd":             {`{"input_length": 100000001, "output_length": 1}`, `t.jsonl:2: input_length is out of range: "100000001" tokens`},
		"absurd by exponent": {`{"input_length": 1e300, "output_length": 1}`, `t.jsonl:2: input_length is out of range: "1e300" tokens`},
		"fraction":           {`{"input_length": 1.5, "output_length": 1}`, `t.jsonl:2: input_length is not a whole number: "1.5"`},
		"text for a number":  {`{"input_tokens": "5", "output_length": 1}`, `t.jsonl:2: input_tokens is not a number: "\"5\""`},
		"negative time":      {`{"timestamp": -1, "input_length": 5, "output_length": 1}`, `t.jsonl:2: timestamp is out of range: "-1" ms`},
		"infinite time":      {`{"timestamp": 1e999, "input_length": 5, "output_length": 1}`, `t.jsonl:2: timestamp is out of range: "1e999"`},
		"negative id":        {`{"input_length": 5, "output_length": 1, "hash_ids": [1, -2]}`, `t.jsonl:2: hash_ids has an id that is not an unsigned 64-bit integer: "-2"`},
		"id beyond 64 bits":  {`{"input_length": 5, "output_length": 1, "hash_ids": [18446744073709551616]}`, `t.jsonl:2: hash_ids has an id that is not an unsigned 64-bit integer: "18446744073709551616"`},
		"id as float":        {`{"input_length": 5, "output_length": 1, "hash_ids": [1.0]}`, `t.jsonl:2: hash_ids has an id that is not an unsigned 64-bit integer: "1.0"`},
		"ids as text":        {`{"input_length": 5, "output_length": 1, "hash_ids": "1"}`, `t.jsonl:2: hash_ids is not an array: "\"1\""`},
		"session as number":  {`{"input_length": 5, "output_length": 1, "session_id": 4}`, `t.jsonl:2: session_id is not a string: "4"`},
		"after as text":      {`{"input_length": 5, "output_length": 1, "after": "a"}`, `t.jsonl:2: after is not an array: "\"a\""`},
		"after with numbers": {`{"input_length": 5, "output_length": 1, "after": [1]}`, `t.jsonl:2: after has an id that is not a string: "1"`},
		"kind of delay":      {`{"input_length": 5, "output_length": 1, "delay_kind": "nap"}`, `t.jsonl:2: delay_kind is neither think nor tool: "nap"`},
		"key twice":          {`{"input_length": 5, "output_length": 1, "input_length": 6}`, `t.jsonl:2: key "input_length" is given twice`},
		"control character":  {"{\"input_length\": 5, \"output_length\": 1, \"session_id\": \"a\x01\"}", `t.jsonl:2: not a JSON object: "{\"input_length\": 5, \"output_length\": 1, \"session_id\": \"a\x01\"}"`},
		"invalid UTF-8":      {"{\"input_length\": 5, \"output_length\": 1, \"x\": \"\xff\"}", `t.jsonl:2: not a JSON object: "{\"input_length\": 5, \"output_length\": 1, \"x\": \"\xff\"}"`},
		"Azure's CSV":        {`TIMESTAMP,ContextTokens,GeneratedTokens`, `t.jsonl:2: a row of an Azure trace among those of a Mooncake trace: the header of an Azure trace in CSV, not a JSON object: "TIMESTAMP,ContextTokens,GeneratedTokens"`},
		"BurstGPT's CSV":     {`Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type`, `t.jsonl:2: a row of a BurstGPT trace among those of a Mooncake trace: the header of a BurstGPT trace in CSV, not a JSON object: "Timestamp,Model,Request tokens,Response tokens,Total tokens,"...`},
		"half a log's row":   {`{"question": "a secr`, `t.jsonl:2: not a JSON object, or cut off`},
		"rest behind":        {`{"input_length": 5, "output_length": 1} {}`, `t.jsonl:2: not a JSON object: "{\"input_length\": 5, \"output_length\": 1} {}"`},
		"leading zero":       {`{"input_length": 05, "output_length": 1}`, `t.jsonl:2: not a JSON object: "{\"input_length\": 05, \"output_length\": 1}"`},
	} {
		t.Run(name, func(t *testing.T) {
			good := `{"input_length": 1, "output_length": 1}`
			text := good + "\n" + tc.row + "\n" + good + "\n"
			rows, _, err := readString(text, Options{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("error is\n%v\nwant\n%v", err, tc.want)
			}
			if len(rows) != 1 {
				t.Errorf("%d rows before the error, want 1", len(rows))
			}
			var bad *trace.RowError
			if !errors.As(err, &bad) || bad.Line != 2 || bad.File != "t.jsonl" {
				t.Errorf("error does not name the place: %#v", err)
			}

			rows, r, err := readString(text, Options{SkipBadRows: true})
			if err != nil || len(rows) != 2 {
				t.Fatalf("skipping: %d rows, error %v", len(rows), err)
			}
			if n, why := r.Skipped(); n != 1 || len(why) != 1 || why[0].Error() != tc.want {
				t.Errorf("skipped %d: %v", n, why)
			}
		})
	}
}

func TestReadWhatFilesAreLike(t *testing.T) {
	row := func(n int) string { return fmt.Sprintf(`{"timestamp": 5, "input_length": %d, "output_length": 1}`, n) }
	two := row(1) + "\n" + row(2) + "\n"
	packed := func(pack func(io.Writer) io.WriteCloser) string {
		var b bytes.Buffer
		w := pack(&b)
		io.WriteString(w, two)
		w.Close()
		return b.String()
	}
	ids := strings.Repeat("12345678, ", 500_000)
	for name, text := range map[string]string{
		"plain":           two,
		"no last newline": row(1) + "\n" + row(2),
		"CRLF":            row(1) + "\r\n" + row(2) + "\r\n",
		"byte order mark": "\xef\xbb\xbf" + two,
		"blank lines":     "\n\n" + row(1) + "\n  \n" + row(2) + "\n\n",
		"gzip":            packed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
		"zstd":            packed(func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }),
		"rows of 5 MB": `{"input_length": 600000, "output_length": 1, "hash_ids": [` + ids + `1]}` + "\n" +
			`{"input_length": 500000, "output_length": 1, "hash_ids": [` + ids + `1]}`,
	} {
		t.Run(name, func(t *testing.T) {
			rows, _, err := readString(text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != 2 || rows[0].InputLength == rows[1].InputLength || len(rows[0].HashIDs) != len(rows[1].HashIDs) {
				t.Errorf("%d rows", len(rows))
			}
		})
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	_, _, err := readString("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", Options{SkipBadRows: true})
	if err == nil || !strings.Contains(err.Error(), "t.jsonl:1: a Git LFS pointer") {
		t.Errorf("a pointer: %v", err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 1000 {
		io.WriteString(z, `{"input_length": 1, "output_length": 1}`+"\n")
	}
	z.Close()
	_, _, err = readString(b.String()[:b.Len()-20], Options{SkipBadRows: true})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut gzip file: %v", err)
	}
	_, r, err := readString(strings.Repeat(" ", MaxRow+2)+"\n"+`{"input_length": 1, "output_length": 1}`, Options{SkipBadRows: true})
	if err != nil {
		t.Fatal(err)
	}
	if n, why := r.Skipped(); n != 1 || !strings.Contains(why[0].Error(), "t.jsonl:1: row is longer than 64 MiB") {
		t.Errorf("a row without end: %d %v", n, why)
	}
}

func TestRequestsAreOwned(t *testing.T) {
	rows, _, err := readString(`{"input_length": 1, "output_length": 1, "hash_ids": [1, 2]}
{"input_length": 1, "output_length": 1, "hash_ids": [3, 4], "m": 1}
{"input_length": 1, "output_length": 1, "hash_ids": [5]}`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows[0].HashIDs = append(rows[0].HashIDs, 99)
	if d := cmp.Diff([][]uint64{{1, 2, 99}, {3, 4}, {5}}, [][]uint64{rows[0].HashIDs, rows[1].HashIDs, rows[2].HashIDs}); d != "" {
		t.Error(d)
	}
}

// TestCanonicalRowsTakeTheFastPath: the fast parser agrees with the general one on
// every row that it accepts, and it accepts every row without unknown keys that
// AppendRow writes.
func TestCanonicalRowsTakeTheFastPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRequest(t, false)
		line := AppendRow(nil, want)
		var fast, slow trace.Request
		if err := parseAny(line, &slow); err != nil {
			t.Fatal(err)
		}
		if !parseCanonical(line, &fast) {
			if want.SessionID == "" && strings.IndexByte(string(line), '.') < 0 {
				t.Fatalf("not taken: %s", line)
			}
			return
		}
		if d := cmp.Diff(slow, fast); d != "" {
			t.Fatalf("%s: general, canonical:\n%s", line, d)
		}
	})
}

// anyRequest draws a request that the reader may return.
func anyRequest(t *rapid.T, extras bool) trace.Request {
	ms := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 1e9), func(n int) float64 { return float64(n) }),
		rapid.Float64Range(0, 1e12))
	opt := func(name string) trace.Opt[float64] {
		if rapid.Bool().Draw(t, "has "+name) {
			return trace.Some(ms.Draw(t, name))
		}
		return trace.Opt[float64]{}
	}
	r := trace.Request{
		Timestamp:    opt("timestamp"),
		Delay:        opt("delay"),
		InputLength:  rapid.IntRange(0, trace.MaxLength).Draw(t, "isl"),
		OutputLength: rapid.IntRange(0, trace.MaxLength).Draw(t, "osl"),
		SessionID:    rapid.OneOf(rapid.Just(""), rapid.String()).Draw(t, "session"),
	}
	if rapid.Bool().Draw(t, "has ids") {
		r.HashIDs = rapid.SliceOfN(rapid.Uint64(), 0, 8).Draw(t, "ids")
	}
	if rapid.Bool().Draw(t, "declares") {
		r.ContextLen, r.UniquePromptLen = trace.Some(rapid.IntRange(0, 9).Draw(t, "context")), trace.Some(3)
	}
	if extras && rapid.Bool().Draw(t, "has extras") {
		r.Extra = []byte(`{"model": "` + rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "model") + `", "n": 1.50}`)
	}
	return r
}

func TestWriteThenReadIsTheIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := make([]trace.Request, rapid.IntRange(0, 5).Draw(t, "rows"))
		for i := range want {
			want[i] = anyRequest(t, true)
		}
		name := rapid.SampledFrom([]string{"a.jsonl", "a.gz", "a.zst"}).Draw(t, "name")
		var b bytes.Buffer
		w, err := NewWriter(&b, name)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := w.WriteAll(trace.FromSlice(want)); err != nil || n != len(want) {
			t.Fatal(n, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(&b, name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := trace.Collect(r.Requests())
		if err != nil {
			t.Fatal(err)
		}
		if len(want) == 0 && len(got) == 0 {
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// rewritten reads a native trace and writes it again.
func rewritten(t *testing.T, path string) (original, rewritten []byte, rows int) {
	t.Helper()
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b bytes.Buffer
	w, _ := NewWriter(&b, "")
	if rows, err = w.WriteAll(r.Requests()); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return bytes.TrimSpace(original), bytes.TrimSpace(b.Bytes()), rows
}

func TestPublishedTraceIsRewrittenUnchanged(t *testing.T) {
	want, got, rows := rewritten(t, tracetest.Published(t, "conversation_trace.jsonl"))
	if !bytes.Equal(want, got) || rows != 12031 {
		t.Errorf("the bytes of %d rows differ", rows)
	}
}

func TestSampleTracesAreRewrittenUnchanged(t *testing.T) {
	for _, name := range []string{"conversation.jsonl", "chat.jsonl", "agent.jsonl"} {
		want, got, rows := rewritten(t, filepath.Join(tracetest.Root(t), "traces", name))
		if !bytes.Equal(want, got) || rows == 0 {
			t.Errorf("%s: the bytes of %d rows differ", name, rows)
		}
	}
}

func TestCreateReplacesOnlyWhenWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	os.WriteFile(path, []byte("old"), 0o644)
	content := func() string { b, _ := os.ReadFile(path); return string(b) }

	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(trace.Request{InputLength: 1})
	w.Discard()
	if content() != "old" {
		t.Errorf("a discarded trace changed the file: %q", content())
	}
	if w, err = Create(path); err != nil {
		t.Fatal(err)
	}
	w.Write(trace.Request{InputLength: 1})
	if content() != "old" {
		t.Errorf("the file changed before Close: %q", content())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if want := `{"input_length": 1, "output_length": 0}` + "\n"; content() != want {
		t.Errorf("the file is %q, want %q", content(), want)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("files left behind: %v", left)
	}
	if _, err := Create(filepath.Dir(path)); err == nil {
		t.Error("a folder was accepted")
	}
}

// FuzzRow compares both parsers with each other and with the standard library:
// accepted rows are valid JSON and read back as the same row.
func FuzzRow(f *testing.F) {
	for _, seed := range []string{
		`{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}`,
		`{"timestamp":1.25,"input_tokens":1,"output_tokens":1e2,"session_id":"\u0000","delay_ms":0.5,"x":[{}]}`,
		`{"input_length":1,"output_length":1,"hash_ids":[18446744073709551615],"a":"\ud800"}`,
		`{"input_length":1,"output_length":1,"hash_ids":[1 ,]}`, `{}`, `[]`, ``, `nul`, `{"a":}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var got, general trace.Request
		err := ParseRow(line, &got)
		if generalErr := parseAny(line, &general); (err == nil) != (generalErr == nil) {
			t.Fatalf("canonical: %v, general: %v", err, generalErr)
		}
		if err != nil {
			return
		}
		if d := cmp.Diff(general, got); d != "" {
			t.Fatal(d)
		}
		if !stdjson.Valid(line) {
			t.Fatalf("read what is not JSON: %q", line)
		}
		written := AppendRow(nil, got)
		if !stdjson.Valid(written) {
			t.Fatalf("wrote what is not JSON: %q", written)
		}
		var again trace.Request
		if err := ParseRow(written, &again); err != nil {
			t.Fatalf("%v\n%q\n%q", err, line, written)
		}
		if d := cmp.Diff(got, again); d != "" {
			t.Fatal(d)
		}
	})
}

// TestTooManyIDs: a row with more ids than its prompt can have blocks is rejected
// before its ids are allocated, whatever the order of its keys.
func TestTooManyIDs(t *testing.T) {
	row := func(format string, isl, ids int) []byte {
		list := strings.TrimSuffix(strings.Repeat("7, ", ids), ", ")
		return []byte(strings.NewReplacer("ISL", fmt.Sprintf(`"input_length": %d`, isl), "IDS", `"hash_ids": [`+list+`]`).Replace(format))
	}
	for _, format := range []string{`{ISL, "output_length": 1, IDS}`, `{IDS, ISL, "output_length": 1}`, `{"output_length": 1, IDS, "session_id": "]", ISL}`} {
		for _, isl := range []int{0, 1, 1000} {
			var r trace.Request
			if line := row(format, isl, isl+spareIDs); !parseCanonical(line, &r) || len(r.HashIDs) != isl+spareIDs || r.InputLength != isl {
				t.Errorf("%s of %d tokens: %d ids were read", format, isl, len(r.HashIDs))
			}
			line := row(format, isl, isl+spareIDs+1)
			want := fmt.Sprintf("hash_ids has %d ids for an input_length of %d: a block has at least one token", isl+spareIDs+1, isl)
			if parseCanonical(line, &r) {
				t.Errorf("%s of %d tokens: %d ids were read", format, isl, len(r.HashIDs))
			}
			for _, parse := range []func([]byte, *trace.Request) error{ParseRow, parseAny} {
				if err := parse(line, &r); err == nil || err.Error() != want {
					t.Errorf("%s of %d tokens: %v, want %s", format, isl, err, want)
				}
			}
		}
		r := trace.Request{}
		if ParseRow(row(format, 1000, 1_250_000), &r); cap(r.HashIDs) > 10_000 {
			t.Errorf("%s: a refused row took memory for %d ids", format, cap(r.HashIDs))
		}
	}
}

func BenchmarkReadNative(b *testing.B) {
	for _, naming := range tracetest.Namings() {
		prompts, _ := tracetest.Prompts(2000, naming)
		var file []byte
		for i, ids := range prompts {
			r := trace.Request{Timestamp: trace.Some(float64(i)), InputLength: 512 * len(ids), OutputLength: i, HashIDs: ids}
			file = append(AppendRow(file, r), '\n')
		}
		benchmarkRead(b, "ids="+naming.Name, file)
	}
}

// benchmarkRead reads a file into rows that are kept and into borrowed ones.
func benchmarkRead(b *testing.B, name string, file []byte) {
	for way, rows := range map[string]func(*Reader) trace.Requests{"owned": (*Reader).Requests, "borrowed": (*Reader).Borrowed} {
		b.Run(name+"/rows="+way, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			references := 0
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(file), "", Options{})
				if err != nil {
					b.Fatal(err)
				}
				references = 0
				for req, err := range rows(r) {
					if err != nil {
						b.Fatal(err)
					}
					references += len(req.HashIDs)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(references), "ns/reference")
		})
	}
}
