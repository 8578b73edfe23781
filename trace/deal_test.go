package trace_test

import (
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
)

// Every row has a part; what waits for each other is in one, and so are sessions and
// first blocks if they are to stay together. No part has more rows than the smallest and
// the largest family.
func TestDeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.SampledFrom(trace.Deals()).Draw(t, "by")
		n := rapid.IntRange(1, 5).Draw(t, "parts")
		d := trace.Dealer{By: by}
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
		parts, families := d.Deal(g, n)
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
