package format

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"moontide/trace"
)

func numbered(n int) trace.Request {
	r := trace.Request{Timestamp: trace.Some(1.5), InputLength: n, OutputLength: 1, HashIDs: []uint64{}}
	for i := range uint64(n) {
		r.HashIDs = append(r.HashIDs, i)
	}
	return r
}

// TestWriteAll: rows shorter and longer than the buffer are written whole.
func TestWriteAll(t *testing.T) {
	for _, c := range []struct{ ids, rows int }{{0, 0}, {0, 1}, {3, 1}, {10, 30_000}, {100_000, 3}} {
		row := numbered(c.ids)
		want := strings.Repeat(string(AppendRow(nil, row))+"\n", c.rows)
		var out bytes.Buffer
		w, err := NewWriter(&out, "")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := w.WriteAll(trace.FromSlice(slices.Repeat([]trace.Request{row}, c.rows))); n != c.rows || err != nil {
			t.Errorf("%+v: %d rows, error %v", c, n, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if out.String() != want {
			t.Errorf("%+v: %d bytes, want %d", c, out.Len(), len(want))
		}
	}
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
