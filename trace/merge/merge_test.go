package merge_test

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/merge"
)

// anyTrace draws rows in order of arrival, some of them turns of sessions that wait for the
// turn before or for named rows. Each has a unique InputLength.
func anyTrace(t *rapid.T) []trace.Request {
	rows := make([]trace.Request, rapid.IntRange(0, 30).Draw(t, "rows"))
	at := 0.0
	for i := range rows {
		r := trace.Request{InputLength: i + 1, OutputLength: 1, SessionID: rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(t, "session")}
		r.HashIDs = rapid.SliceOfN(rapid.SampledFrom([]uint64{0, 1, 2, 1 << 62}), 0, 3).Draw(t, "ids")
		if rapid.Bool().Draw(t, "named") {
			r.ID = fmt.Sprint("r", i)
		}
		if i > 0 && rapid.Bool().Draw(t, "waits") {
			r.After = []string{fmt.Sprint("r", rapid.IntRange(0, i-1).Draw(t, "before"))}
		}
		if r.SessionID != "" && rapid.Bool().Draw(t, "follows") {
			r.Delay = trace.Some(rapid.Float64Range(0, 1e4).Draw(t, "delay"))
		} else {
			at += rapid.SampledFrom([]float64{0, 0, 0.5, 3, 1000.125}).Draw(t, "gap")
			r.Timestamp = trace.Some(at)
		}
		rows[i] = r
	}
	return rows
}

func collect(t interface{ Fatal(...any) }, reqs trace.Requests) []trace.Request {
	rows, err := trace.Collect(reqs)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Parts of a trace have whole sessions and merge to the trace.
func TestPartsMergeToTheTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyTrace(t)
		n := rapid.IntRange(1, 5).Draw(t, "n")
		var parts []trace.Requests
		part := map[string]int{} // of a session
		for i := range n {
			rows := collect(t, trace.Part(trace.FromSlice(rows), nil, i, n))
			for _, r := range rows {
				if was, ok := part[r.SessionID]; ok && was != i && r.SessionID != "" {
					t.Fatalf("session %q is in parts %d and %d", r.SessionID, was, i)
				}
				part[r.SessionID] = i
			}
			parts = append(parts, trace.FromSlice(rows))
		}
		merged := collect(t, trace.InOrder(merge.ByArrival(parts...)))
		slices.SortFunc(merged, func(a, b trace.Request) int { return a.InputLength - b.InputLength })
		if d := cmp.Diff(rows, merged); d != "" && len(rows) > 0 {
			t.Fatal(d)
		}
	})
}

// Rows that arrive together are in the order of their inputs, and errors are passed on.
func TestByArrival(t *testing.T) {
	at := func(ms float64, n int) trace.Request {
		return trace.Request{Timestamp: trace.Some(ms), InputLength: n}
	}
	a := trace.FromSlice([]trace.Request{at(0, 1), {Delay: trace.Some(9.0), InputLength: 2}, at(5, 3)})
	b := trace.FromSlice([]trace.Request{at(0, 4), at(4, 5)})
	var got []int
	for _, r := range collect(t, merge.ByArrival(a, b)) {
		got = append(got, r.InputLength)
	}
	if want := []int{1, 2, 4, 5, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if rows := collect(t, trace.Take(merge.ByArrival(a, b), 2)); len(rows) != 2 {
		t.Errorf("%d rows of a merge that is left early", len(rows))
	}
	bad := trace.Checked(trace.FromSlice([]trace.Request{at(1, 6)}), func(trace.Request) error { return io.ErrNoProgress })
	if _, err := trace.Collect(merge.ByArrival(a, bad)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v", err)
	}
}

// An id that two inputs have is found wherever it is, and only then.
func TestDisjoint(t *testing.T) {
	with := func(session string, ids ...uint64) trace.Request {
		return trace.Request{Timestamp: trace.Some(0.0), InputLength: len(ids), SessionID: session, HashIDs: ids}
	}
	for name, tc := range map[string]struct {
		inputs [][]trace.Request
		want   *merge.OverlapError
	}{
		"none":      {[][]trace.Request{{with("a", 1, 2), with("", 1, 3)}, {with("b", 4)}, {with("", 5), with("")}}, nil},
		"a block":   {[][]trace.Request{{with("", 7, 8)}, {with("", 5), with("", 6, 1<<63, 8)}}, &merge.OverlapError{"block id 8", 1, 0}},
		"the third": {[][]trace.Request{{with("", 7)}, {with("", 1<<63)}, {with("", 1<<63)}}, &merge.OverlapError{"block id 9223372036854775808", 2, 1}},
		"a request": {[][]trace.Request{{{ID: "x"}, {ID: "y"}}, {{ID: "z", After: []string{"y"}}}}, &merge.OverlapError{`request id "y"`, 0, 1}},
		"a session": {[][]trace.Request{{with("s0", 1)}, {with("s0", 2)}}, &merge.OverlapError{`session id "s0"`, 1, 0}},
	} {
		var inputs []trace.Requests
		for _, rows := range tc.inputs {
			inputs = append(inputs, trace.FromSlice(rows))
		}
		_, err := trace.Collect(merge.ByArrival(merge.Disjoint(inputs...)...))
		var got *merge.OverlapError
		if errors.As(err, &got); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: error is %v, want %v", name, err, tc.want)
		}
	}
}

// Separate rows of one input share what they shared and wait for what they waited for, rows
// of two share nothing, and the ids can be renumbered.
func TestSeparateInventsNoSharing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inputs []trace.Requests
		var before, all []trace.Request
		for input := range rapid.IntRange(1, 3).Draw(t, "inputs") {
			rows := anyTrace(t)
			for i := range rows {
				rows[i].UniquePromptLen = trace.Some(input)
			}
			inputs, before = append(inputs, trace.FromSlice(rows)), append(before, rows...)
		}
		for _, part := range merge.Separate(inputs...) {
			all = append(all, collect(t, part)...)
		}
		equal := func(t *rapid.T, what string, got, want bool) {
			if got != want {
				t.Fatalf("%s are equal: %v, want %v", what, got, want)
			}
		}
		for i, a := range all {
			for k, b := range all {
				same := a.UniquePromptLen == b.UniquePromptLen
				equal(t, "sessions", a.SessionID == b.SessionID, same && before[i].SessionID == before[k].SessionID || a.SessionID == "" && b.SessionID == "")
				equal(t, "requests", a.ID != "" && slices.Contains(b.After, a.ID), same && before[i].ID != "" && slices.Contains(before[k].After, before[i].ID))
				for x := range a.HashIDs {
					for y := range b.HashIDs {
						equal(t, "ids", a.HashIDs[x] == b.HashIDs[y], same && before[i].HashIDs[x] == before[k].HashIDs[y])
					}
				}
			}
		}
		next := uint64(0)
		for i, r := range collect(t, merge.Renumber(trace.FromSlice(all))) {
			if (r.HashIDs == nil) != (all[i].HashIDs == nil) || len(r.HashIDs) != len(all[i].HashIDs) {
				t.Fatalf("%v became %v", all[i].HashIDs, r.HashIDs)
			}
			for k, id := range r.HashIDs {
				if first := slices.Index(all[i].HashIDs, all[i].HashIDs[k]); id > next || r.HashIDs[first] != id {
					t.Fatalf("%v became %v, after %d ids", all[i].HashIDs, r.HashIDs, next)
				}
				next = max(next, id+1)
			}
		}
	})
}
