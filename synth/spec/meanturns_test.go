package spec

import (
	"math"
	"strings"
	"testing"
)

// TestRateWithMaxISL: the rate counts requests, also where max_isl ends sessions
// early.
func TestRateWithMaxISL(t *testing.T) {
	t.Parallel()
	const at5 = "duration: 20000\nrate: 5\narrival: constant\n"
	for name, text := range map[string]string{
		"fixed growth": at5 + "isl: 1000\nosl: 100\nsessions: {turns: 50, new_tokens: 4000, max_isl: 32000, tpot: 0}",
		"uneven growth": at5 + "isl: lognormal:900:1:max=9000\nosl: lognormal:200:1\ncorrelation: 0.7\n" +
			"sessions: {turns: geometric:20, new_tokens: lognormal:700:1.5, max_isl: 16000, tpot: 0}",
		"growth as first prompts": at5 + "isl: uniform:500:2000\nosl: 10\nshared: {tokens: 400}\nsessions: {turns: 30, max_isl: 9000, tpot: 0}",
		"long shared prefixes": at5 + "unique_isl: 10\nosl: 10\nshared: {count: 5, tokens: uniform:10:900, zipf: 2}\n" +
			"sessions: {turns: 40, new_tokens: 30, max_isl: 1000, tpot: 0}",
		"clients": at5 + "osl: 10\nisl: 10\nclients:\n" +
			"  - {name: cut, share: 0.5, sessions: {turns: 50, new_tokens: uniform:100:900, max_isl: 4000, tpot: 0}}\n" +
			"  - {name: whole, share: 0.5, sessions: {turns: 5, new_tokens: 10, max_isl: 4000, tpot: 0}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts := map[string]float64{}
			cut := false
			rows := draw(t, text)
			for _, r := range rows {
				client, _, _ := strings.Cut(r.SessionID, "-")
				counts[client]++
			}
			if name == "clients" && math.Abs(counts["cut"]-counts["whole"]) > 0.03*counts["cut"] {
				t.Errorf("shares of a half are %v", counts)
			}
			for c := range parse(t, text).clients() {
				uncut := 1.0 // the mean is the sum of P(turns > k)
				for k := 1; k < c.sessions.maxTurns(); k++ {
					uncut += 1 - c.sessions.turns.CDF(float64(k))
				}
				cut = cut || c.sessions.meanTurns < 0.95*uncut
			}
			if got := float64(len(rows)) / 20000; !cut || math.Abs(got-5) > 0.1 {
				t.Errorf("%.3f requests a second, want 5; sessions are cut: %t", got, cut)
			}
		})
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
