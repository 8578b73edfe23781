package log

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
)

// anonymized returns rows after an anonymizer, and what it left out.
func anonymized(t interface{ Fatal(...any) }, key Key, hash []string, rows ...trace.Request) ([]trace.Request, map[string]int) {
	a, err := NewAnonymizer(key, hash...)
	if err != nil {
		t.Fatal(err)
	}
	var all []trace.Request
	for r, err := range a.Rows(trace.FromSlice(rows)) {
		if err != nil {
			t.Fatal(err)
		}
		r.HashIDs, r.After, r.Extra = slices.Clone(r.HashIDs), slices.Clone(r.After), slices.Clone(r.Extra)
		all = append(all, r)
	}
	return all, a.Dropped
}

// Equal ids and names stay equal, different ones different; lengths and order stay, and
// times keep their differences.
func TestSharingStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"", "a", "b", "c"})
		var rows []trace.Request
		at := rapid.Float64Range(0, 1e6).Draw(t, "origin")
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			at += float64(rapid.IntRange(0, 5000).Draw(t, "gap"))
			rows = append(rows, trace.Request{
				Timestamp: trace.Some(at), InputLength: rapid.IntRange(0, 99).Draw(t, "isl"), OutputLength: rapid.IntRange(0, 99).Draw(t, "osl"),
				HashIDs:   rapid.SliceOfN(rapid.SampledFrom([]uint64{0, 1, 2, 65536, 65537, math.MaxUint64}), 0, 5).Draw(t, "ids"),
				SessionID: name.Draw(t, "session"), ID: name.Draw(t, "id"), After: rapid.SliceOfN(name, 0, 2).Draw(t, "after"),
			})
		}
		got, _ := anonymized(t, Key{1}, nil, rows...)
		ids, backIDs := map[uint64]uint64{}, map[uint64]uint64{}
		sessions, requests := map[string]string{"": ""}, map[string]string{"": ""}
		for i, r := range rows {
			g := got[i]
			if g.InputLength != r.InputLength || g.OutputLength != r.OutputLength || len(g.HashIDs) != len(r.HashIDs) || (g.HashIDs == nil) != (r.HashIDs == nil) || len(g.After) != len(r.After) || (g.After == nil) != (r.After == nil) {
				t.Fatalf("%+v becomes %+v", r, g)
			}
			for k, id := range r.HashIDs {
				same(t, ids, id, g.HashIDs[k])
				same(t, backIDs, g.HashIDs[k], id)
			}
			same(t, sessions, r.SessionID, g.SessionID)
			for k, id := range append([]string{r.ID}, r.After...) {
				same(t, requests, id, append([]string{g.ID}, g.After...)[k])
			}
			if after := r.Timestamp.Value - rows[0].Timestamp.Value - g.Timestamp.Value; math.Abs(after) > 1e-6 {
				t.Fatalf("row %d arrives at %v, %v after the first", i, g.Timestamp.Value, r.Timestamp.Value-rows[0].Timestamp.Value)
			}
		}
		other, _ := anonymized(t, Key{2}, nil, rows...)
		for i := range got {
			for k, id := range got[i].HashIDs {
				if other[i].HashIDs[k] == id {
					t.Fatal("another key gives the same id")
				}
			}
		}
	})
}

func same[T comparable](t *rapid.T, known map[T]T, from, to T) {
	if before, ok := known[from]; ok && before != to {
		t.Fatalf("%v becomes %v and %v", from, before, to)
	}
	known[from] = to
}

// Whatever a row may have beside the known keys is left out, unless it is asked for.
func TestUnknownKeys(t *testing.T) {
	const extra = `{"model": "m", "priority": 3, "turn": 2, "estimated": ["hash_ids", "xSECRETx"], "missing": ["output_length"], "user": "xSECRETx", "user_id": 17, ` +
		`"text_input": "xSECRETx", "messages": [{"content": "xSECRETx"}], "status": "xSECRETx", ` +
		`"recorded": {"endpoint": "chat", "stream": true, "max_tokens": 5, "outcome": "xSECRETx", "ttft_ms": 1234.5, "e2el_ms": "xSECRETx", "url": "xSECRETx"}}`
	row := trace.Request{Extra: []byte(extra)}
	got, dropped := anonymized(t, Key{1}, nil, row)
	const want = `{"model": "m", "priority": 3, "turn": 2, "missing": ["output_length"], "recorded": {"endpoint": "chat", "stream": true, "max_tokens": 5, "ttft_ms": 1234.5}}`
	if string(got[0].Extra) != want {
		t.Errorf("%s", got[0].Extra)
	}
	if text := fmt.Sprint(dropped); text != "map[estimated:1 messages:1 recorded.e2el_ms:1 recorded.outcome:1 recorded.url:1 status:1 text_input:1 user:1 user_id:1]" {
		t.Error(text)
	}
	got, _ = anonymized(t, Key{1}, []string{"user", "user_id", "model"}, row, row)
	text := string(got[0].Extra)
	if text != string(got[1].Extra) || !strings.Contains(text, `"user_id": "`) || !strings.Contains(text, `"user": "`) || strings.Contains(text, "SECRET") || strings.Contains(text, `"m"`) {
		t.Error(text)
	}
}

// The first arrival becomes 0, and none may be before it.
func TestOrigin(t *testing.T) {
	rows := []trace.Request{{Timestamp: trace.Some(1700000000000.125)}, {Timestamp: trace.Some(1700000001500.25), Delay: trace.Some(999.5)}}
	got, _ := anonymized(t, Key{1}, nil, rows...)
	if got[0].Timestamp.Value != 0 || got[1].Timestamp.Value != 1500.125 || got[1].Delay.Value != 999.5 {
		t.Errorf("%+v", got)
	}
	a, _ := NewAnonymizer(Key{1})
	a.row(&trace.Request{Timestamp: trace.Some(5.0)})
	if err := a.row(&trace.Request{Timestamp: trace.Some(4.0)}); err == nil {
		t.Error("an arrival before the first one is accepted")
	}
	if _, err := NewAnonymizer(Key{}); err == nil {
		t.Error("no key is accepted")
	}
}

func BenchmarkRows(b *testing.B) {
	a, err := NewAnonymizer(Key{1})
	if err != nil {
		b.Fatal(err)
	}
	row := trace.Request{Timestamp: trace.Some(1.0), SessionID: "s", ID: "r", HashIDs: make([]uint64, 24)}
	next := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		for i := 12; i < len(row.HashIDs); i++ { // half of a prompt is new
			row.HashIDs[i] = next
			next++
		}
		r := row
		if err := a.row(&r); err != nil {
			b.Fatal(err)
		}
	}
}
