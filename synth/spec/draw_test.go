package spec

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/trace/format"
)

// busy uses every feature: clients, levels of prefixes, sessions, distributions.
const busy = `
num_requests: 3000
rate: 5
block_size: 16
shared:
  - {count: 2, tokens: 40}
  - {count: 10, tokens: uniform:10:90, zipf: 1}
clients:
  - name: chat
    share: 0.6
    unique_isl: lognormal:100:1:max=2000
    osl: lognormal:50:1:max=500
    correlation: 0.5
    sessions: {turns: geometric:4, think_time: exponential:5s, new_tokens: uniform:0:60}
  - name: batch
    share: 0.4
    isl: uniform:150:900
    osl: exponential:20
  - name: cron
    rate: 1
    arrival: constant
    isl: uniform:10:30
    osl: 3
    shared: []
    sessions: {turns: 3, timestamps: all, ttft: 1s, tpot: 100ms, think_time: 2s, new_tokens: 7}
`

func lines(rows []trace.Request) string {
	var b []byte
	for _, r := range rows {
		b = append(format.AppendRow(b, r), '\n')
	}
	return string(b)
}

// TestGolden checks that a seed gives the same bytes in every version.
func TestGolden(t *testing.T) {
	got := fmt.Sprintf("%x", sha256.Sum256([]byte(lines(draw(t, busy)))))
	const want = "aada4d05bdfc8e61183a3e90dfa09fca8edd1e8feea1af14f3853b78e9380fb4"
	if got != want {
		t.Errorf("digest is %s, want %s; it begins\n%s", got, want, lines(draw(t, busy)[:8]))
	}
}

func TestSameSeedSameTraceAndPrefix(t *testing.T) {
	all := draw(t, busy)
	d := parse(t, busy)
	for range 2 { // also from one description, ranged over twice
		if again, _ := trace.Collect(d.Requests()); lines(again) != lines(all) {
			t.Fatal("the same spec draws another trace")
		}
	}
	few := draw(t, busy, Setting{Key: "num_requests", Value: "1000", From: "--n"})
	if len(few) != 1000 || lines(few) != lines(all[:1000]) {
		t.Error("1000 requests are not the first of 3000")
	}
	short := draw(t, busy, Setting{Key: "duration", Value: "100s", From: "--duration"})
	if lines(short) != lines(all[:len(short)]) || len(short) < 300 || len(short) == len(all) {
		t.Errorf("the %d requests of 100 s are not the first ones", len(short))
	}
	if other := draw(t, busy, Setting{Key: "seed", Value: "1", From: "--seed"}); lines(other) == lines(all) {
		t.Error("another seed draws the same trace")
	}
}

// aspectsOf returns the values of each turn by aspect, by its session and number, of the trace of
// TestAspectsAreIndependent, where the first 8 blocks are shared.
func aspectsOf(rows []trace.Request) map[string]map[string]string {
	values := map[string]map[string]string{"start": {}, "isl": {}, "fresh": {}, "osl": {}, "delay": {}, "shared": {}}
	last, turns := map[string]trace.Request{}, map[string]int{}
	for _, r := range rows {
		turn := fmt.Sprint(r.SessionID, " ", turns[r.SessionID])
		if before, later := last[r.SessionID]; later {
			values["fresh"][turn] = fmt.Sprint(r.InputLength - before.InputLength - before.OutputLength)
		} else {
			values["isl"][turn], values["start"][turn] = fmt.Sprint(r.InputLength), fmt.Sprint(r.Timestamp.Value)
		}
		values["osl"][turn], values["delay"][turn], values["shared"][turn] = fmt.Sprint(r.OutputLength), fmt.Sprint(r.Delay.Value), fmt.Sprint(r.HashIDs[:8])
		last[r.SessionID] = r
		turns[r.SessionID]++
	}
	return values
}

// TestAspectsAreIndependent changes one aspect at a time: only what comes from
// it may change.
func TestAspectsAreIndependent(t *testing.T) {
	const text = `
num_requests: 2000
rate: 2
isl: uniform:100:200
osl: uniform:10:20
block_size: 8
shared: {count: 9, tokens: 64, zipf: 1}
sessions: {turns: geometric:3, think_time: exponential:9s, new_tokens: uniform:5:9}
`
	was := aspectsOf(draw(t, text))
	for key, tc := range map[string]struct{ value, changes string }{
		"osl":                 {"uniform:30:99", "osl"},
		"isl":                 {"uniform:300:900", "isl"},
		"rate":                {"0.5", "start"},
		"sessions.think_time": {"1s", "delay"},
		"sessions.new_tokens": {"uniform:50:90", "fresh"},
		"shared.zipf":         {"0", "shared"},
		"correlation":         {"0.9", "osl"},
		"arrival":             {"constant", "start"},
	} {
		for aspect, turns := range aspectsOf(draw(t, text, Setting{Key: key, Value: tc.value, From: "--" + key})) {
			changed, compared := false, 0
			for turn, value := range turns {
				if before, both := was[aspect][turn]; both {
					changed, compared = changed || value != before, compared+1
				}
			}
			if changed != (aspect == tc.changes) || compared < 300 {
				t.Errorf("another %s: %s changed: %t, of %d turns", key, aspect, changed, compared)
			}
		}
	}
}

// TestSessions checks every turn of the busy trace: its arithmetic, its blocks,
// its time.
func TestSessions(t *testing.T) {
	last, turn := map[string]trace.Request{}, map[string]int{}
	owner := map[uint64]string{}
	for i, r := range draw(t, busy) {
		if want := (r.InputLength + 15) / 16; len(r.HashIDs) != want || r.InputLength < 1 || r.OutputLength < 1 {
			t.Fatalf("row %d: %d ids for %d tokens", i, len(r.HashIDs), r.InputLength)
		}
		context := r.ContextLen.Value
		if context%16 != 0 || context+r.UniquePromptLen.Value != r.InputLength {
			t.Fatalf("row %d: context %d and unique %d of %d", i, context, r.UniquePromptLen.Value, r.InputLength)
		}
		for k, id := range r.HashIDs[context/16:] {
			if by, taken := owner[id]; taken {
				t.Fatalf("row %d: id %d at %d is new, and was %s's", i, id, k, by)
			}
			owner[id] = r.SessionID
		}
		if r.SessionID == "" { // batch
			continue
		}
		before, later := last[r.SessionID]
		last[r.SessionID] = r
		if !later {
			if !r.Timestamp.Set || r.Delay.Set {
				t.Fatalf("row %d begins a session without a timestamp", i)
			}
			continue
		}
		turn[r.SessionID]++
		whole := before.InputLength / 16
		if context != whole*16 || !slices.Equal(r.HashIDs[:whole], before.HashIDs[:whole]) {
			t.Fatalf("row %d does not extend the turn before it: %v, %v", i, before, r)
		}
		if len(before.HashIDs) > whole && slices.Contains(r.HashIDs, before.HashIDs[whole]) {
			t.Fatalf("row %d shares a block that was not whole", i)
		}
		fresh := r.InputLength - before.InputLength - before.OutputLength
		if strings.HasPrefix(r.SessionID, "cron") {
			// ttft + (osl-1) tpot + think
			gap := 1 + 0.1*float64(before.OutputLength-1) + 2
			if got := (r.Timestamp.Value - before.Timestamp.Value) / 1000; fresh != 7 || r.Delay.Set || math.Abs(got-gap) > 1e-5 {
				t.Fatalf("row %d adds %d tokens after %v s, want 7 after %v", i, fresh, got, gap)
			}
		} else if fresh < 0 || fresh > 60 || r.Timestamp.Set || !r.Delay.Set {
			t.Fatalf("row %d adds %d tokens: %+v", i, fresh, r)
		}
	}
	longest := 0
	for id, turns := range turn {
		longest = max(longest, turns)
		if strings.HasPrefix(id, "cron") && turns > 2 {
			t.Errorf("%s has %d turns, want 3", id, turns+1)
		}
	}
	if longest < 10 {
		t.Errorf("the longest session has %d turns", longest+1)
	}
}

// TestSharedBlocks: a block belongs to the deepest prefix that reaches into it
// and ends in it or beyond.
func TestSharedBlocks(t *testing.T) {
	rows := draw(t, `
num_requests: 4000
block_size: 10
shared: [{count: 1, tokens: 25}, {count: 3, tokens: 10}, {count: 2, tokens: 4}]
unique_isl: 2
osl: 1`)
	// 25: blocks 0-1; 35: block 2 (20-30); 39: none, block 3 is each request's own.
	paths := map[string]int{}
	for _, r := range rows {
		if r.InputLength != 41 || len(r.HashIDs) != 5 || r.ContextLen.Value != 30 {
			t.Fatalf("row is %+v", r)
		}
		paths[fmt.Sprint(r.HashIDs[:3])]++
	}
	if len(paths) != 3 || paths["[0 1 2]"] < 1200 || paths["[0 1 3]"] < 1200 || paths["[0 1 4]"] < 1200 {
		t.Errorf("paths are %v", paths)
	}
	exact := draw(t, "num_requests: 100\nblock_size: 10\nshared: {count: 2, tokens: 20}\nisl: 20\nosl: 1")
	for _, r := range exact {
		if len(r.HashIDs) != 2 || r.UniquePromptLen.Value != 0 || r.HashIDs[1] > 3 {
			t.Fatalf("fully shared prompt: %+v", r)
		}
	}
}

// TestClientsHaveTheirShares: shares are of requests, however many turns each
// client's sessions have.
func TestClientsHaveTheirShares(t *testing.T) {
	rows := draw(t, `
duration: 20000
rate: 10
osl: 1
clients:
  - {name: long, share: 0.5, isl: 10, sessions: {turns: 10, new_tokens: 0, tpot: 0, ttft: 0}}
  - {name: short, share: 0.3, isl: 20, sessions: {turns: geometric:2, new_tokens: 0, tpot: 0, ttft: 0}}
  - {name: single, share: 0.2, isl: 30}
  - {name: own, rate: 5, isl: 40, sessions: {turns: 5, new_tokens: 0, tpot: 0, ttft: 0}}`)
	counts := map[string]float64{}
	for _, r := range rows {
		name, _, _ := strings.Cut(r.SessionID, "-")
		counts[name]++
	}
	for name, want := range map[string]float64{"long": 5, "short": 3, "": 2, "own": 5} {
		if got := counts[name] / 20000; math.Abs(got-want) > 0.02*want+0.05 {
			t.Errorf("client %q has %.3f requests a second, want %v", name, got, want)
		}
	}
}

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

// TestBlockSizeFitsSharedPrefixes: all of a shared prefix is shared if any block
// size allows it and the spec sets none.
func TestBlockSizeFitsSharedPrefixes(t *testing.T) {
	const lengths = "isl: 100000\nosl: 1\n"
	for text, want := range map[string]struct {
		size          int
		drawn, shared float64
	}{
		"":                                 {512, 0, 0},
		"shared: {tokens: 2000}":           {500, 2000, 2000},
		"shared: {count: 9, tokens: 1024}": {512, 1024, 1024},
		"shared: {tokens: 400}":            {400, 400, 400},
		"shared: {tokens: 997}":            {512, 997, 512}, // a prime
		"shared: [{tokens: 2000}, {count: 3, tokens: 300}]":          {100, 2300, 2300},
		"shared: [{tokens: 997}, {tokens: 500}]":                     {512, 1497, 1024},
		"block_size: 512\nshared: {tokens: 2000}":                    {512, 2000, 1536},
		"shared: {tokens: 'uniform:2000:2100'}\nblock_size: 3000":    {3000, -1, 0},
		"clients: [{share: 1, shared: {tokens: 2000}}]":              {500, 2000, 2000},
		"clients: [{share: .5, shared: {tokens: 600}}, {share: .5}]": {300, 600, 600},
		"shared: {tokens: 1000}\nsessions: {turns: 3, max_isl: 1e6}": {500, 1000, 1000},
	} {
		s, err := Parse([]byte(lengths+text), Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		drawn, shared := s.SharedTokens()
		if want.drawn < 0 {
			drawn = want.drawn
		}
		if s.BlockSize() != want.size || drawn != want.drawn || shared != want.shared {
			t.Errorf("%s: blocks of %d tokens share %v of %v, want %+v", text, s.BlockSize(), shared, drawn, want)
		}
	}
	for text, want := range map[string]int{"": 16, "shared: {tokens: 1000}": 20, "shared: {tokens: 1024}": 16, "block_size: 64": 64} {
		if s, err := Parse([]byte(lengths+text), Options{BlockSize: 16}); err != nil || s.BlockSize() != want {
			t.Errorf("%s of an engine: blocks of %d tokens, error %v; want %d", text, s.BlockSize(), err, want)
		}
	}
}
