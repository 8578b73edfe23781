package trace

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func withIDs(session string, ids ...uint64) Request {
	return Request{Timestamp: Some(0.0), InputLength: len(ids), SessionID: session, HashIDs: ids}
}

// TestDisjoint: an id that two inputs have is found wherever it is, and only then.
func TestDisjoint(t *testing.T) {
	for name, tc := range map[string]struct {
		inputs [][]Request
		want   *OverlapError
	}{
		"none":      {[][]Request{{withIDs("a", 1, 2), withIDs("", 1, 3)}, {withIDs("b", 4)}, {withIDs("", 5), withIDs("")}}, nil},
		"a block":   {[][]Request{{withIDs("", 7, 8)}, {withIDs("", 5), withIDs("", 6, 1<<63, 8)}}, &OverlapError{"block id 8", 1, 0}},
		"the third": {[][]Request{{withIDs("", 7)}, {withIDs("", 1<<63)}, {withIDs("", 1<<63)}}, &OverlapError{"block id 9223372036854775808", 2, 1}},
		"a request": {[][]Request{{{ID: "x"}, {ID: "y"}}, {{ID: "z", After: []string{"y"}}}}, &OverlapError{`request id "y"`, 0, 1}},
		"a session": {[][]Request{{withIDs("s0", 1)}, {withIDs("s0", 2)}}, &OverlapError{`session id "s0"`, 1, 0}},
	} {
		var inputs []Requests
		for _, rows := range tc.inputs {
			inputs = append(inputs, FromSlice(rows))
		}
		_, err := Collect(Merge(Disjoint(inputs...)...))
		var got *OverlapError
		if errors.As(err, &got); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: error is %v, want %v", name, err, tc.want)
		}
	}
}

// TestSeparateInventsNoSharing: rows of one input share what they shared, rows of
// two share nothing, and the ids can be renumbered.
func TestSeparateInventsNoSharing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inputs []Requests
		var before [][]Request
		for range rapid.IntRange(1, 3).Draw(t, "inputs") {
			rows := anyTrace(t)
			for i := range rows {
				rows[i].HashIDs = rapid.SliceOfN(rapid.SampledFrom([]uint64{0, 1, 2, 1 << 62}), 0, 3).Draw(t, "ids")
				rows[i].UniquePromptLen = Some(len(inputs))
			}
			inputs, before = append(inputs, FromSlice(rows)), append(before, rows)
		}
		merged := collect(t, Merge(Separate(inputs...)...))
		old := func(r Request) Request { return before[r.UniquePromptLen.Value][r.InputLength-1] }
		for _, a := range merged {
			for _, b := range merged {
				same := a.UniquePromptLen == b.UniquePromptLen
				if (a.SessionID == b.SessionID) != (same && old(a).SessionID == old(b).SessionID || a.SessionID == "" && b.SessionID == "") {
					t.Fatalf("sessions %q and %q were %q and %q", a.SessionID, b.SessionID, old(a).SessionID, old(b).SessionID)
				}
				for i, x := range a.HashIDs {
					for j, y := range b.HashIDs {
						if (x == y) != (same && old(a).HashIDs[i] == old(b).HashIDs[j]) {
							t.Fatalf("ids %d and %d were %d and %d", x, y, old(a).HashIDs[i], old(b).HashIDs[j])
						}
					}
				}
			}
		}
		again := collect(t, Renumber(FromSlice(merged)))
		next := uint64(0)
		for i, r := range again {
			for k, id := range r.HashIDs {
				if id > next {
					t.Fatalf("id %d is used before %d", id, next)
				}
				next = max(next, id+1)
				if first := slices.Index(merged[i].HashIDs, merged[i].HashIDs[k]); r.HashIDs[first] != id {
					t.Fatalf("one id became two: %v, %v", merged[i].HashIDs, r.HashIDs)
				}
			}
			if (r.HashIDs == nil) != (merged[i].HashIDs == nil) || len(r.HashIDs) != len(merged[i].HashIDs) {
				t.Fatalf("%v became %v", merged[i].HashIDs, r.HashIDs)
			}
		}
	})
}
