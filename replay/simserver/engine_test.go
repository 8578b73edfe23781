package simserver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestTimelineByHand(t *testing.T) {
	e := NewEngine(Config{PrefillPerToken: ms, DecodeStep: 10 * ms})
	exactly := func(n int) Sampling { return Sampling{MaxTokens: n, IgnoreEOS: true} }
	a, b := sequence(100, 1), sequence(50, 1000)

	for _, tt := range []struct {
		name   string
		now    time.Duration
		tokens []uint64
		osl    int
		want   Timeline
	}{
		{"idle engine", 5 * ms, a, 3,
			Timeline{Prompt: 100, Tokens: 3, Start: 5 * ms, First: 105 * ms}},
		{"waits for the one before", 15 * ms, b, 1,
			Timeline{Prompt: 50, Tokens: 1, Start: 105 * ms, First: 155 * ms}},
		{"computes only what is not cached", 20 * ms, a, 2,
			Timeline{Prompt: 100, Cached: 96, Tokens: 2, Start: 155 * ms, First: 159 * ms}},
		{"idle again", 1000 * ms, sequence(1, 5000), 1,
			Timeline{Prompt: 1, Tokens: 1, Start: 1000 * ms, First: 1001 * ms}},
	} {
		tt.want.Step, tt.want.Finish = 10*ms, FinishLength
		got := e.Submit(tt.now, promptOf(e, tt.tokens...), exactly(tt.osl))
		if diff := cmp.Diff(&tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestTokensOut(t *testing.T) {
	paced := &Timeline{Tokens: 3, First: 100 * ms, Step: 10 * ms}
	atOnce := &Timeline{Tokens: 3, First: 100 * ms}
	for _, tt := range []struct {
		now           time.Duration
		paced, atOnce int
	}{
		{0, 0, 0}, {100*ms - 1, 0, 0}, {100 * ms, 1, 3}, {110*ms - 1, 1, 3},
		{110 * ms, 2, 3}, {120 * ms, 3, 3}, {time.Hour, 3, 3},
	} {
		if got := paced.Out(tt.now); got != tt.paced {
			t.Errorf("paced, at %v: %d tokens, want %d", tt.now, got, tt.paced)
		}
		if got := atOnce.Out(tt.now); got != tt.atOnce {
			t.Errorf("at once, at %v: %d tokens, want %d", tt.now, got, tt.atOnce)
		}
	}
}

func TestTimelineLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			PrefillPerToken: time.Duration(rapid.IntRange(0, 5).Draw(t, "prefill")),
			DecodeStep:      time.Duration(rapid.IntRange(0, 50).Draw(t, "decode")),
			BlockSize:       4, KVBlocks: 8,
		}
		e := NewEngine(cfg)
		var now, free, work time.Duration
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			now += time.Duration(rapid.IntRange(0, 60).Draw(t, "gap"))
			tokens := rapid.SliceOfN(rapid.Uint64Range(0, 1), 1, 20).Draw(t, "tokens")
			tl := e.Submit(now, promptOf(e, tokens...), Sampling{MaxTokens: rapid.IntRange(1, 40).Draw(t, "osl"), IgnoreEOS: true})

			// First come first served, never idle while there is work.
			if want := max(now, free); tl.Start != want {
				t.Fatalf("arrived at %v, prefill free at %v, began at %v", now, free, tl.Start)
			}
			// Work is conserved: prefill takes what is not cached, no more or less.
			if tl.Cached < 0 || tl.Cached >= len(tokens) || tl.Cached%cfg.BlockSize != 0 {
				t.Fatalf("%d of %d tokens cached", tl.Cached, len(tokens))
			}
			cost := time.Duration(len(tokens)-tl.Cached) * cfg.PrefillPerToken
			if tl.First-tl.Start != cost {
				t.Fatalf("prefill took %v, want %v", tl.First-tl.Start, cost)
			}
			free, work = tl.First, work+cost
			checkTokens(t, tl)
		}
		if free > now+work {
			t.Fatalf("prefill ends at %v, but the last arrival was at %v and all work is %v", free, now, work)
		}
	})
}

// checkTokens holds Due against Out: token k is there when it is due and not a
// nanosecond before.
func checkTokens(t *rapid.T, tl *Timeline) {
	if tl.Due(0) != tl.First {
		t.Fatalf("token 0 is due at %v, prefill ends at %v", tl.Due(0), tl.First)
	}
	for k := range tl.Tokens {
		due := tl.Due(k)
		if got := tl.Out(due); got < k+1 {
			t.Fatalf("at %v, when token %d is due, %d are there", due, k, got)
		}
		if got := tl.Out(due - 1); got > k {
			t.Fatalf("before token %d is due, %d are there", k, got)
		}
	}
}

func TestAnswerLength(t *testing.T) {
	const natural = 16 + 99 // of a prompt whose hash is 99
	for _, tt := range []struct {
		name string
		s    Sampling
		hash uint64
		want int
		why  FinishReason
	}{
		{"natural", Sampling{MaxTokens: 1000}, 99, natural, FinishStop},
		{"shortest", Sampling{MaxTokens: 1000}, 0, 16, FinishStop},
		{"longest", Sampling{MaxTokens: 1000}, 496, 512, FinishStop},
		{"then again the shortest", Sampling{MaxTokens: 1000}, 497, 16, FinishStop},
		{"ends where it was going to", Sampling{MaxTokens: natural}, 99, natural, FinishStop},
		{"cut", Sampling{MaxTokens: natural - 1}, 99, natural - 1, FinishLength},
		{"no end of its own", Sampling{MaxTokens: 1000, IgnoreEOS: true}, 99, 1000, FinishLength},
		{"at least", Sampling{MaxTokens: 1000, MinTokens: 700}, 99, 700, FinishStop},
		{"at least less than natural", Sampling{MaxTokens: 1000, MinTokens: 20}, 99, natural, FinishStop},
		{"zero value", Sampling{}, 99, 1, FinishLength},
	} {
		if got, why := tt.s.length(tt.hash); got != tt.want || why != tt.why {
			t.Errorf("%s: %d tokens, %s; want %d, %s", tt.name, got, why, tt.want, tt.why)
		}
	}
}

func TestStats(t *testing.T) {
	e := NewEngine(Config{PrefillPerToken: ms, DecodeStep: 10 * ms, KVBlocks: 100})
	s := Sampling{MaxTokens: 11, IgnoreEOS: true}
	a := e.Submit(0, promptOf(e, sequence(100, 1)...), s)   // prefill 0..100, last token at 200
	b := e.Submit(0, promptOf(e, sequence(50, 1)...), s)    // 48 cached: 100..102, 202
	c := e.Submit(0, promptOf(e, sequence(20, 1000)...), s) // 102..122, 222

	want := Stats{
		CacheUsage:    0.07, // 6 blocks of a, of which b uses 3, and 1 of c
		QueriedTokens: 170,
		HitTokens:     48,
		Finished:      map[FinishReason]int{},
	}
	check := func(now time.Duration, waiting, running, prompt, generated int) {
		t.Helper()
		want.Waiting, want.Running, want.PromptTokens, want.GeneratedTokens = waiting, running, prompt, generated
		if diff := cmp.Diff(want, e.Stats(now)); diff != "" {
			t.Errorf("at %v (-want +got):\n%s", now, diff)
		}
	}
	before := e.Stats(0)
	check(99*ms, 2, 1, 0, 0)
	check(100*ms, 1, 2, 100, 1)
	check(122*ms, 0, 3, 170, 3+3+1)

	e.Release(200*ms, a)
	want.Finished[FinishLength]++
	check(200*ms, 0, 2, 170, 11+10+8)
	e.Release(200*ms, c) // three tokens short of its end
	want.Finished[FinishAbort]++
	check(300*ms, 0, 1, 170, 11+11+8)
	e.Release(300*ms, b)
	e.Release(300*ms, b)
	want.Finished[FinishLength]++
	check(400*ms, 0, 0, 170, 30)
	if len(before.Finished) != 0 {
		t.Errorf("stats taken before any request ended have changed: %+v", before)
	}
}
