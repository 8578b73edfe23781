package trace_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/tracetest"
)

func TestTurnsWaitForThePreviousTurnOrForAfter(t *testing.T) {
	g := tracetest.Graph(t,
		trace.Request{SessionID: "a", ID: "a1"},
		trace.Request{},
		trace.Request{SessionID: "b", ID: "b1", After: []string{"a1"}},
		trace.Request{SessionID: "a", ID: "a2", After: []string{}},
		trace.Request{SessionID: "a", After: []string{"b2", "a2", "a2"}},
		trace.Request{SessionID: "b", ID: "b2"},
		trace.Request{SessionID: "c", After: []string{"gone"}},
	)
	for row, want := range [][]int32{0: nil, 1: nil, 2: {0}, 3: nil, 4: {3, 5}, 5: {2}, 6: nil} {
		if got := g.Before(row); !slices.Equal(got, want) {
			t.Errorf("row %d waits for %v, want %v", row, got, want)
		}
	}
	for row, want := range []int{0, 1, 0, 0, 0, 0, 6} {
		if got := g.First(row); got != want {
			t.Errorf("the session of row %d begins with row %d, want %d", row, got, want)
		}
	}
	for first, want := range map[int]int{0: 5, 1: 1, 6: 1} {
		if got := g.Size(first); got != want {
			t.Errorf("the session of row %d has %d rows, want %d", first, got, want)
		}
	}
	for row, want := range []bool{4: true, 5: true, 6: true} {
		if got := g.Last(row); got != want {
			t.Errorf("row %d is the last of its session: %v", row, got)
		}
	}
	for row, want := range []int{1, 0, 1, 1, 0, 1, 0} {
		if got := g.Waiting(row); got != want {
			t.Errorf("%d rows wait for row %d, want %d", got, row, want)
		}
	}
	if m := g.LostIDs(); g.Lost() != 1 || len(m) != 1 || m[0] != (trace.LostID{Row: 6, Line: 7, ID: "gone"}) {
		t.Errorf("missing: %v", m)
	}
}

func TestImpossibleGraphs(t *testing.T) {
	for name, c := range map[string]struct {
		rows []trace.Request
		line int
		text string
	}{
		"itself": {[]trace.Request{{ID: "x"}, {ID: "a", After: []string{"a"}}}, 2, `"a" after "a"`},
		"cycle":  {[]trace.Request{{}, {ID: "a", After: []string{"c"}}, {ID: "b", After: []string{"a"}}, {ID: "c", After: []string{"b"}}}, 4, `after`},
		"through a session": {[]trace.Request{
			{SessionID: "s", ID: "a", After: []string{"b"}}, {SessionID: "s", ID: "b"}}, 1, `"b"`},
		"two of one name": {[]trace.Request{{ID: "a"}, {}, {ID: "a"}, {After: []string{"a"}}}, 4, "several rows have: lines 1 and 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var b trace.GraphBuilder
			for i, r := range c.rows {
				b.Add(r, i+1)
			}
			_, err := b.Graph()
			e, ok := err.(*trace.GraphError)
			if !ok || e.Line != c.line || !strings.Contains(e.Text, c.text) {
				t.Errorf("error %+v, want line %d and %q", err, c.line, c.text)
			}
		})
	}
}

// A trace whose rows wait for random rows has a cycle, or an order in which each row
// comes after those that it waits for.
func TestGraphIsAcyclicOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "rows")
		var b trace.GraphBuilder
		for i := range n {
			r := trace.Request{ID: string(rune('a' + i))}
			r.SessionID = rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "session")
			if rapid.Bool().Draw(t, "explicit") {
				r.After = []string{}
				for range rapid.IntRange(0, 2).Draw(t, "edges") {
					r.After = append(r.After, string(rune('a'+rapid.IntRange(0, n-1).Draw(t, "before"))))
				}
			}
			b.Add(r, i+1)
		}
		g, err := b.Graph()
		if err != nil {
			if e, ok := err.(*trace.GraphError); !ok || e.Line == 0 {
				t.Fatalf("%v has no line", err)
			}
			return
		}
		placed := map[int32]bool{}
		for range n {
			for row := range n {
				ready := !slices.ContainsFunc(g.Before(row), func(before int32) bool { return !placed[before] })
				placed[int32(row)] = placed[int32(row)] || ready
			}
		}
		for row := range n {
			if !placed[int32(row)] {
				t.Fatal("rows wait for each other, without an error")
			}
		}
		for row := range n {
			for _, before := range g.Before(row) {
				if g.First(row) != g.First(int(before)) || g.First(row) > row {
					t.Fatalf("row %d is not of the session of row %d", row, before)
				}
			}
		}
	})
}

// Rows that wait for earlier rows only wait for the same ones without the rest of the
// trace.
func TestEarlierRowsAreThoseOfTheGraph(t *testing.T) {
	var rows []trace.Request
	var earlier trace.Earlier
	var before [][]int32
	const n = 3000
	for i := range n {
		r := trace.Request{SessionID: fmt.Sprint("session ", i%700), ID: fmt.Sprint("request ", i)}
		if i%3 == 2 {
			r.After = []string{fmt.Sprint("request ", i*7%i), fmt.Sprint("request ", i-1)}
		}
		rows = append(rows, r)
		own := earlier.Add(r)
		slices.Sort(own)
		before = append(before, slices.Compact(own))
	}
	g := tracetest.Graph(t, rows...)
	for row := range n {
		if !slices.Equal(g.Before(row), before[row]) {
			t.Fatalf("row %d waits for %v, want %v", row, g.Before(row), before[row])
		}
	}
}

// Lost ids are in the order of the rows, and of after.
func TestFirstLostIDs(t *testing.T) {
	var b trace.GraphBuilder
	defer b.Close()
	for i := range 500 {
		b.Add(trace.Request{After: []string{fmt.Sprint("b", i), fmt.Sprint("a", i)}}, i+1)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	lost := g.LostIDs()
	if g.Lost() != 1000 || len(lost) != 100 {
		t.Fatalf("%d lost, %d listed", g.Lost(), len(lost))
	}
	for i, l := range lost {
		if want := (trace.LostID{Row: i / 2, Line: i/2 + 1, ID: fmt.Sprint([]string{"b", "a"}[i%2], i/2)}); l != want {
			t.Fatalf("lost %v, want %v", l, want)
		}
	}
}

// Turns are those of each session in order.
func TestTurns(t *testing.T) {
	var b trace.GraphBuilder
	defer b.Close()
	rows := []trace.Request{{SessionID: "s"}, {}, {SessionID: "t", Delay: trace.Some(2.5), DelayKind: trace.Tool}, {ID: "x"}, {SessionID: "s", After: []string{}}}
	for _, r := range rows {
		b.Add(r, 0)
	}
	latest, turns := "", 0
	for turn, err := range b.All {
		if err != nil {
			t.Fatal(err)
		}
		if turn.Role != trace.InSession {
			continue
		}
		r := rows[turn.Row]
		if turn.First != (r.SessionID != latest) || turn.HasAfter != (r.After != nil) || turn.Delay != r.Delay || turn.DelayKind != r.DelayKind {
			t.Errorf("turn %+v of %+v", turn, r)
		}
		latest = r.SessionID
		turns++
	}
	if turns != 3 {
		t.Errorf("%d turns, want 3", turns)
	}
}

// Every row has a part; what waits for each other is in one, and so are sessions and
// first blocks if they are to stay together. No part has more rows than the smallest and
// the largest family.
func TestDeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom(trace.PartUnits()).Draw(t, "by")
		n := rapid.IntRange(1, 5).Draw(t, "parts")
		d := trace.Partition{By: by}
		var b trace.GraphBuilder
		var rows []trace.Request
		for range rapid.IntRange(1, 40).Draw(t, "rows") {
			r := trace.Request{SessionID: rapid.SampledFrom([]string{"", "", "s", "t", "u"}).Draw(t, "session")}
			if rapid.Bool().Draw(t, "independent") {
				r.After = []string{}
			}
			if block := rapid.Uint64Range(0, 6).Draw(t, "block"); block > 0 {
				r.HashIDs = []uint64{block}
			}
			b.Add(r, 0)
			d.Add(r)
			rows = append(rows, r)
		}
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		parts, families := d.Parts(g, n)
		if len(parts) != len(rows) || families < 1 || families > len(rows) {
			t.Fatalf("%d rows have %d parts in %d families", len(rows), len(parts), families)
		}
		loads := make([]int, n)
		for i, r := range rows {
			loads[parts[i]]++
			for _, before := range g.Before(i) {
				if parts[before] != parts[i] {
					t.Fatalf("row %d waits for row %d of another part", i, before)
				}
			}
			for k, other := range rows[:i] {
				together := by != trace.ByRequest && r.SessionID != "" && r.SessionID == other.SessionID ||
					by == trace.ByPrefix && len(r.HashIDs) > 0 && len(other.HashIDs) > 0 && r.HashIDs[0] == other.HashIDs[0]
				if together && parts[i] != parts[k] {
					t.Fatalf("by %s: rows %d and %d are in different parts", by, k, i)
				}
			}
		}
		if families == len(rows) {
			for _, load := range loads {
				if load < len(rows)/n || load > (len(rows)+n-1)/n {
					t.Fatalf("%d rows without families are dealt as %v", len(rows), loads)
				}
			}
		}
	})
}
