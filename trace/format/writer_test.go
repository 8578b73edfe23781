package format

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/trace"
)

func numbered(n int) trace.Request {
	r := trace.Request{Timestamp: trace.Some(1.5), InputLength: n, OutputLength: 1, HashIDs: []uint64{}}
	for i := range uint64(n) {
		r.HashIDs = append(r.HashIDs, i)
	}
	return r
}

func TestWriteAllAllocatesNothingPerRow(t *testing.T) {
	w, _ := NewWriter(io.Discard, "")
	rows := trace.FromSlice(slices.Repeat([]trace.Request{numbered(100)}, 20_000))
	if _, err := w.WriteAll(rows); err != nil { // the buffers have their size
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(5, func() { w.WriteAll(rows) })
	if allocs > 10 { // independent of the number of rows
		t.Errorf("%v allocations for 20,000 rows", allocs)
	}
}

// faulty accepts some bytes, fails once, and then accepts more.
type faulty struct {
	taken  int64
	limit  int64
	failed bool
	short  bool
}

var errFull = errors.New("disk full")

func (f *faulty) Write(b []byte) (int, error) {
	if f.taken+int64(len(b)) > f.limit && !f.failed {
		f.failed = true
		if f.short {
			return 0, nil
		}
		return 0, errFull
	}
	f.taken += int64(len(b))
	return len(b), nil
}

func TestWriterStopsWhereItsOutputFailed(t *testing.T) {
	row := numbered(1000)
	length := int64(len(AppendRow(nil, row)) + 1)
	for _, short := range []bool{false, true} {
		want := errFull
		if short {
			want = io.ErrShortWrite
		}
		out := &faulty{limit: 1_000_000, short: short}
		w, _ := NewWriter(out, "")
		n, err := w.WriteAll(trace.FromSlice(slices.Repeat([]trace.Request{row}, 1000)))
		if !errors.Is(err, want) || int64(n)*length < out.taken {
			t.Fatalf("%d rows, error %v", n, err)
		}
		taken := out.taken
		if taken == 0 || taken > out.limit || taken%length != 0 {
			t.Errorf("%d bytes came out before the failure", taken)
		}
		for range 1000 {
			err = w.Write(row)
		}
		if !errors.Is(err, want) || !errors.Is(w.Close(), want) {
			t.Errorf("the failure is forgotten: %v", err)
		}
		if out.taken != taken {
			t.Errorf("%d bytes follow the failure", out.taken-taken)
		}
	}
	small := &faulty{}
	w, _ := NewWriter(small, "")
	if err := w.Write(row); err != nil {
		t.Errorf("a row that is only kept: %v", err)
	}
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
	}
}

// A failed write leaves the existing file unchanged.
func TestCreateOnAFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skipf("no device that is full: %v", err)
	}
	w, err := Create("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.WriteAll(trace.FromSlice(slices.Repeat([]trace.Request{numbered(1000)}, 1000)))
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("error %v", err)
	}
	if err := w.Close(); err == nil {
		t.Error("Close forgets it")
	}
}

// TestWriterRefusesWhatNoReaderAccepts: a row is either refused, or read back as it
// was.
func TestWriterRefusesWhatNoReaderAccepts(t *testing.T) {
	times := []float64{0, 1.5, 1e-320, 5e-324, 123456789.125, trace.MaxMS, math.Nextafter(trace.MaxMS, 2e15), 1e16, 1e300, -1e-9, -1, math.Inf(1), math.Inf(-1), math.NaN()}
	lengths := []int{0, 1, 63, 64, 65, trace.MaxLength, trace.MaxLength + 1, math.MaxInt, -1, math.MinInt}
	extras := []string{"", `{}`, `{"a": [1, {"b": null}]}`, "{\"a\":\n1}", `{"a": }`, `[1]`, "{\"a\": \"\xff\"}", `null`, `{"a": 1} `}
	rapid.Check(t, func(t *rapid.T) {
		time := func(name string) (v trace.Opt[float64]) {
			if rapid.Bool().Draw(t, name+" is set") {
				v = trace.Some(rapid.SampledFrom(times).Draw(t, name))
			}
			return v
		}
		length := func(name string) int { return rapid.SampledFrom(lengths).Draw(t, name) }
		row := trace.Request{
			Timestamp: time("timestamp"), Delay: time("delay"), InputLength: length("isl"), OutputLength: length("osl"),
			SessionID: rapid.StringN(0, 5, -1).Draw(t, "session"),
		}
		if rapid.Bool().Draw(t, "context") {
			row.ContextLen, row.UniquePromptLen = trace.Some(length("context")), trace.Some(length("unique"))
		}
		if rapid.Bool().Draw(t, "ids") {
			row.HashIDs = make([]uint64, rapid.SampledFrom([]int{0, 1, 64, 65, 127, 128, 129}).Draw(t, "ids"))
		}
		if extra := rapid.SampledFrom(extras).Draw(t, "extra"); extra != "" {
			row.Extra = []byte(extra)
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, "")
		if err != nil {
			t.Fatal(err)
		}
		refused := w.Write(row)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text := out.Bytes()
		if refused != nil {
			if text = append(AppendRow(nil, row), '\n'); out.Len() > 0 {
				t.Fatalf("%s was refused and written: %v", text, refused)
			}
		}
		r, err := NewReader(bytes.NewReader(text), "t", Options{Format: Mooncake})
		if err != nil {
			t.Fatal(err)
		}
		var got trace.Request
		err = r.Read(&got)
		if (err != nil) != (refused != nil) {
			t.Fatalf("%s: written with %v, read with %v", text, refused, err)
		}
		if err != nil {
			return
		}
		if len(row.Extra) <= len(`{}`) {
			row.Extra = nil
		}
		if diff := cmp.Diff(row, got); diff != "" {
			t.Fatalf("%s\n%s", text, diff)
		}
		if err := r.Read(&got); err != io.EOF {
			t.Fatalf("a second row: %v", err)
		}
	})
}

func TestWriterSaysWhatItRefuses(t *testing.T) {
	for want, row := range map[string]trace.Request{
		"writing row 1: its timestamp is +Inf ms, outside of 0 to 1e+15 ms: choose a rate, speed or window that keeps times in range": {Timestamp: trace.Some(math.Inf(1))},
		"writing row 1: its delay is 2e+15 ms, outside of 0 to 1e+15 ms: choose a rate, speed or window that keeps times in range":    {Delay: trace.Some(2e15)},
		"writing row 1: its output_length is 100000001 tokens, outside of 0 to 100000000":                                             {OutputLength: 100_000_001},
		"writing row 1: it has 66 block ids for an input_length of 1: a block has at least one token":                                 {InputLength: 1, HashIDs: make([]uint64, 66)},
		`writing row 1: its unknown keys are not a JSON object on one line: an object with the keys a`:                                {Extra: []byte(`{"a":`)},
		"writing row 1: it has 67108912 bytes, more than the 67108864 that readers accept":                                            {Extra: []byte(`{"a": "` + strings.Repeat("x", MaxRow) + `"}`)},
	} {
		w, err := NewWriter(io.Discard, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(row); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}
