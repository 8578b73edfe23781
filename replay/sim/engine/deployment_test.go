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
	if rapid.Bool().Draw(t, "has API server") {
		d.APIServer, d.WakeUp = time.Duration(rapid.IntRange(0, 30).Draw(t, "API server")), time.Duration(rapid.IntRange(0, 30).Draw(t, "wake up"))
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

func (c *Cluster) ranks() []*rank {
	all := c.front.ranks
	if c.decode != nil {
		all = slices.Concat(all, c.decode.ranks)
	}
	return all
}

// An engine counts what it has at each step, answers have their tokens, and nothing is left
// of any request.
func TestDeploymentInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, arrivals := anyDeployment(t), anyArrivals(t, true)
		c, err := d.New()
		if err != nil {
			t.Fatal(err)
		}
		h := play(t, c, c.BlockSize(), arrivals, func() {
			for _, e := range c.ranks() {
				if !d.Disaggregated() { // whose transfers hold blocks
					checkCounts(t, e)
				}
			}
		})
		checkAnswers(t, arrivals, h)
		if c.inTransfer() != 0 || c.arriving.len() != 0 {
			t.Fatal("transfers or requests before the router are left")
		}
		for _, e := range c.ranks() {
			checkIdle(t, e)
		}
		// The requests' numbers add up to the statistics. Every token of a prompt is computed
		// once or was cached.
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
		}
		s := c.Stats()
		if s.QueriedTokens != queried || s.HitTokens != hit || s.GeneratedTokens != generated || !cancels && s.Preemptions == 0 && s.PrefillTokens != computed {
			t.Fatalf("%d tokens looked up, %d hit, %d computed and %d generated, but the statistics are %+v", queried, hit, computed, generated, s)
		}
	})
}

func TestTransferTime(t *testing.T) {
	c, err := Deployment{
		Engine:  Config{Costs: Costs{PrefillToken: Millisecond, Sequence: 10 * Millisecond}},
		Prefill: 1, Decode: 1, Transfer: Transfer{Base: 100 * ms, PerToken: Millisecond},
	}.New()
	if err != nil {
		t.Fatal(err)
	}
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

// inTransfer returns the number of transfers under way.
func (c *Cluster) inTransfer() (n int) {
	for _, e := range c.front.ranks {
		n += len(e.link.active)
	}
	return n
}

// where returns the engine that each request went to.
func where(t *testing.T, d Deployment, arrivals []arrival) []int {
	c, err := d.New()
	if err != nil {
		t.Fatal(err)
	}
	var at []int
	for _, r := range play(t, c, c.BlockSize(), arrivals, func() {}).requests {
		at = append(at, slices.Index(c.front.ranks, r.rank))
	}
	return at
}

func TestRouting(t *testing.T) {
	cfg := Config{Costs: Costs{PrefillToken: Millisecond, Sequence: Millisecond}}
	a, b := sequence(100, 1), sequence(100, 1000)
	longA := append(slices.Clone(a), sequence(10, 5000)...)
	for _, tt := range []struct {
		name     string
		policy   routing.Policy
		arrivals []arrival
		want     []int
	}{
		{"in turn", routing.RoundRobin, []arrival{{tokens: a}, {tokens: a}, {tokens: b}, {tokens: a}}, []int{0, 1, 2, 0}},
		{"the idle one", routing.LeastLoaded, []arrival{{tokens: a}, {tokens: a}, {tokens: b}, {tokens: a, at: time.Second}}, []int{0, 1, 2, 0}},
		{"the one with the least to compute of equally many", routing.LeastLoaded,
			[]arrival{{tokens: longA}, {tokens: a}, {tokens: longA}, {tokens: b}}, []int{0, 1, 2, 1}},
		{"one for a session, in turn without", routing.Session,
			[]arrival{{tokens: a, session: "x"}, {tokens: b}, {tokens: b, session: "x"}, {tokens: a}, {tokens: a, session: "x"}}, []int{2, 0, 2, 1, 2}},
		{"the one that has the prefix", routing.Prefix,
			[]arrival{{tokens: b}, {tokens: a}, {tokens: longA, at: time.Second}, {tokens: b, at: time.Second}}, []int{0, 1, 1, 0}},
		{"not behind a queue that is longer than the prefix", routing.Prefix,
			[]arrival{{tokens: sequence(1000, 1)}, {tokens: append(sequence(1000, 1), sequence(5000, 7000)...), at: 5 * time.Second}, {tokens: sequence(1100, 1), at: 5 * time.Second}}, []int{0, 0, 1}},
		{"new prompts spread over idle engines", routing.Prefix,
			[]arrival{{tokens: longA}, {tokens: b, at: time.Second}, {tokens: sequence(10, 9000), at: 2 * time.Second}, {tokens: sequence(10, 8000), at: 3 * time.Second}}, []int{0, 1, 2, 2}},
		{"nor behind one that is as long", routing.Prefix,
			[]arrival{{tokens: sequence(1000, 1)}, {tokens: append(sequence(1000, 1), sequence(900, 9000)...), at: 2 * time.Second},
				{tokens: sequence(1001, 1), at: 2 * time.Second}}, []int{0, 0, 1}},
	} {
		for i := range tt.arrivals {
			tt.arrivals[i].output = 1
		}
		if got := where(t, Deployment{Engine: cfg, Engines: 3, Routing: tt.policy}, tt.arrivals); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestBadDeployments(t *testing.T) {
	for name, tt := range map[string]struct {
		d    Deployment
		want string
	}{
		"negative engines":     {Deployment{Engines: -1}, "-1 engines"},
		"too many":             {Deployment{Engines: 2000}, "2000 engines; at most 1024"},
		"prefill alone":        {Deployment{Prefill: 1}, "1 prefill and 0 decode engines"},
		"decode alone":         {Deployment{Decode: 1}, "0 prefill and 1 decode engines"},
		"both kinds":           {Deployment{Engines: 1, Prefill: 1, Decode: 1}, "or Prefill and Decode, not both"},
		"unknown router":       {Deployment{Routing: "best"}, `routing "best" is not one of round-robin, random, least-loaded, session, prefix`},
		"negative transfer":    {Deployment{Transfer: Transfer{Base: -1}}, "transfer time is not from 0"},
		"negative cost":        {Deployment{Engine: Config{Costs: Costs{Step: -1}}}, "cost of a step is not from 0"},
		"endless cost":         {Deployment{Engine: Config{Costs: Costs{PrefillToken: 2 * Hour}}}, "cost of a prefill token is not from 0 to 1h0m0s: 2h0m0s"},
		"no room for a batch":  {Deployment{Engine: Config{MaxSeqs: 100, MaxBatchedTokens: 99}}, "max batched tokens 99 is below max seqs 100"},
		"negative block size":  {Deployment{Engine: Config{BlockSize: -16}}, "block size is not from 1 to 2147483647: -16"},
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
