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
			if line := row(format, isl, maxIDs(isl)); !parseCanonical(line, &r) || len(r.HashIDs) != maxIDs(isl) || r.InputLength != isl {
				t.Errorf("%s of %d tokens: %d ids were read", format, isl, len(r.HashIDs))
			}
			line := row(format, isl, maxIDs(isl)+1)
			want := fmt.Sprintf("hash_ids has %d ids for an input_length of %d: a block has at least one token", maxIDs(isl)+1, isl)
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
