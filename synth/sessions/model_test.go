package sessions_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/format"
)

// lines encodes rows as in a file.
func lines(t testing.TB, rows []trace.Request) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := format.NewWriter(&b, "trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func saved(t testing.TB, m *sessions.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := m.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var models sync.Map // of workloads, by name

// fitted returns the model of a workload.
func fitted(t testing.TB, name string) *sessions.Model {
	t.Helper()
	w := workloads[name]
	once, _ := models.LoadOrStore(name, sync.OnceValue(func() *sessions.Model {
		return fit(t, w.rows(), sessions.Options{BlockSize: w.blockSize})
	}))
	return once.(func() *sessions.Model)()
}

// modelOf returns the model of rows, which are those of the workload or of the
// conversation trace if one has the name.
func modelOf(t testing.TB, name string, rows []trace.Request) *sessions.Model {
	t.Helper()
	if _, ok := workloads[name]; ok {
		return fitted(t, name)
	}
	if name == "conversation" {
		return conversationModel(t)
	}
	return fit(t, rows, sessions.Options{})
}

func TestRequestsRepeat(t *testing.T) {
	m := fit(t, workloads["toolagent"].rows(), sessions.Options{})
	long, short := lines(t, draw(t, m, 5, 3000)), lines(t, draw(t, m, 5, 1000))
	if !bytes.HasPrefix(long, short) {
		t.Error("1000 requests are not the beginning of 3000")
	}
	if !bytes.Equal(long, lines(t, draw(t, m, 5, 3000))) {
		t.Error("the same seed draws other requests")
	}
	if bytes.Equal(short, lines(t, draw(t, m, 6, 1000))) {
		t.Error("another seed draws the same requests")
	}
	at := func(seed uint64) (times []float64) {
		for _, r := range draw(t, m, seed, 1000) {
			times = append(times, r.Timestamp.Value)
		}
		return times
	}
	if slices.Equal(at(5), at(6)) {
		t.Error("another seed has the same arrivals")
	}
	for _, err := range m.Requests(1, 0) {
		if err == nil || !strings.Contains(err.Error(), "drawing 0 requests") {
			t.Errorf("error %v for no requests", err)
		}
	}
}

// A model that was written and read draws the same bytes.
func TestFileIsTheModel(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(workloads)) {
		t.Run(name, func(t *testing.T) {
			m := fitted(t, name)
			file := saved(t, m)
			read, err := sessions.Read(bytes.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(file), string(saved(t, read))); diff != "" {
				t.Error("the file changes in a round trip")
			}
			if !bytes.Equal(lines(t, draw(t, m, 3, 4000)), lines(t, draw(t, read, 3, 4000))) {
				t.Error("the model that was read draws other requests")
			}
			if len(file) > 300_000 {
				t.Errorf("the file has %d bytes", len(file))
			}
		})
	}
}

// Lengths match ids, time never goes backwards, and context_len is what an
// infinite cache hits.
func TestRequestsAreValid(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(workloads)) {
		t.Run(name, func(t *testing.T) {
			w := workloads[name]
			rows := w.rows()
			low, high := islRange(rows)
			m := fitted(t, name)
			seen := make(map[uint64]bool)
			before := 0.0
			for r, err := range m.Requests(9, 5000) {
				if err != nil {
					t.Fatal(err)
				}
				if !r.Timestamp.Set || r.Timestamp.Value < before {
					t.Fatalf("timestamp %v after %v", r.Timestamp, before)
				}
				before = r.Timestamp.Value
				if want := (r.InputLength + w.blockSize - 1) / w.blockSize; len(r.HashIDs) != want {
					t.Fatalf("%d blocks for %d tokens, want %d", len(r.HashIDs), r.InputLength, want)
				}
				if r.InputLength < 1 || float64(r.InputLength) < low || float64(r.InputLength) > high {
					t.Fatalf("ISL %d, want %v to %v", r.InputLength, low, high)
				}
				hit := 0
				for hit < len(r.HashIDs) && seen[r.HashIDs[hit]] {
					hit++
				}
				if want := min(hit*w.blockSize, r.InputLength); r.ContextLen.Value != want {
					t.Fatalf("context_len %d, want %d", r.ContextLen.Value, want)
				}
				if r.ContextLen.Value+r.UniquePromptLen.Value != r.InputLength {
					t.Fatalf("%d and %d tokens do not make %d", r.ContextLen.Value, r.UniquePromptLen.Value, r.InputLength)
				}
				for i, id := range r.HashIDs {
					if seen[id] && i >= hit {
						t.Fatalf("block %d was seen before, but follows a new one", id)
					}
				}
				for _, id := range r.HashIDs {
					seen[id] = true
				}
			}
		})
	}
}

// Drawn blocks never have ids of the source, and follow a round number.
func TestFirstBlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, want uint64 }{
		{0, 10}, {1, 20}, {9, 20}, {100_000, 200_000}, {180_000, 200_000}, {1 << 32, 5e9}, {1 << 60, 0},
	} {
		var rows []trace.Request
		for i := range uint64(10) {
			rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i)), InputLength: 4, OutputLength: 1, HashIDs: []uint64{c.from + i}})
		}
		m, err := sessions.Fit(trace.FromSlice(rows), sessions.Options{BlockSize: 4})
		if err != nil {
			t.Fatal(err)
		}
		if got := draw(t, m, 1, 1)[0].HashIDs[0]; got != c.want {
			t.Errorf("ids from %d on: the first drawn one is %d, want %d", c.from, got, c.want)
		}
	}
}

// islRange is the range of ISL, rounded outward by up to twice the range of the
// five shortest and the five longest prompts.
func islRange(rows []trace.Request) (low, high float64) {
	var isl []float64
	for _, r := range rows {
		isl = append(isl, float64(r.InputLength))
	}
	slices.Sort(isl)
	n := len(isl)
	return isl[0] - 2*(isl[4]-isl[0]) - 1, isl[n-1] + 2*(isl[n-1]-isl[n-5]) + 1
}

// The bytes drawn by each seed stay the same in every version.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"toolagent": "7400285479edf97b", "small": "49e75e4926b7f93d", "bursts": "c5b6c02eb606d965", "documents": "cc825d9fe7e778bc",
	} {
		m := fitted(t, name)
		if got := fmt.Sprintf("%x", sha256.Sum256(lines(t, draw(t, m, 1, 2000))))[:16]; got != want {
			t.Errorf("%s: the digest is %s, want %s", name, got, want)
		}
	}
}

func TestAtRate(t *testing.T) {
	t.Parallel()
	w := workloads["small"]
	m := fitted(t, "small")
	fast, err := m.AtRate(4)
	if err != nil {
		t.Fatal(err)
	}
	a := look(t, draw(t, m, 1, 8000), w.blockSize, nil)
	b := look(t, draw(t, fast, 1, 32_000), w.blockSize, nil)
	if r := b.Arrivals.Rate.Value / a.Arrivals.Rate.Value; r < 3.5 || r > 4.6 {
		t.Errorf("the rate is %v times as high", r)
	}
	if r := b.Sessions.Gap.Quantile(.5) / a.Sessions.Gap.Quantile(.5); r < .9 || r > 1.1 {
		t.Errorf("the time between turns is %v times the source's", r)
	}
	for _, factor := range []float64{0, -1} {
		if _, err := m.AtRate(factor); err == nil {
			t.Errorf("factor %v is accepted", factor)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	row := func(isl int, ids ...uint64) trace.Request {
		return trace.Request{Timestamp: trace.Some(1.0), InputLength: isl, OutputLength: 1, HashIDs: ids}
	}
	five := slices.Repeat([]trace.Request{row(10, 1)}, 5)
	for _, c := range []struct {
		name, want string
		rows       []trace.Request
		opts       sessions.Options
	}{
		{"nothing", "too few requests in the source: 0; at least 5 are needed", nil, sessions.Options{}},
		{"one", "too few requests in the source: 1; at least 5 are needed", five[:1], sessions.Options{}},
		{"block size", "block size -1 is not in 0..100000000", five, sessions.Options{BlockSize: -1}},
		{"length", "request 2: input length -3 is not in 0..100000000", []trace.Request{five[0], row(-3, 1)}, sessions.Options{}},
		{"mixed", "request 2: block ids must be on all rows or on none", []trace.Request{five[0], row(3)}, sessions.Options{}},
		{"no time", "request 1: no timestamp, and no turn before it", []trace.Request{{InputLength: 3, SessionID: "a"}}, sessions.Options{}},
		{"blocks", "more than 1048576", slices.Repeat([]trace.Request{row(2_000_000, 1)}, 5), sessions.Options{BlockSize: 1}},
		{"sizes", "no one block size fits every row", append(five[:4:4], row(1000, 1, 2, 3), row(1000, 1)), sessions.Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := sessions.Fit(trace.FromSlice(c.rows), c.opts)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	failing := func(yield func(trace.Request, error) bool) { yield(trace.Request{}, io.ErrUnexpectedEOF) }
	if _, err := sessions.Fit(failing, sessions.Options{}); err == nil || !strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error()) {
		t.Errorf("error %v of a source that fails", err)
	}
}
