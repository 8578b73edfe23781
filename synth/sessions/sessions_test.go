package sessions_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/format"
	"moontide/trace/stats"
)

func fit(t testing.TB, rows []trace.Request, opts sessions.Options) *sessions.Model {
	t.Helper()
	m, err := sessions.Fit(trace.FromSlice(rows), opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func draw(t testing.TB, m *sessions.Model, seed uint64, n int) []trace.Request {
	t.Helper()
	rows, err := trace.Collect(m.Requests(seed, n))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// lines encodes rows as in a file.
func lines(rows []trace.Request) (b []byte) {
	for _, r := range rows {
		b = append(format.AppendRow(b, r), '\n')
	}
	return b
}

func saved(t testing.TB, m *sessions.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := m.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// forEach runs a test with each workload.
func forEach(t *testing.T, test func(t *testing.T, w workload, rows []trace.Request, m *sessions.Model)) {
	for _, name := range slices.Sorted(maps.Keys(workloads)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := workloads[name].rows()
			test(t, workloads[name], rows, fit(t, rows, sessions.Options{BlockSize: blockSize}))
		})
	}
}

// The requests depend on the seed alone, fewer are the beginning of more, and a model that
// was written and read draws the same.
func TestRequestsRepeat(t *testing.T) {
	forEach(t, func(t *testing.T, _ workload, rows []trace.Request, m *sessions.Model) {
		n := 2 * len(rows)
		long := lines(draw(t, m, 5, n))
		if !bytes.HasPrefix(long, lines(draw(t, m, 5, n/3))) {
			t.Error("a third of the requests is not the beginning of all")
		}
		if bytes.Equal(long, lines(draw(t, m, 6, n))) {
			t.Error("another seed draws the same requests")
		}
		file := saved(t, m)
		read, err := sessions.Read(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file, saved(t, read)) {
			t.Error("the file changes in a round trip")
		}
		if !bytes.Equal(long, lines(draw(t, read, 5, n))) {
			t.Error("the model that was read draws other requests")
		}
		if !sessions.IsModel(file[:100]) || sessions.IsModel(long[:100]) {
			t.Error("a model is not recognized")
		}
	})
}

// Lengths match ids, times never go backwards, context_len is what an infinite cache
// hits, and rows wait for earlier ones only.
func TestRequestsAreValid(t *testing.T) {
	forEach(t, func(t *testing.T, w workload, rows []trace.Request, m *sessions.Model) {
		fast, err := m.AtRate(2.5)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*sessions.Model{m, fast} {
			checkRows(t, w, draw(t, m, 9, 3*len(rows)))
		}
	})
}

func checkRows(t *testing.T, w workload, rows []trace.Request) {
	t.Helper()
	seen, ids := map[uint64]bool{}, map[string]bool{}
	before := 0.0
	for i, r := range rows {
		if r.Timestamp.Set && r.Timestamp.Value < before || !r.Timestamp.Set && !w.delays {
			t.Fatalf("row %d: timestamp %v after %v", i, r.Timestamp, before)
		}
		before = max(before, r.Timestamp.Value)
		if want := (r.InputLength + blockSize - 1) / blockSize; !w.noBlocks && len(r.HashIDs) != want || w.noBlocks && r.HashIDs != nil {
			t.Fatalf("row %d: %d blocks for %d tokens, want %d", i, len(r.HashIDs), r.InputLength, want)
		}
		hit := 0
		for hit < len(r.HashIDs) && seen[r.HashIDs[hit]] {
			hit++
		}
		if want := min(hit*blockSize, r.InputLength); r.ContextLen.Value != want || !w.noBlocks && want+r.UniquePromptLen.Value != r.InputLength {
			t.Fatalf("row %d: context_len %d, want %d of %d", i, r.ContextLen.Value, want, r.InputLength)
		}
		for k, id := range r.HashIDs {
			if seen[id] && k >= hit {
				t.Fatalf("row %d: block %d was seen before, but follows a new one", i, id)
			}
			seen[id] = true
		}
		for _, id := range r.After {
			if !ids[id] {
				t.Fatalf("row %d waits for %s, which is no earlier row", i, id)
			}
		}
		ids[r.ID] = true
	}
}

// A drawn trace has the source's means, duration, turns and pauses, but none of its rows in
// sequence.
func TestRequestsAreLikeTheSource(t *testing.T) {
	forEach(t, func(t *testing.T, w workload, rows []trace.Request, m *sessions.Model) {
		for _, times := range []int{1, 3} {
			drawn := draw(t, m, 3, times*len(rows))
			from, to := look(rows), look(drawn)
			band := .03
			if len(rows) < 100 {
				band = .15
			}
			for _, c := range []struct {
				name       string
				from, to   float64
				difference float64
			}{
				{"mean ISL", from.isl, to.isl, band}, {"mean OSL", from.osl, to.osl, band}, {"mean delay", from.delay, to.delay, 2 * band},
				{"duration", from.duration, to.duration / float64(times), 3 * band}, {"named rows", from.after, to.after, 2 * band},
				{"context", from.context, to.context, .05},
			} {
				if math.Abs(c.to-c.from) > c.difference*c.from {
					t.Errorf("%d times: %s is %.4g, want %.4g", times, c.name, c.to, c.from)
				}
			}
		}
		known := map[string]bool{}
		for i := range rows[1:] {
			known[rowKey(rows[i:i+2])] = true
		}
		drawn := draw(t, m, 4, len(rows))
		for i := range drawn[1:] {
			if known[rowKey(drawn[i:i+2])] {
				t.Errorf("rows %d and on are rows of the source: %s", i, rowKey(drawn[i:i+2]))
			}
		}
	})
}

// figures are means of a trace.
type figures struct{ isl, osl, delay, duration, after, context float64 }

func look(rows []trace.Request) (f figures) {
	n, seen, blocks := float64(len(rows)), map[uint64]bool{}, 0.0
	for _, r := range rows {
		f.isl += float64(r.InputLength) / n
		f.osl += float64(r.OutputLength) / n
		f.delay += r.Delay.Value / n
		f.after += float64(len(r.After)) / n
		f.duration = max(f.duration, r.Timestamp.Value)
		for _, id := range r.HashIDs {
			if blocks++; seen[id] {
				f.context++
			}
			seen[id] = true
		}
	}
	if blocks > 0 {
		f.context /= blocks
	}
	return f
}

func rowKey(rows []trace.Request) (key string) {
	for i, r := range rows {
		key += fmt.Sprint(r.InputLength, r.OutputLength, r.Delay.Value)
		if i > 0 {
			key += fmt.Sprint(" after ", math.Round(r.Timestamp.Value-rows[0].Timestamp.Value), "; ")
		}
	}
	return key
}

// Coarse clocks keep their times, and as many requests at each.
func TestCoarseClock(t *testing.T) {
	at := func(rows []trace.Request) (times, most float64) {
		counts := map[float64]float64{}
		for _, r := range rows {
			if math.Mod(r.Timestamp.Value, 3000) != 0 {
				t.Fatalf("timestamp %v is off the clock", r.Timestamp.Value)
			}
			counts[r.Timestamp.Value]++
			most = max(most, counts[r.Timestamp.Value])
		}
		return float64(len(counts)), most
	}
	for _, name := range []string{"coarse", "sparse"} {
		rows := workloads[name].rows()
		times, most := at(rows)
		drawnTimes, drawnMost := at(draw(t, fit(t, rows, sessions.Options{BlockSize: blockSize}), 1, len(rows)))
		if drawnTimes != times || drawnMost != most {
			t.Errorf("%s: %v times with at most %v requests, want %v with %v", name, drawnTimes, drawnMost, times, most)
		}
	}
}

// Requests that all arrive at once, or at few times, still do, in a trace of any length, and
// lengths that all requests share stay as they are.
func TestFewValues(t *testing.T) {
	for _, c := range []struct{ rows, times, drawn, want int }{{1000, 1, 2000, 1}, {1000, 10, 2000, 20}, {1, 1, 10, 1}, {200, 200, 600, 600}} {
		var rows []trace.Request
		for i := range c.rows {
			rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i*c.times/c.rows) * 60_000), InputLength: 2000, OutputLength: 101, HashIDs: []uint64{0, 1, 2, 3}})
		}
		got := map[float64]int{}
		for i, r := range draw(t, fit(t, rows, sessions.Options{BlockSize: 512}), 1, c.drawn) {
			if got[r.Timestamp.Value]++; r.InputLength != 2000 || r.OutputLength != 101 || i > 0 && r.ContextLen.Value != 2000 && c.rows > 1 {
				t.Fatalf("%+v: row %d is %+v", c, i, r)
			}
		}
		if len(got) != c.want {
			t.Errorf("%+v: %d times", c, len(got))
		}
	}
}

// Sessions stay near their places: a source whose lengths drift is drawn with that drift.
func TestDrift(t *testing.T) {
	var rows []trace.Request
	for i := range 2000 {
		rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i) * 997), InputLength: 1000 + i, OutputLength: 10})
	}
	for i, r := range draw(t, fit(t, rows, sessions.Options{}), 1, 2000) {
		if math.Abs(float64(r.InputLength-1000-i)) > 300 {
			t.Fatalf("row %d has an ISL of %d", i, r.InputLength)
		}
	}
}

// Drawn blocks never have ids of the source, and follow a round number.
func TestFirstBlock(t *testing.T) {
	for _, c := range []struct{ from, want uint64 }{
		{0, 10}, {1, 100}, {90, 100}, {100_000, 1_000_000}, {1 << 32, 1e10}, {1 << 60, 0},
	} {
		var rows []trace.Request
		for i := range uint64(10) {
			rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i)), InputLength: 4, OutputLength: 1, HashIDs: []uint64{c.from + i}})
		}
		if got := draw(t, fit(t, rows, sessions.Options{BlockSize: 4}), 1, 1)[0].HashIDs[0]; got != c.want {
			t.Errorf("ids from %d on: the first drawn one is %d, want %d", c.from, got, c.want)
		}
	}
}

// More sessions in the same time have the same pauses.
func TestAtRate(t *testing.T) {
	rows := workloads["named"].rows()
	m := fit(t, rows, sessions.Options{BlockSize: blockSize})
	gaps := func(rows []trace.Request) stats.Sample {
		latest, gaps := map[string]float64{}, []float64{}
		for _, r := range rows {
			if at, later := latest[r.SessionID]; later {
				gaps = append(gaps, r.Timestamp.Value-at)
			}
			latest[r.SessionID] = r.Timestamp.Value
		}
		return stats.Of(gaps)
	}
	plain := draw(t, m, 1, len(rows))
	for _, factor := range []float64{.5, 1.5, 4} {
		scaled, err := m.AtRate(factor)
		if err != nil {
			t.Fatal(err)
		}
		drawn := draw(t, scaled, 1, int(factor*float64(len(rows))))
		if got := look(drawn).duration / look(plain).duration; math.Abs(got-1) > .08 {
			t.Errorf("factor %v: the duration is %.3f times the source's", factor, got)
		}
		if ks := stats.KS(gaps(plain), gaps(drawn)); ks > .05 {
			t.Errorf("factor %v: the KS distance of pauses is %.3f", factor, ks)
		}
	}
	for _, factor := range []float64{0, -1, math.Inf(1), 1e-9, 1e9} {
		if _, err := m.AtRate(factor); err == nil {
			t.Errorf("factor %v is accepted", factor)
		}
	}
}

// Clients and tokens of reasoning are kept, other keys are not.
func TestKeys(t *testing.T) {
	rows := workloads["named"].rows()
	m := fit(t, rows, sessions.Options{BlockSize: blockSize})
	var names []string
	requests := 0
	for _, c := range m.Clients() {
		names = append(names, c.Name)
		requests += c.Requests
	}
	if want := []string{"ann/0", "bob/0"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) || requests != len(rows) {
		t.Errorf("clients %q of %d requests, want %q", names, requests, want)
	}
	only, err := m.Only("bob/0")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]int{}
	for _, r := range draw(t, only, 1, 300) {
		var kind string
		var tokens int
		if _, err := fmt.Sscanf(string(r.Extra), `{"user": "bob", "reasoning_tokens": %d, "recorded": {"type": %1s}}`, &tokens, &kind); err != nil {
			t.Fatalf("%s: %v", r.Extra, err)
		}
		types[kind]++
		if math.Abs(float64(tokens)-float64(r.OutputLength)/2) > 1 {
			t.Errorf("%d tokens of reasoning of %d", tokens, r.OutputLength)
		}
	}
	if len(types) != 2 {
		t.Errorf("types %v", types)
	}
	if _, err := m.Only("nobody"); err == nil || !strings.Contains(err.Error(), `no client "nobody": the model has "`) {
		t.Errorf("error %v", err)
	}
	if _, err := fit(t, workloads["few"].rows(), sessions.Options{}).Only("x"); err == nil || !strings.Contains(err.Error(), "name no clients") {
		t.Errorf("error %v", err)
	}
}

// Values that few requests have are left out, and reasoning that is no part of the answer
// is ignored. Notes say so.
func TestNotes(t *testing.T) {
	rows := workloads["named"].rows()
	rows[4].Extra = []byte(`{"user": "zoe", "reasoning_tokens": -3}`)
	m := fit(t, rows, sessions.Options{BlockSize: blockSize})
	for _, want := range []string{
		"1 values of user are left out: fewer than 50 requests have them",
		fmt.Sprintf("the reasoning of 1 of %d requests is ignored: it is no number of tokens of the answer", len(rows)),
	} {
		if !slices.Contains(m.Notes(), want) {
			t.Errorf("no note %q in %q", want, m.Notes())
		}
	}
	if bytes.Contains(lines(draw(t, m, 1, 1000)), []byte("zoe")) {
		t.Error("the name of one request is drawn")
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
		{"nothing", "no requests in the source", nil, sessions.Options{}},
		{"block size", "block size -1 is not in 0..100000000", five, sessions.Options{BlockSize: -1}},
		{"length", "request 2: an input length of -3 or an output length of 1 is not in 0..100000000", []trace.Request{five[0], row(-3, 1)}, sessions.Options{}},
		{"mixed", "request 2: block ids must be on all rows or on none", []trace.Request{five[0], row(3)}, sessions.Options{}},
		{"no time", "request 1: no timestamp, and no turn before it", []trace.Request{{InputLength: 3, SessionID: "a"}}, sessions.Options{}},
		{"no row", `request 1: no timestamp, and no earlier row is named in after ["b"]`, []trace.Request{{InputLength: 3, After: []string{"b"}}}, sessions.Options{}},
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
	for _, err := range fit(t, five, sessions.Options{}).Requests(1, 0) {
		if err == nil || !strings.Contains(err.Error(), "drawing 0 requests") {
			t.Errorf("error %v for no requests", err)
		}
	}
}
