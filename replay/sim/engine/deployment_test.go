package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/trace/routing"
)

func anyDeployment(t *rapid.T) Deployment {
	d := Deployment{
		Engine:  anyConfig(t),
		Routing: rapid.SampledFrom(append(routing.Policies(), "")).Draw(t, "router"),
		Seed:    rapid.Uint64().Draw(t, "seed"),
	}
	if rapid.IntRange(0, 4).Draw(t, "phased") == 0 {
		d.Engine.PhasedTPOT = time.Duration(rapid.IntRange(1, 20).Draw(t, "TPOT"))
	}
	if rapid.Bool().Draw(t, "has ranks") {
		d.Engine.Ranks = rapid.IntRange(1, 3).Draw(t, "ranks")
	}
	if rapid.Bool().Draw(t, "disaggregated") {
		d.Prefill, d.Decode = rapid.IntRange(1, 3).Draw(t, "prefill engines"), rapid.IntRange(1, 3).Draw(t, "decode engines")
		d.Transfer = Transfer{
			Base:     time.Duration(rapid.IntRange(0, 20).Draw(t, "transfer base")),
			PerToken: 700 * Picosecond * Cost(rapid.IntRange(0, 3).Draw(t, "transfer a token")),
			Sharing:  rapid.SampledFrom(append(Sharings, "")).Draw(t, "sharing"),

			FirstTokenAfter: rapid.Bool().Draw(t, "first token after"),
		}
		if rapid.Bool().Draw(t, "other decode engines") {
			decode := anyConfig(t)
			decode.BlockSize, decode.Ranks = d.Engine.BlockSize, rapid.IntRange(1, 3).Draw(t, "decode ranks")
			d.DecodeEngine = &decode
		}
	} else {
		d.Engines = rapid.IntRange(0, 4).Draw(t, "engines")
	}
	if rapid.Bool().Draw(t, "has latency") {
		d.Latency = time.Duration(rapid.IntRange(1, 30).Draw(t, "latency"))
	}
	return d
}

// eventLines formats events for comparison.
func eventLines(h history) []string {
	var lines []string
	for _, e := range h.events {
		lines = append(lines, fmt.Sprintf("%v: %v %v", e.At, e.Request.Owner, e.Kind))
	}
	for i, r := range h.requests {
		if r != nil {
			lines = append(lines, fmt.Sprintf("%d: %d cached", i, r.Cached()))
		}
	}
	return lines
}

// The requests' numbers add up to the statistics, and nothing is left of any request. Every
// token of a prompt is computed once or was cached.
func TestStats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, arrivals := anyDeployment(t), anyArrivals(t, true)
		c := must(d.New())
		h := play(t, c, c.BlockSize(), arrivals, func() {})
		checkIdle(t, c)
		queried, hit, computed, generated, cancels := 0, 0, 0, 0, false
		for i, r := range h.requests {
			if r == nil {
				continue
			}
			cancels = cancels || arrivals[i].cancelAfter > 0
			generated += r.Generated()
			if r.admitted {
				queried, hit, computed = queried+r.Prompt.Len(), hit+r.Cached(), computed+r.Prompt.Len()-r.Cached()
			}
			if !r.Ended() || r.Generated() > arrivals[i].output || arrivals[i].cancelAfter == 0 && r.Generated() != arrivals[i].output {
				t.Fatalf("request %d: %d tokens of %d, ended %v", i, r.Generated(), arrivals[i].output, r.Ended())
			}
		}
		s := c.Stats()
		if s.QueriedTokens != queried || s.HitTokens != hit || s.GeneratedTokens != generated || !cancels && s.Preemptions == 0 && s.PrefillTokens != computed {
			t.Fatalf("%d tokens looked up, %d hit, %d computed and %d generated, but the statistics are %+v", queried, hit, computed, generated, s)
		}
	})
}

func TestTransferTime(t *testing.T) {
	c := must(Deployment{
		Engine:  Config{Costs: Costs{PrefillToken: Millisecond, Sequence: 10 * Millisecond}},
		Prefill: 1, Decode: 1, Transfer: Transfer{Base: 100 * ms, PerToken: Millisecond},
	}.New())
	var used []int
	h := play(t, c, 16, []arrival{{tokens: sequence(50, 1), output: 3}}, func() { used = append(used, c.Stats().KVUsed) })
	// 50 ms of prefill, 150 of transfer, then steps of one sequence.
	want := []string{"50ms: 0 first", "210ms: 0 token", "220ms: 0 token", "220ms: 0 finished", "0: 0 cached"}
	if got := eventLines(h); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// The blocks of a prompt are held while it is on its way: here during
	// prefill, transfer, on the other side, and not at the end.
	if want := []int{4, 4, 4, 4, 0}; !slices.Equal(used, want) {
		t.Errorf("blocks in use: %v, want %v", used, want)
	}
}

func TestBadDeployments(t *testing.T) {
	for name, tt := range map[string]struct {
		d    Deployment
		want string
	}{
		"negative engines":     {Deployment{Engines: -1}, "-1 engines"},
		"prefill alone":        {Deployment{Prefill: 1}, "1 prefill and 0 decode engines"},
		"both kinds":           {Deployment{Engines: 1, Prefill: 1, Decode: 1}, "or Prefill and Decode, not both"},
		"unknown router":       {Deployment{Routing: "best"}, `routing "best" is not one of round-robin, random, least-loaded, session, prefix`},
		"endless cost":         {Deployment{Engine: Config{Costs: Costs{PrefillToken: 2 * Hour}}}, "cost of a prefill token is not from 0 to 1h0m0s: 2h0m0s"},
		"no room for a batch":  {Deployment{Engine: Config{MaxSeqs: 100, MaxBatchedTokens: 99}}, "max batched tokens 99 is below max seqs 100"},
		"too many ranks":       {Deployment{Engine: Config{Ranks: 100}}, "ranks is not from 1 to 64: 100"},
		"more than can be had": {Deployment{Engine: Config{KVBlocks: math.MaxInt}}, "KV blocks is not from 1"},
	} {
		if _, err := tt.d.New(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", name, err, tt.want)
		}
	}
}

func TestDeploymentInWords(t *testing.T) {
	for want, d := range map[string]Deployment{
		"1 engine": {}, "4 engines, prefix routing": {Engines: 4, Routing: routing.Prefix},
		"2 prefill and 3 decode engines, round-robin routing":            {Prefill: 2, Decode: 3},
		"4 engines of 8 ranks, round-robin routing":                      {Engine: Config{Ranks: 8}, Engines: 4},
		"2 prefill and 2 decode engines of 8 ranks, round-robin routing": {Engine: Config{Ranks: 8}, Prefill: 2, Decode: 2},
	} {
		if got := d.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
