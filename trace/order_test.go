package trace

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anyGraph draws a trace whose rows wait for others, before and after them in the
// trace, without a cycle. Each row has a unique InputLength.
func anyGraph(t *rapid.T) []Request {
	n := rapid.IntRange(1, 30).Draw(t, "rows")
	order := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})).Draw(t, "order") // a row waits only for those of lower order
	rows := make([]Request, n)
	at := 0.0
	for i := range rows {
		r := Request{InputLength: i + 1, OutputLength: rapid.IntRange(0, 50).Draw(t, "osl"), After: []string{}}
		if rapid.IntRange(0, 4).Draw(t, "named") > 0 {
			r.ID = fmt.Sprint("r", i)
		}
		r.SessionID = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "session")
		for range rapid.IntRange(0, 2).Draw(t, "edges") {
			if before := rapid.IntRange(0, n-1).Draw(t, "before"); order[before] < order[i] {
				r.After = append(r.After, fmt.Sprint("r", before))
			}
		}
		switch rapid.IntRange(0, 2).Draw(t, "time") {
		case 0:
			at += float64(rapid.IntRange(0, 2000).Draw(t, "gap"))
			r.Timestamp = Some(at)
		case 1:
			r.Delay = Some(float64(rapid.IntRange(0, 2000).Draw(t, "delay")))
		}
		rows[i] = r
	}
	return rows
}

func graphOf(t *rapid.T, rows []Request) *Graph {
	var b GraphBuilder
	for i, r := range rows {
		b.Add(r, i+1)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A row is sent after all that it waits for, unless both have timestamps that say
// otherwise or one that is not sorted in between corrects the estimates.
func TestSortFollowsGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyGraph(t)
		for i := range rows {
			if len(rows[i].After) > 0 {
				rows[i].Timestamp = Opt[float64]{}
			}
		}
		g := graphOf(t, rows)
		for name, sorted := range map[string][]Request{"Sort": collect(t, Sort(FromSlice(rows))), "SendOrder": collect(t, SendOrder(FromSlice(rows)))} {
			place := make([]int, len(rows))
			for i, n := range lengths(sorted) {
				place[n-1] = i + 1
			}
			for row := range rows {
				for _, before := range g.Before(row) {
					if place[row] == 0 || place[before] > place[row] {
						t.Fatalf("%s: row %d is at %d, row %d, which it waits for, at %d", name, row+1, place[row], before+1, place[before])
					}
				}
			}
		}
	})
}

// Rows that a naive fixed point finds to be of one session are kept together; every
// row is in one shard; shards and samples do not depend on the order of the rows.
func TestGraphsAreKeptWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyGraph(t)
		g := graphOf(t, rows)
		var of Sessions
		for _, r := range rows {
			of.Add(r)
		}
		shuffled := rapid.Permutation(rows).Draw(t, "shuffled")
		const n = 3
		shards := make([][]int, n)
		in := map[int]int{} // shard of each row
		for i := range n {
			shards[i] = lengths(collect(t, Part(FromSlice(rows), &of, i, n)))
			for _, row := range shards[i] {
				if _, twice := in[row-1]; twice {
					t.Fatalf("row %d is in two shards", row)
				}
				in[row-1] = i
			}
			again := lengths(collect(t, Part(FromSlice(shuffled), &of, i, n)))
			for _, row := range again {
				if of.Name(rows[row-1]) != "" && in[row-1] != i {
					t.Fatalf("row %d is in another shard if the rows have another order", row)
				}
			}
		}
		if len(in) != len(rows) {
			t.Fatalf("%d of %d rows are in a shard", len(in), len(rows))
		}
		kept := map[int]bool{}
		for _, row := range lengths(collect(t, Sample(FromSlice(rows), &of, 0.5, 7))) {
			kept[row-1] = true
		}
		for row := range rows {
			if first := g.First(row); in[row] != in[first] || kept[row] != kept[first] {
				t.Fatalf("rows %d and %d are of one session, but not kept together", row+1, first+1)
			}
		}
	})
}

// Prune removes exactly the ids of rows that are not kept.
func TestPrune(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyGraph(t)
		before := slices.Clone(rows)
		drop := rapid.Uint64().Draw(t, "drop")
		removed := 0
		got := collect(t, Prune(FromSlice(rows), func(reqs Requests) Requests {
			return transform(reqs, func() func(*Request) bool {
				return func(r *Request) bool { return drop>>(r.InputLength%64)&1 == 0 }
			})
		}, &removed))
		var want []Request
		keeps := func(i int) bool { return drop>>((i+1)%64)&1 == 0 }
		gone := 0
		for i, r := range rows {
			if !keeps(i) {
				continue
			}
			after := []string{}
			for _, id := range r.After {
				var n int
				fmt.Sscanf(id, "r%d", &n)
				if rows[n].ID != "" && keeps(n) {
					after = append(after, id)
				} else {
					gone++
				}
			}
			r.After = after
			want = append(want, r)
		}
		if !reflect.DeepEqual(got, want) || removed != gone {
			t.Fatalf("%d removed, want %d; - want, + got:\n%s", removed, gone, cmp.Diff(want, got))
		}
		if !reflect.DeepEqual(rows, before) {
			t.Fatal("the rows of the input changed")
		}
	})
}

func TestWindowFollowsGraphs(t *testing.T) {
	rows := []Request{
		{Timestamp: Some(0.0), ID: "a", InputLength: 1},
		{Timestamp: Some(10.0), ID: "b", InputLength: 2},
		{After: []string{"a"}, ID: "c", InputLength: 3},                          // cut, as a is
		{After: []string{"a", "b"}, InputLength: 4},                              // kept
		{After: []string{"c"}, InputLength: 5},                                   // cut
		{SessionID: "s", Delay: Some(1.0), After: []string{"b"}, InputLength: 6}, // kept
		{SessionID: "s", Delay: Some(1.0), InputLength: 7},                       // kept
		{SessionID: "s", Delay: Some(1.0), After: []string{"c"}, InputLength: 8}, // cut
		{SessionID: "s", Delay: Some(1.0), InputLength: 9},                       // cut
		{After: []string{}, Delay: Some(1.0), InputLength: 10},                   // as the row before
	}
	rows = append(rows, Request{Timestamp: Some(99.0), InputLength: 11}, Request{Timestamp: Some(100.0), InputLength: 12})
	got := collect(t, window(FromSlice(rows), 5, 100))
	if want := []int{2, 4, 6, 7, 11}; !slices.Equal(lengths(got), want) {
		t.Fatalf("got %v, want %v", lengths(got), want)
	}
	if got[0].Timestamp != Some(5.0) || got[1].Timestamp.Set || got[4].Timestamp != Some(94.0) {
		t.Errorf("times are %v", got)
	}
}

// Sessions start at the arrivals of the process, in the order of their first rows, and
// rows keep their distance from the start; speedup divides all of it.
func TestRetimeSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyGraph(t)
		g := graphOf(t, rows)
		arrivals := &Arrivals{Process: Constant, Rate: 4, Sessions: true}
		speedup := rapid.SampledFrom([]float64{1, 2}).Draw(t, "speedup")
		byRow := make([]Request, len(rows))
		for _, r := range collect(t, Pacing{Arrivals: arrivals, Speedup: speedup}.Apply(FromSlice(rows))) {
			byRow[r.InputLength-1] = r
		}
		sessions := 0
		starts := map[int]float64{}
		for row, r := range byRow {
			first := g.First(row)
			if row == first {
				starts[row] = 250 * float64(sessions) / speedup
				sessions++
				if r.Timestamp != Some(starts[row]) {
					t.Fatalf("session of row %d starts at %v, want %v", row+1, r.Timestamp, starts[row])
				}
				continue
			}
			if r.Timestamp.Set != rows[row].Timestamp.Set {
				t.Fatalf("row %d has timestamp %v", row+1, r.Timestamp)
			}
			want := starts[first] + (rows[row].Timestamp.Value-rows[first].Timestamp.Value)/speedup
			if r.Timestamp.Set && math.Abs(r.Timestamp.Value-max(want, 0)) > 1e-9 {
				t.Fatalf("row %d is at %v, want %v", row+1, r.Timestamp.Value, want)
			}
		}
	})
}

// Rows without sessions are sessions of one.
func TestRetimeSessionsOfRows(t *testing.T) {
	a := Arrivals{Process: Poisson, Rate: 3, Seed: 5}
	rows := append(at(7, 8, 9), Request{Timestamp: Some(10.0), SessionID: "s"}, Request{Timestamp: Some(11.0)})
	if got, want := collect(t, retimeSessions(FromSlice(rows), a)), collect(t, retime(FromSlice(rows), a)); !reflect.DeepEqual(got, want) {
		t.Errorf("- want, + got:\n%s", cmp.Diff(want, got))
	}
}

// Think and tool times are scaled apart, then think times are limited, then all times
// are divided.
func TestScaleDelays(t *testing.T) {
	p := Pacing{ThinkScale: Some(2.0), ToolScale: Some(0.0), MaxThink: 3 * time.Second, Speedup: 4}
	if err := p.Check(); err != nil || !p.Retimes() {
		t.Fatal(err, p.Retimes())
	}
	rows := []Request{{Timestamp: Some(8.0), SessionID: "s"}}
	for _, r := range []Request{
		{DelayKind: Think, Delay: Some(1000.0)}, {DelayKind: Think, Delay: Some(1600.0)}, {Delay: Some(100.0)}, {DelayKind: Tool, Delay: Some(9000.0)},
	} {
		r.SessionID = "s"
		rows = append(rows, r)
	}
	var got []float64
	for _, r := range collect(t, p.Apply(FromSlice(rows))) {
		got = append(got, max(r.Timestamp.Value, r.Delay.Value))
	}
	if want := []float64{2, 500, 750, 50, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	p = Pacing{ToolScale: Some(0.5)}
	if got := collect(t, p.Apply(FromSlice(rows))); got[1].Delay != Some(1000.0) || got[4].Delay != Some(4500.0) {
		t.Errorf("got %v", got)
	}
}

// turnsAt returns two sessions of three turns that start at 0 and 60 s, whose later
// turns have a delay of a second, in the order of a recording: one after the other.
func turnsAt() []Request {
	var rows []Request
	for i, session := range []string{"a", "b"} {
		rows = append(rows, Request{Timestamp: Some(float64(60_000 * i)), SessionID: session, InputLength: 10*i + 1, OutputLength: 1})
		for turn := 2; turn <= 3; turn++ {
			rows = append(rows, Request{Delay: Some(1000.0), SessionID: session, InputLength: 10*i + turn, OutputLength: 1})
		}
	}
	return rows
}

// TestRetimedSessionsAreInSendOrder: sessions that start closer together take turns,
// and those that start later have ended before.
func TestRetimedSessionsAreInSendOrder(t *testing.T) {
	rate := func(r float64) Pacing { return Pacing{Arrivals: &Arrivals{Process: Constant, Rate: r}} }
	together := []int{1, 11, 2, 12, 3, 13}
	apart := []int{1, 2, 3, 11, 12, 13}
	interleaved := collect(t, rate(2).Apply(FromSlice(turnsAt())))
	for name, tc := range map[string]struct {
		Pacing
		rows []Request
		want []int
	}{
		"as it is":     {Pacing{}, turnsAt(), apart},
		"closed":       {Pacing{Closed: true}, turnsAt(), apart},
		"at a rate":    {rate(2), turnsAt(), together},
		"at once":      {rate(1e9), turnsAt(), together},
		"faster":       {Pacing{Speedup: 100}, turnsAt(), []int{1, 2, 11, 3, 12, 13}}, // starts 0.6 s apart, responses of 0.5 s
		"slower again": {rate(0.01), interleaved, apart},
		"ramped":       {Pacing{Ramp: time.Hour}, interleaved, apart},
		"slower":       {Pacing{Speedup: 0.01}, interleaved, together}, // with longer delays
	} {
		if got := lengths(collect(t, tc.Apply(FromSlice(tc.rows)))); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// TestSendOrderIsOrdered: a stable permutation in which no row precedes the earlier
// turns of its session, arrivals ascend, and which does not change when repeated if every session begins with
// a timestamp.
func TestSendOrderIsOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyTrace(t)
		got := collect(t, SendOrder(FromSlice(rows)))
		latest, last := map[string]int{}, 0.0
		numbers := lengths(got)
		for _, r := range got {
			if r.SessionID != "" {
				if latest[r.SessionID] > r.InputLength {
					t.Fatalf("turn %d follows %d of session %s", r.InputLength, latest[r.SessionID], r.SessionID)
				}
				latest[r.SessionID] = r.InputLength
			}
			if r.Timestamp.Set {
				if r.Timestamp.Value < last {
					t.Fatalf("%v follows %v", r.Timestamp.Value, last)
				}
				last = r.Timestamp.Value
			}
		}
		begun, seen := true, map[string]bool{}
		for _, r := range rows {
			begun = begun && (r.SessionID == "" || seen[r.SessionID] || r.Timestamp.Set)
			seen[r.SessionID] = true
		}
		if again := collect(t, SendOrder(FromSlice(got))); begun && !reflect.DeepEqual(lengths(again), numbers) {
			t.Fatalf("%v became %v when sorted again", numbers, lengths(again))
		}
		if slices.Sort(numbers); len(numbers) != len(rows) || len(slices.Compact(numbers)) != len(rows) {
			t.Fatalf("rows are lost or doubled: %v", numbers)
		}
	})
}

// TestFirstRowsStream: rows before the first session are not held.
func TestFirstRowsStream(t *testing.T) {
	for name, pass := range map[string]func(Requests) Requests{
		"SendOrder":      SendOrder,
		"retimeSessions": func(reqs Requests) Requests { return retimeSessions(reqs, Arrivals{Process: Poisson, Rate: 3}) },
	} {
		read := 0
		for range pass(Tap(FromSlice(at(1, 2, 3)), func(Request) { read++ })) {
			if read != 1 {
				t.Fatalf("%s: %d rows were read for the first", name, read)
			}
			break
		}
	}
}

// TestSortsOnDiskAsInMemory: with little memory, rows come in the same order and unchanged.
func TestSortsOnDiskAsInMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyTrace(t)
		for i := range rows {
			if rapid.Bool().Draw(t, "disordered") && rows[i].Timestamp.Set {
				rows[i].Timestamp.Value = float64(rapid.IntRange(0, 5000).Draw(t, "timestamp"))
			}
		}
		memory := rapid.IntRange(1, 3000).Draw(t, "memory")
		want, got := collect(t, Sort(FromSlice(rows))), collect(t, sorted(FromSlice(rows), func(Request) bool { return true }, memory))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestStoredRows: rows of every form are unchanged after they were on disk.
func TestStoredRows(t *testing.T) {
	rows := []Request{
		{},
		{Timestamp: Some(30.125), InputLength: 5, HashIDs: []uint64{}, Extra: []byte(`{"x": {"y": [1, "ü"]}, "request_id": 7}`)},
		{InputLength: 900, OutputLength: 3, HashIDs: []uint64{math.MaxUint64, 1, 2, 0}, ID: `a"b`},
		{Delay: Some(0.001), SessionID: "s", DelayKind: Tool, After: []string{"a", ""}, ContextLen: Some(0), UniquePromptLen: Some(1)},
		{Timestamp: Some(0.0), After: []string{}},
	}
	for _, r := range rows {
		if got := ParseStored(AppendStored(nil, &r), nil); !reflect.DeepEqual(got, r) {
			t.Errorf("got %+v, want %+v", got, r)
		}
	}
}
