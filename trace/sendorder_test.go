package trace

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

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
		"faster":       {Pacing{Speedup: 100}, turnsAt(), []int{1, 2, 11, 3, 12, 13}}, // starts 0.6 s apart, answers of 0.5 s
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
