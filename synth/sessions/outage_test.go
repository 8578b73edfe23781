package sessions_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// outage returns a conversation a second for an hour. From begin to end, in ms, every
// request is repeated after 1, 2, 4, ... seconds.
func outage(begin, end float64) (rows []trace.Request) {
	const blockSize, hour = 64, 3_600_000
	random := rand.New(rand.NewPCG(1, 1))
	id := uint64(0)
	add := func(at float64, ids []uint64) {
		r := trace.Request{Timestamp: trace.Some(at), InputLength: len(ids)*blockSize - 30, OutputLength: 1 + random.IntN(500), HashIDs: ids}
		rows = append(rows, r)
		for wait := 1000.0; at >= begin && at < end; wait *= 2 {
			at += wait
			r.Timestamp = trace.Some(at)
			rows = append(rows, r)
		}
	}
	fresh := func(ids []uint64, n int) []uint64 {
		ids = slices.Clone(ids)
		for range n {
			id++
			ids = append(ids, id)
		}
		return ids
	}
	for at := 0.0; at < hour; at += random.ExpFloat64() * 1000 {
		var full []uint64 // blocks; the last one of a prompt is partial
		for next := at; next < hour; next += 60_000 * random.Float64() {
			full = fresh(full, 4+random.IntN(8))
			add(next, fresh(full, 1))
			if random.Float64() < .4 {
				break
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	return rows
}

// repeated returns how many rows repeat an earlier prompt from one time to another, in ms.
func repeated(rows []trace.Request, from, to float64) (n int) {
	seen := map[uint64]bool{}
	for _, r := range rows {
		last := r.HashIDs[len(r.HashIDs)-1]
		if seen[last] && r.Timestamp.Value >= from && r.Timestamp.Value < to {
			n++
		}
		seen[last] = true
	}
	return n
}

// Requests are repeated while they are in the source, and about as often.
func TestOutage(t *testing.T) {
	t.Parallel()
	const begin, end = 1_800_000, 1_980_000
	rows := outage(begin, end)
	m, err := sessions.Fit(trace.FromSlice(rows), sessions.Options{BlockSize: 64})
	if err != nil {
		t.Fatal(err)
	}
	want := float64(repeated(rows, begin, end))
	sum := 0.0
	for seed := range uint64(4) {
		drawn := draw(t, m, seed, len(rows))
		if n := repeated(drawn, 0, begin); n > len(rows)/250 {
			t.Errorf("seed %d: %d of %d rows are repeated before the outage", seed, n, len(rows))
		}
		sum += float64(repeated(drawn, begin, end)) / 4
	}
	if sum < .9*want || sum > 1.1*want {
		t.Errorf("%.0f rows are repeated in the outage, want %.0f", sum, want)
	}
}
