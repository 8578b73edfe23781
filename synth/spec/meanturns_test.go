package spec

import (
	"math"
	"strings"
	"testing"
)

// TestRateWithMaxISL: the rate counts requests, also where max_isl ends sessions
// early, which those of the first client never are.
func TestRateWithMaxISL(t *testing.T) {
	t.Parallel()
	counts := map[string]float64{}
	for _, r := range draw(t, `{duration: 20000, rate: 5, arrival: constant, shared: {count: 5, tokens: "uniform:10:900", zipf: 2}, clients: [
		{name: whole, share: 0.4, unique_isl: 10, osl: 10, sessions: {turns: 5, new_tokens: 10, max_isl: 4000, tpot: 0}},
		{name: even, share: 0.3, unique_isl: 1000, osl: 100, sessions: {turns: 50, new_tokens: 4000, max_isl: 32000, tpot: 0}},
		{name: uneven, share: 0.3, unique_isl: "lognormal:900:1:max=9000", osl: "lognormal:200:1", correlation: 0.7,
			sessions: {turns: "geometric:20", new_tokens: "lognormal:700:1.5", max_isl: 16000, tpot: 0}}]}`) {
		client, _, _ := strings.Cut(r.SessionID, "-")
		counts[client]++
		if most := map[string]int{"whole": 4000, "even": 32000, "uneven": 16000}[client]; r.InputLength > most {
			t.Fatalf("a prompt of %d tokens of %s", r.InputLength, client)
		}
	}
	for client, want := range map[string]float64{"whole": 2, "even": 1.5, "uneven": 1.5} {
		if got := counts[client] / 20000; math.Abs(got-want) > 0.03*want {
			t.Errorf("%.3f requests a second of %s, want %v", got, client, want)
		}
	}
}

func TestMeanTurns(t *testing.T) {
	for text, want := range map[string]float64{
		"sessions: {turns: 50, new_tokens: 4000, max_isl: 32000}":                      8, // 1000 + 7 x 4100 is the last that fits
		"sessions: {turns: 5, new_tokens: 4000, max_isl: 32000}":                       5,
		"sessions: {turns: geometric:4, new_tokens: 4000, max_isl: 9200}":              1 + 0.75 + 0.75*0.75,
		"sessions: {turns: geometric:4, new_tokens: 'exponential:10', max_isl: 90000}": 4, // could be cut, and hardly ever is
		"sessions: {turns: 50, new_tokens: 0, max_isl: 3000}":                          21,
		"sessions: {turns: 8, new_tokens: 4000, max_isl: 29000}":                       7, // not 1000 + 7 x 4100
		"sessions: {turns: 3, max_isl: 1000}":                                          1,
		"":                                                                             1,
	} {
		d := parse(t, "isl: 1000\nosl: 100\n"+text)
		if got := d.sources[0].clients[0].sessions.meanTurns; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v turns on average, want %v", text, got, want)
		}
	}
	// A session whose second turn never fits still could have had one.
	for _, r := range draw(t, "isl: 1000\nosl: 100\nsessions: {turns: 3, max_isl: 1000}") {
		if r.SessionID == "" {
			t.Fatalf("no session: %+v", r)
		}
	}
}
