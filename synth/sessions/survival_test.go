package sessions_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// Of sessions of two kinds that look alike, as many reach each number of turns as in the
// source.
func TestTurnsOfMixedSessions(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 1))
	var rows []trace.Request
	long := func(mean float64) int { return int(mean / 1.65 * math.Exp(random.NormFloat64())) }
	for i := range 1600 {
		proceed, first, more := .3, 1500., 60.
		if random.Float64() < .12 {
			proceed, first, more = .93, 5000, 900
		}
		isl := 100 + long(first)
		for at := float64(i) * 2000; at < 3_400_000; at += 1000 + random.ExpFloat64()*8000 {
			rows = append(rows, trace.Request{Timestamp: trace.Some(math.Round(at)), InputLength: isl, OutputLength: 1 + long(more/5), SessionID: fmt.Sprint(i)})
			if random.Float64() >= proceed {
				break
			}
			isl += 1 + long(more)
		}
	}
	m, err := sessions.Fit(trace.FromSlice(rows), sessions.Options{})
	if err != nil {
		t.Fatal(err)
	}
	share := func(rows []trace.Request) (in [5]float64) { // turns of sessions with some number so far
		turns := map[string]int{}
		for _, r := range rows {
			n := turns[r.SessionID]
			turns[r.SessionID]++
			in[min(int(math.Log2(1+float64(n))), len(in)-1)] += 1 / float64(len(rows))
		}
		return in
	}
	var drawn [5]float64
	const seeds = 6
	for seed := range uint64(seeds) {
		for i, x := range share(draw(t, m, seed, len(rows))) {
			drawn[i] += x / seeds
		}
	}
	for i, want := range share(rows) {
		if math.Abs(drawn[i]-want) > .015 {
			t.Errorf("band %d has %.3f of the turns, in the source %.3f", i, drawn[i], want)
		}
	}
}
