package routing

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func router(t *testing.T, p Policy, workers int, seed uint64) *Router {
	t.Helper()
	r, err := New(p, workers, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// picks returns the workers picked for requests with fixed loads and caches.
func picks(r *Router, requests []Request, loads []Load, cached []int) (workers []int) {
	for _, request := range requests {
		workers = append(workers, r.Pick(request, func(w int) Load { return loads[w] }, func(w int) int { return cached[w] }))
	}
	return workers
}

func TestPick(t *testing.T) {
	idle, none := make([]Load, 3), make([]int, 3)
	prompts := []Request{{Tokens: 100}, {Tokens: 10}, {Tokens: 10}, {Tokens: 10}}
	for name, tt := range map[string]struct {
		policy   Policy
		requests []Request
		loads    []Load
		cached   []int
		want     []int
	}{
		"round-robin":                            {RoundRobin, prompts, idle, none, []int{0, 1, 2, 0}},
		"no policy is round-robin":               {"", prompts, idle, none, []int{0, 1, 2, 0}},
		"upper case":                             {"ROUND_ROBIN", prompts, idle, none, []int{0, 1, 2, 0}},
		"least-loaded: ties go to the first":     {LeastLoaded, prompts, idle, none, []int{0, 0, 0, 0}},
		"least-loaded: fewest requests":          {LeastLoaded, prompts[:1], []Load{{2, 0}, {1, 900}, {1, 800}}, none, []int{2}},
		"session: by hash, the others in turn":   {Session, []Request{{Session: 7}, {}, {Session: 7}, {}, {Session: 5}}, idle, none, []int{1, 0, 1, 1, 2}},
		"prefix: ties go to the fewest sent":     {Prefix, prompts, idle, none, []int{0, 1, 2, 1}},
		"prefix: the longest cached prefix":      {Prefix, prompts[:1], idle, []int{10, 60, 50}, []int{1}},
		"prefix: not behind more load than hits": {Prefix, prompts[:1], []Load{{0, 51}, {0, 0}, {0, 0}}, []int{60, 10, 0}, []int{1}},
		"prefix: 200 tokens a request":           {Prefix, prompts[:1], []Load{{1, 0}, {0, 150}, {0, 151}}, []int{51, 0, 0}, []int{0}},
	} {
		if got := picks(router(t, tt.policy, 3, 0), tt.requests, tt.loads, tt.cached); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestRandomUsesItsSeed(t *testing.T) {
	draw := func(seed uint64) []int { return picks(router(t, Random, 3, seed), make([]Request, 300), nil, nil) }
	one := draw(1)
	if !slices.Equal(one, draw(1)) || slices.Equal(one, draw(2)) {
		t.Error("equal seeds must draw equal workers, other seeds others")
	}
	counts := make([]int, 3)
	for _, w := range one {
		counts[w]++
	}
	for w, n := range counts {
		if n < 60 || n > 140 {
			t.Errorf("worker %d got %d of 300 requests", w, n)
		}
	}
}

func TestSessionHash(t *testing.T) {
	if SessionHash("") != 0 || SessionHash("a") == 0 || SessionHash("a") == SessionHash("b") {
		t.Error("only the empty name hashes to 0, and names to different numbers")
	}
}

func TestErrors(t *testing.T) {
	for _, p := range Policies() {
		if got, err := Parse(strings.ToUpper(string(p))); err != nil || got != p {
			t.Errorf("%s in upper case: %q, %v", p, got, err)
		}
	}
	_, err := New("best", 1, nil)
	if want := `routing "best" is not one of round-robin, random, least-loaded, session, prefix`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := New(RoundRobin, 0, nil); err == nil {
		t.Error("0 workers: no error")
	}
	if _, err := New(Random, 1, nil); err == nil {
		t.Error("no random numbers: no error")
	}
}
