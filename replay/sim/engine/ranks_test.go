package engine

import (
	"slices"
	"testing"
	"time"

	"moontide/trace/routing"
)

// A step takes as long as the slowest rank's part, and what arrives at an idle
// rank waits for the next one.
func TestRanksStepTogether(t *testing.T) {
	c, err := Deployment{Engine: Config{Ranks: 2, Costs: Costs{Step: 10 * Millisecond, PrefillToken: Millisecond, Sequence: 2 * Millisecond}}}.New()
	if err != nil {
		t.Fatal(err)
	}
	h := play(t, c, 16, []arrival{
		{tokens: sequence(20, 1), output: 3},
		{at: ms, tokens: sequence(30, 100), output: 2},
	}, func() {
		for _, k := range c.ranks() {
			checkCounts(t, k)
		}
	})
	// Rank 0 alone until 30 ms. Then its token takes as long as the prompt of
	// rank 1: 10 + 30. Then a token of each, at once: 10 + 2.
	want := []string{
		"30ms: 0 first", "70ms: 0 token", "70ms: 1 first",
		"82ms: 0 token", "82ms: 0 finished", "82ms: 1 token", "82ms: 1 finished", "0: 0 cached", "1: 0 cached",
	}
	if got := eventLines(h); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	each := c.EachStats()
	if len(each) != 2 || each[0].Steps != 3 || each[0].Busy != 82*ms || each[1].PrefillTokens != 30 || each[1].GeneratedTokens != 2 {
		t.Errorf("%+v", each)
	}
}

// Each rank has a KV cache of its own, of the size of the engine's setting.
func TestRanksShareNoCache(t *testing.T) {
	c, err := Deployment{Engine: Config{Ranks: 2, KVBlocks: 4, Costs: Costs{Step: Millisecond}}}.New()
	if err != nil {
		t.Fatal(err)
	}
	var arrivals []arrival
	for i := range 3 {
		arrivals = append(arrivals, arrival{at: 10 * ms * time.Duration(i), tokens: sequence(40, 1), output: 1})
	}
	var cached []int
	for _, r := range play(t, c, 16, arrivals, func() {}).requests {
		cached = append(cached, r.Cached())
	}
	if want := []int{0, 0, 32}; !slices.Equal(cached, want) || c.Stats().KVBlocks != 8 {
		t.Errorf("cached %v, want %v; %d blocks", cached, want, c.Stats().KVBlocks)
	}
}

// Routing spreads requests over the engines before it returns to one, and
// finds the rank with the prefix.
func TestRoutingToRanks(t *testing.T) {
	for _, tt := range []struct {
		policy        routing.Policy
		tokens        []uint64 // the first token of each prompt
		engine, ranks []int
	}{
		{routing.RoundRobin, []uint64{1, 2, 3, 4, 5}, []int{0, 1, 0, 1, 0}, []int{0, 0, 1, 1, 0}},
		{routing.Prefix, []uint64{1000, 2000, 3000, 4000, 3000}, []int{0, 1, 0, 1, 0}, []int{0, 0, 1, 1, 1}},
	} {
		c, err := Deployment{Engine: Config{Ranks: 2}, Engines: 2, Routing: tt.policy}.New()
		if err != nil {
			t.Fatal(err)
		}
		var arrivals []arrival
		for i, first := range tt.tokens {
			arrivals = append(arrivals, arrival{at: time.Duration(i) * time.Second, tokens: sequence(500, first), output: 1})
		}
		var engines, ranks []int
		for _, r := range play(t, c, 16, arrivals, func() {}).requests {
			engines = append(engines, r.rank.engine.index)
			ranks = append(ranks, slices.Index(r.rank.engine.ranks, r.rank))
		}
		if !slices.Equal(engines, tt.engine) || !slices.Equal(ranks, tt.ranks) {
			t.Errorf("%s: engines %v, ranks %v; want %v, %v", tt.policy, engines, ranks, tt.engine, tt.ranks)
		}
	}
}

// Ranks decode together without Token events as long as the same one is the
// slowest: here first the long context, later the two sequences.
func TestCoarseRanks(t *testing.T) {
	d := Deployment{Engine: Config{Ranks: 2, Costs: Costs{ContextToken: Microsecond}}}
	arrivals := []arrival{
		{tokens: sequence(301, 1), output: 400}, {tokens: sequence(50, 1000), output: 400},
		{tokens: sequence(1, 1), output: 1}, {tokens: sequence(50, 2000), output: 400},
	}
	var ends [2][]string
	steps := 0
	for i, build := range []func() (*Cluster, error){d.New, d.NewCoarse} {
		c, err := build()
		if err != nil {
			t.Fatal(err)
		}
		h := play(t, c, 16, arrivals, func() { steps += i })
		h.events = slices.DeleteFunc(h.events, func(e Event) bool { return e.Kind != Finished })
		ends[i] = eventLines(h)
	}
	if !slices.Equal(ends[0], ends[1]) || steps > 20 {
		t.Errorf("with tokens %v, without %v in %d leaps", ends[0], ends[1], steps)
	}
}

func TestDeploymentOfRanksInWords(t *testing.T) {
	ranks := Config{Ranks: 8}
	for want, d := range map[string]Deployment{
		"1 engine of 8 ranks, round-robin routing":                          {Engine: ranks},
		"4 engines of 8 ranks, round-robin routing":                         {Engine: ranks, Engines: 4},
		"2 prefill and 2 decode engines of 8 ranks, round-robin routing":    {Engine: ranks, Prefill: 2, Decode: 2},
		"2 prefill engines and 3 decode engines of 8 ranks, random routing": {Prefill: 2, Decode: 3, DecodeEngine: &ranks, Routing: routing.Random},
	} {
		if got := d.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := (Deployment{Engine: Config{Ranks: 100}}).Validate(); err == nil || err.Error() != "engine: ranks is not from 1 to 64: 100" {
		t.Error(err)
	}
}
