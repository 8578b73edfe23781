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

func TestLongRows(t *testing.T) {
	ids := strings.Repeat("12345678, ", 500_000)
	row := `{"input_length": 600000, "output_length": 1, "hash_ids": [` + ids + `1]}` + "\n"
	if rows, _, err := readString(row+row, Options{}); err != nil || len(rows) != 2 || len(rows[0].HashIDs) != 500_001 || len(rows[1].HashIDs) != 500_001 {
		t.Errorf("%d rows, %v", len(rows), err)
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

// anyRequest draws a request that the reader may return.
func anyRequest(t *rapid.T) trace.Request {
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
	if rapid.Bool().Draw(t, "has extras") {
		r.Extra = []byte(`{"model": "` + rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "model") + `", "n": 1.50}`)
	}
	return r
}

// TestWriteThenReadIsTheIdentity: rows read back as they were written. The fast parser
// agrees with the general one on every row that it accepts, and it accepts every row
// without unknown keys that AppendRow writes.
func TestWriteThenReadIsTheIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := make([]trace.Request, rapid.IntRange(0, 5).Draw(t, "rows"))
		for i := range want {
			want[i] = anyRequest(t)
			line := AppendRow(nil, want[i])
			var fast, slow trace.Request
			if err := parseAny(line, &slow); err != nil {
				t.Fatal(err)
			}
			plain := want[i].Extra == nil && want[i].SessionID == "" && !strings.Contains(string(line), ".")
			if taken := parseCanonical(line, &fast); taken && !cmp.Equal(slow, fast) || plain && !taken {
				t.Fatalf("%s: taken %v\n%s", line, taken, cmp.Diff(slow, fast))
			}
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

func TestNativeTracesAreRewrittenUnchanged(t *testing.T) {
	check := func(t *testing.T, path string, count int) {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var got bytes.Buffer
		w, _ := NewWriter(&got, "")
		rows, err := w.WriteAll(r.Requests())
		if err != nil || rows < count {
			t.Fatalf("%d rows, want %d: %v", rows, count, err)
		}
		w.Close()
		if !bytes.Equal(bytes.TrimSpace(want), bytes.TrimSpace(got.Bytes())) {
			t.Errorf("the bytes of %d rows differ", rows)
		}
	}
	for _, name := range []string{"conversation.jsonl", "chat.jsonl", "agent.jsonl"} {
		t.Run(name, func(t *testing.T) { check(t, filepath.Join(tracetest.Root(t), "traces", name), 1) })
	}
	t.Run("published", func(t *testing.T) { check(t, tracetest.Published(t, "conversation_trace.jsonl"), 12031) })
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
