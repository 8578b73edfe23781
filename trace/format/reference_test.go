package format_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/tracetest"
)

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// collect reads a file.
func collect(t *testing.T, path string, opts format.Options) ([]trace.Request, *format.Reader) {
	t.Helper()
	r, err := format.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	rows, err := trace.Collect(r.Requests())
	if err != nil {
		t.Fatal(err)
	}
	return rows, r
}

// TestPublishedAzure compares the trace of 2023 with published statistics.
func TestPublishedAzure(t *testing.T) {
	rows, _ := collect(t, tracetest.Published(t, "AzureLLMInferenceTrace_conv.csv"), format.Options{})
	var isl, osl []float64
	for _, r := range rows {
		isl, osl = append(isl, float64(r.InputLength)), append(osl, float64(r.OutputLength))
	}
	if span := rows[len(rows)-1].Timestamp.Value; len(rows) != 19_366 || rows[0].Timestamp.Value != 0 || math.Abs(span-3_501_721.937) > 1e-6 {
		t.Errorf("%d rows over %v ms, from %v", len(rows), span, rows[0].Timestamp)
	}
	for _, tc := range []struct {
		name   string
		values []float64
		want   [5]float64 // mean, min, p50, p99, max
	}{
		{"ISL", isl, [5]float64{1154.70, 2, 1020, 4142, 14050}},
		{"OSL", osl, [5]float64{211.13, 7, 129, 601, 1000}},
	} {
		sum := 0.0
		for _, v := range tc.values {
			sum += v
		}
		slices.Sort(tc.values)
		last := len(tc.values) - 1
		at := func(q float64) float64 { // between closest ranks
			low, rest := math.Modf(q * float64(last))
			return tc.values[int(low)] + rest*(tc.values[min(int(low)+1, last)]-tc.values[int(low)])
		}
		got := [5]float64{math.Round(sum/float64(len(tc.values))*100) / 100, tc.values[0], at(0.5), math.Round(at(0.99)), tc.values[last]}
		if got != tc.want {
			t.Errorf("%s is %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestPublishedDynamo reads the file with the standard library and compares
// every hash.
func TestPublishedDynamo(t *testing.T) {
	path := tracetest.Published(t, "dynamo_pi_request_trace.jsonl.gz")
	rows, r := collect(t, path, format.Options{})
	type request struct {
		ID       string `json:"request_id"`
		Received int64  `json:"request_received_ms"`
		Output   int    `json:"output_tokens"`
		Replay   struct {
			Length int      `json:"input_length"`
			Hashes []uint64 `json:"input_sequence_hashes"`
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]request{}
	sessions := map[string]string{}
	lines, others := 0, 0
	in := bufio.NewScanner(unpacked)
	in.Buffer(nil, 1<<20)
	for ; in.Scan(); lines++ {
		var line struct {
			Event struct {
				Agent struct {
					Session string `json:"session_id"`
				} `json:"agent_context"`
				Request *request
			}
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Event.Request == nil {
			others++
			continue
		}
		want[line.Event.Request.ID] = *line.Event.Request
		sessions[line.Event.Request.ID] = line.Event.Agent.Session
	}
	noted := 0
	for _, n := range r.Notes() {
		if strings.HasPrefix(n.Text, "events other") || strings.HasPrefix(n.Text, "tool calls, used") {
			noted += n.Count
		}
	}
	if lines != 61 || len(rows) != 17 || len(want) != 17 || others != noted {
		t.Errorf("%d lines are %d requests; %d were read, and %d lines noted", lines, len(want), len(rows), noted)
	}
	first := int64(math.MaxInt64)
	for _, w := range want {
		first = min(first, w.Received)
	}
	hashes := 0
	for _, row := range rows {
		var own struct {
			ID string `json:"request_id"`
		}
		recorded(t, row, &own)
		w := want[own.ID]
		if !slices.Equal(row.HashIDs, w.Replay.Hashes) || row.InputLength != w.Replay.Length || row.OutputLength != w.Output || row.SessionID != sessions[own.ID] {
			t.Errorf("request %s is not as it was recorded", own.ID)
		}
		if row.Timestamp.Set && row.Timestamp.Value != float64(w.Received-first) {
			t.Errorf("request %s arrives at %v, want %d", own.ID, row.Timestamp.Value, w.Received-first)
		}
		if row.Timestamp.Set == row.Delay.Set {
			t.Errorf("request %s has times %v and %v", own.ID, row.Timestamp, row.Delay)
		}
		hashes += len(row.HashIDs)
	}
	if hashes != 4163 {
		t.Errorf("%d hashes", hashes)
	}
	if r.BlockSize() != 16 {
		t.Errorf("blocks of %d tokens", r.BlockSize())
	}
}

// TestPublishedWeka reads the conversations with the standard library.
func TestPublishedWeka(t *testing.T) {
	folder := tracetest.Published(t, "weka")
	rows, r := collect(t, folder, format.Options{})
	if len(rows) != 6 || r.BlockSize() != 64 {
		t.Fatalf("%d rows, blocks of %d tokens", len(rows), r.BlockSize())
	}
	owner := map[uint64]string{}
	for _, name := range []string{"trace_0103", "trace_0504"} {
		var want struct {
			Requests []struct {
				T, Think float64
				In, Out  int
				Hashes   []uint64 `json:"hash_ids"`
				ThinkS   float64  `json:"think_time"`
			}
		}
		text, err := os.ReadFile(filepath.Join(folder, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		i := 0
		for _, row := range rows {
			if row.SessionID != name {
				continue
			}
			w := want.Requests[i]
			i++
			if row.InputLength != w.In || row.OutputLength != w.Out || len(row.HashIDs) != len(w.Hashes) {
				t.Errorf("%s: turn %d is %d, %d, %d ids", name, i, row.InputLength, row.OutputLength, len(row.HashIDs))
			}
			if i == 1 && row.Timestamp != trace.Some(0.0) || i > 1 && (row.Timestamp.Set || row.Delay != trace.Some(w.ThinkS*1000)) {
				t.Errorf("%s: turn %d has times %v and %v", name, i, row.Timestamp, row.Delay)
			}
			space := row.HashIDs[0] - w.Hashes[0]
			for k, id := range row.HashIDs {
				if id-space != w.Hashes[k] {
					t.Fatalf("%s: turn %d: id %d is %d, want %d", name, i, k, id-space, w.Hashes[k])
				}
				if o, other := owner[id]; other && o != name {
					t.Fatalf("id %d is of %s and of %s", id, o, name)
				}
				owner[id] = name
			}
		}
		if i != len(want.Requests) {
			t.Errorf("%s: %d turns", name, i)
		}
		alone, _ := collect(t, filepath.Join(folder, name+".json"), format.Options{})
		together := slices.DeleteFunc(slices.Clone(rows), func(r trace.Request) bool { return r.SessionID != name })
		if d := cmp.Diff(together, alone); d != "" {
			t.Errorf("%s is another when it is read alone: %s", name, d)
		}
	}
}
