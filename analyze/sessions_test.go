package analyze_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/analyze"
	"moontide/trace"
)

type sessionsWant struct {
	requests, sessions, multi  int
	turns, gaps, delay, growth []float64
}

func checkSessions(t interface{ Fatalf(string, ...any) }, s *analyze.Sessions, want sessionsWant) {
	if s == nil {
		t.Fatalf("no sessions, want %+v", want)
	}
	if s.Requests != want.requests || s.Sessions != want.sessions || s.MultiTurn != want.multi {
		t.Fatalf("%d requests, %d sessions, %d of several turns, want %d, %d, %d",
			s.Requests, s.Sessions, s.MultiTurn, want.requests, want.sessions, want.multi)
	}
	if !sameValues(s.Turns, want.turns...) || !sameValues(s.Gap, want.gaps...) ||
		!sameValues(s.Delay, want.delay...) || !sameValues(s.Growth, want.growth...) {
		t.Fatalf("turns %v, gaps %v, delays %v, growth %v, want %+v",
			values(s.Turns), values(s.Gap), values(s.Delay), values(s.Growth), want)
	}
}

func TestDeclaredSessions(t *testing.T) {
	turn := func(id string, isl int, times ...float64) trace.Request { // timestamp, delay
		r := trace.Request{SessionID: id, InputLength: isl}
		if times[0] >= 0 {
			r.Timestamp = trace.Some(times[0])
		}
		if len(times) > 1 {
			r.Delay = trace.Some(times[1])
		}
		return r
	}
	rows := []trace.Request{
		{InputLength: 9, HashIDs: []uint64{1}}, // of no session
		turn("a", 100, 0, 7), turn("b", 50, 10), turn("a", 150, 400), turn("a", 120, -1, 30),
		turn("a", 130, 300, 40), turn("c", 1, 5), turn("b", 60, 5),
	}
	s := analyzed(t, analyze.Options{}, rows...).Sessions
	// a: 400 after its first turn, then an estimate that the turn after it, at 300, lowers;
	// times before those of the turn before count as 0, also in b.
	checkSessions(t, s, sessionsWant{
		requests: 7, sessions: 3, multi: 2, turns: []float64{4, 2, 1},
		gaps: []float64{400, 0, 0, 0}, delay: []float64{30, 40}, growth: []float64{50, -30, 10, 10},
	})
	if s.Inferred {
		t.Error("declared sessions are marked as inferred")
	}
	if want := []int32{-1, 1, 2, 1, 1, 1, 6, 2}; !slices.Equal(s.Of, want) {
		t.Errorf("sessions of rows: %v, want %v", s.Of, want)
	}
	if s := analyzed(t, analyze.Options{}, lengths([2]int{1, 2})...).Sessions; s != nil {
		t.Errorf("sessions %+v of a trace without ids", s)
	}
}

func TestInferredSessions(t *testing.T) {
	// part is a prompt at a time in ms, of an ISL in blocks of 10 tokens.
	part := func(ms float64, isl int, ids ...uint64) trace.Request {
		r := prompt(isl, ids...)
		r.Timestamp = trace.Some(ms)
		return r
	}
	system := func(n int) (rows []trace.Request) { // a system prompt alone, then n conversations
		rows = append(rows, part(0, 15, 0, 1))
		for i := range n {
			rows = append(rows, part(1, 25, 0, uint64(100+2*i), uint64(101+2*i)))
		}
		return rows
	}
	tests := []struct {
		name string
		rows []trace.Request
		want sessionsWant
	}{
		{"the partial tail changes", []trace.Request{part(0, 25, 1, 2, 3), part(500, 48, 1, 2, 4, 5, 6), part(700, 60, 1, 2, 4, 5, 7, 8)},
			sessionsWant{requests: 3, sessions: 1, multi: 1, turns: []float64{3}, gaps: []float64{500, 200}, growth: []float64{23, 12}}},
		{"a shared beginning is not enough", []trace.Request{part(0, 35, 1, 2, 3, 4), part(1, 45, 1, 2, 5, 6, 7)},
			sessionsWant{requests: 2, sessions: 2, turns: []float64{1, 1}}},
		{"a repetition starts a session, which continues", []trace.Request{part(0, 25, 1, 2, 3), part(10, 25, 1, 2, 3), part(30, 45, 1, 2, 4, 5, 6)},
			sessionsWant{requests: 3, sessions: 2, multi: 1, turns: []float64{1, 2}, gaps: []float64{20}, growth: []float64{20}}},
		{"sixteen ways on are turns", system(15),
			sessionsWant{requests: 16, sessions: 1, multi: 1, turns: []float64{16}, gaps: ones(15), growth: tens(15)}},
		{"seventeen are a system prompt", system(16), sessionsWant{requests: 17, sessions: 17, turns: ones(17)}},
		{"ids that are not chained tell nothing", []trace.Request{part(0, 30, 1, 2, 1), part(1, 40, 1, 2, 9, 10)},
			sessionsWant{requests: 2, sessions: 2, turns: []float64{1, 1}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := analyzed(t, byTens, test.rows...).Sessions
			checkSessions(t, s, test.want)
			if !s.Inferred {
				t.Error("not marked as inferred")
			}
		})
	}
}

func ones(n int) []float64 { return repeated(1, n) }
func tens(n int) []float64 { return repeated(10, n) }

func repeated(v float64, n int) (all []float64) {
	for range n {
		all = append(all, v)
	}
	return all
}

// previousTurns infers by the definition, comparing every pair of prompts.
func previousTurns(rows []trace.Request, size int) []int {
	full := func(i int) []uint64 {
		return rows[i].HashIDs[:min(rows[i].InputLength/size, len(rows[i].HashIDs))]
	}
	last := func(ids []uint64) uint64 { return ids[len(ids)-1] }
	brought, ways := map[uint64]int{}, map[uint64]map[uint64]bool{}
	for i, r := range rows {
		for j, id := range r.HashIDs {
			if _, known := brought[id]; !known {
				brought[id] = i
				ways[id] = map[uint64]bool{}
			}
			if j > 0 {
				ways[r.HashIDs[j-1]][id] = true
			}
		}
	}
	previous := make([]int, len(rows))
	for q := range rows {
		previous[q] = -1
		best := 0
		for p := range q {
			ids := full(p)
			if len(ids) == 0 || len(ids) < best || len(ids) > len(rows[q].HashIDs) || rows[q].HashIDs[len(ids)-1] != last(ids) {
				continue
			}
			first := full(brought[last(ids)])
			if len(first) == 0 || last(first) != last(ids) || len(ways[last(ids)]) > 16 {
				continue
			}
			previous[q], best = p, len(ids)
		}
		if p := previous[q]; p >= 0 && rows[p].InputLength >= rows[q].InputLength {
			previous[q] = -1
		}
	}
	return previous
}

func TestInferredSessionsAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 16).Draw(rt, "block size")
		rows := chainedRows(rt, size)
		a, err := analyze.Trace(trace.FromSlice(rows), analyze.Options{BlockSize: size})
		if err != nil {
			rt.Fatal(err)
		}
		if a.Prefix == nil {
			return
		}
		first, turns := make([]int, len(rows)), make([]int, len(rows))
		var want sessionsWant
		for q, p := range previousTurns(rows, size) {
			if first[q] = q; len(rows[q].HashIDs) == 0 {
				first[q] = -1
				continue
			}
			want.requests++
			if p >= 0 {
				first[q] = first[p]
				want.growth = append(want.growth, float64(rows[q].InputLength-rows[p].InputLength))
				if rows[q].Timestamp.Set && rows[p].Timestamp.Set {
					want.gaps = append(want.gaps, rows[q].Timestamp.Value-rows[p].Timestamp.Value)
				}
			}
			turns[first[q]]++
		}
		for _, n := range turns {
			if n > 0 {
				want.sessions++
				want.turns = append(want.turns, float64(n))
			}
			if n > 1 {
				want.multi++
			}
		}
		checkSessions(rt, a.Sessions, want)
		for q, of := range a.Sessions.Of {
			if int(of) != first[q] {
				rt.Fatalf("row %d is in the session of row %d, want %d", q, of, first[q])
			}
		}
	})
}
