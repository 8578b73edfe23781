package engine

import (
	"errors"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestStepsByHand(t *testing.T) {
	costs := Costs{Step: 10 * Millisecond, PrefillToken: Millisecond, Sequence: 2 * Millisecond, ContextToken: 100 * Microsecond}
	for _, tt := range []struct {
		name     string
		cfg      Config
		arrivals []arrival
		want     []string
	}{
		{"alone", Config{},
			[]arrival{{at: 5 * ms, tokens: sequence(100, 1), output: 3}},
			// 10+100; then 10+2 and 101 tokens of context, 102.
			[]string{"115ms: 0 first", "137.1ms: 0 token", "159.3ms: 0 token", "159.3ms: 0 finished", "0: 0 cached"}},
		{"at once is one step", Config{},
			[]arrival{{tokens: sequence(20, 1), output: 1}, {tokens: sequence(30, 100), output: 1}},
			[]string{"60ms: 0 first", "60ms: 0 finished", "60ms: 1 first", "60ms: 1 finished", "0: 0 cached", "1: 0 cached"}},
		{"the later waits for the step to end, and shares the next", Config{},
			[]arrival{{tokens: sequence(20, 1), output: 2}, {at: ms, tokens: sequence(30, 100), output: 1}},
			// 30; then 10 + 30 + 2 + 2.1.
			[]string{"30ms: 0 first", "74.1ms: 0 token", "74.1ms: 0 finished", "74.1ms: 1 first", "74.1ms: 1 finished", "0: 0 cached", "1: 0 cached"}},
		// 1 comes during the first step, when the second is scheduled already; it is in the third.
		{"a step scheduled ahead", Config{AsyncScheduling: true},
			[]arrival{{tokens: sequence(20, 1), output: 3}, {at: ms, tokens: sequence(30, 100), output: 1}},
			[]string{"30ms: 0 first", "44.1ms: 0 token", "88.3ms: 0 token", "88.3ms: 0 finished", "88.3ms: 1 first", "88.3ms: 1 finished", "0: 0 cached", "1: 0 cached"}},
		{"nothing to schedule ahead", Config{AsyncScheduling: true},
			[]arrival{{tokens: sequence(20, 1), output: 1}, {at: ms, tokens: sequence(30, 100), output: 1}},
			[]string{"30ms: 0 first", "30ms: 0 finished", "70ms: 1 first", "70ms: 1 finished", "0: 0 cached", "1: 0 cached"}},
		{"what the step before it leaves in the cache", Config{},
			[]arrival{{tokens: sequence(40, 1), output: 1}, {at: ms, tokens: sequence(40, 1), output: 1}},
			[]string{"50ms: 0 first", "50ms: 0 finished", "68ms: 1 first", "68ms: 1 finished", "0: 0 cached", "1: 32 cached"}},
		{"prefixes are shared within a step", Config{},
			[]arrival{{tokens: sequence(40, 1), output: 1}, {tokens: sequence(40, 1), output: 1}},
			[]string{"58ms: 0 first", "58ms: 0 finished", "58ms: 1 first", "58ms: 1 finished", "0: 0 cached", "1: 32 cached"}},
		{"chunks of what decoding leaves", Config{MaxSeqs: 8, MaxBatchedTokens: 16},
			[]arrival{{tokens: sequence(16, 1), output: 4}, {tokens: sequence(40, 100), output: 1}},
			// 26; then thrice 15 tokens of the other, 10 the last time.
			[]string{"26ms: 0 first", "54.7ms: 0 token", "83.5ms: 0 token", "107.4ms: 0 token", "107.4ms: 0 finished",
				"107.4ms: 1 first", "107.4ms: 1 finished", "0: 0 cached", "1: 0 cached"}},
		{"places", Config{MaxSeqs: 1},
			[]arrival{{tokens: sequence(20, 1), output: 2}, {tokens: sequence(30, 100), output: 1}},
			[]string{"30ms: 0 first", "44.1ms: 0 token", "44.1ms: 0 finished", "84.1ms: 1 first", "84.1ms: 1 finished", "0: 0 cached", "1: 0 cached"}},
		{"blocks", Config{KVBlocks: 3},
			[]arrival{{tokens: sequence(20, 1), output: 2}, {tokens: sequence(30, 100), output: 1}},
			[]string{"30ms: 0 first", "44.1ms: 0 token", "44.1ms: 0 finished", "84.1ms: 1 first", "84.1ms: 1 finished", "0: 0 cached", "1: 0 cached"}},
		// Both prompts take two of four blocks. The fourth step would put the
		// 33rd token of each: 0 preempts 1, whose first block it then takes
		// from the cache, for 0 took what 1 gave up last.
		{"preemption", Config{KVBlocks: 4},
			[]arrival{{tokens: sequence(30, 1), output: 5}, {tokens: sequence(30, 100), output: 4}},
			[]string{
				"70ms: 0 first", "70ms: 1 first", "90.2ms: 0 token", "90.2ms: 1 token", "110.6ms: 0 token", "110.6ms: 1 token",
				"110.6ms: 1 preempted", "125.9ms: 0 token", "141.3ms: 0 token", "141.3ms: 0 finished",
				"168.3ms: 1 token", "168.3ms: 1 finished", "0: 0 cached", "1: 0 cached"}},
		// 2 came after 1 and does not overtake it.
		{"the preempted go first", Config{KVBlocks: 4, MaxSeqs: 2},
			[]arrival{{tokens: sequence(30, 1), output: 4}, {tokens: sequence(30, 100), output: 4}, {tokens: sequence(10, 200), output: 1}},
			[]string{
				"70ms: 0 first", "70ms: 1 first", "90.2ms: 0 token", "90.2ms: 1 token", "110.6ms: 0 token", "110.6ms: 1 token",
				"110.6ms: 1 preempted", "125.9ms: 0 token", "125.9ms: 0 finished",
				"162.9ms: 1 token", "162.9ms: 1 finished", "162.9ms: 2 first", "162.9ms: 2 finished", "0: 0 cached", "1: 0 cached", "2: 0 cached"}},
		{"out of step", Config{PhasedTPOT: 10 * ms},
			[]arrival{{tokens: sequence(20, 1), output: 3}, {tokens: sequence(30, 100), output: 3}},
			[]string{
				"60ms: 0 first", "60ms: 1 first", "62.360679ms: 1 token", "66.180339ms: 0 token",
				"72.360679ms: 1 token", "72.360679ms: 1 finished", "76.180339ms: 0 token", "76.180339ms: 0 finished", "0: 0 cached", "1: 0 cached"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Costs = costs
			e := must(Deployment{Engine: tt.cfg}.New())
			h := play(t, e, 16, tt.arrivals, func() {})
			if got := eventLines(h); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			checkIdle(t, e)
		})
	}
}

func TestSubmitErrors(t *testing.T) {
	e := must(Deployment{Engine: Config{MaxModelLen: 100, KVBlocks: 4, BlockSize: 8}}.New())
	request := func(isl, osl int) *Request { return &Request{Prompt: promptOf(8, sequence(isl, 1)...), Output: osl} }
	for _, tt := range []struct {
		name string
		r    *Request
		want string
	}{
		{"no prompt", &Request{Output: 1}, "the prompt is empty"},
		{"empty prompt", request(0, 1), "the prompt is empty"},
		{"no answer", request(1, 0), "the answer has no token"},
		{"other blocks", &Request{Prompt: promptOf(16, 1), Output: 1}, "the prompt is in blocks of another size than the engine's"},
		{"too long for the model", request(50, 51), "a prompt of 50 tokens and an answer of 51 do not fit into the model's context of 100 tokens"},
		{"too long by far", request(1, 1<<62), "a prompt of 1 tokens and an answer of 4611686018427387904 do not fit into the model's context of 100 tokens"},
		{"too long for the cache", request(30, 4), "a prompt of 30 tokens and an answer of 4 do not fit into the KV cache of 32 tokens"},
	} {
		if err := e.Submit(0, tt.r); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// The last token is generated and never read.
	fits := request(30, 3)
	if err := e.Submit(0, fits); err != nil {
		t.Error(err)
	}
	if err := e.Submit(0, fits); !errors.Is(err, ErrSubmitted) {
		t.Errorf("submitted twice: %v", err)
	}
}

// A request waits from reaching the engine until the step that computes its prompt.
func TestQueueTime(t *testing.T) {
	d := Deployment{Engine: Config{MaxSeqs: 1, Costs: Costs{Step: 10 * Millisecond}}, Latency: 3 * ms}
	c := must(d.New())
	for i := range 3 { // begin at 3, 23 and 43 ms
		if err := c.Submit(0, &Request{Prompt: promptOf(16, sequence(20, uint64(100*i))...), Output: 2}); err != nil {
			t.Fatal(err)
		}
	}
	c.Advance(time.Second, nil)
	if s := c.Stats(); s.Admitted != 3 || s.Queued != 60*ms {
		t.Errorf("%d requests waited %v, want 3 and 60ms", s.Admitted, s.Queued)
	}
}

// Absurd step costs do not overflow the time.
func TestCostsDoNotOverflow(t *testing.T) {
	e := must(Deployment{Engine: Config{Costs: Costs{Step: Hour, PrefillToken: Hour, Sequence: Hour, ContextToken: Hour}, MaxModelLen: 1 << 30, KVBlocks: 1 << 30}}.New())
	now := time.Duration(0)
	for _, event := range play(t, e, 16, []arrival{{tokens: sequence(1<<20, 1), output: 20}}, func() {}).events {
		if event.At < now {
			t.Fatalf("an event at %v after one at %v", event.At, now)
		}
		now = event.At
	}
}

// Each phased request has its tokens a period apart, and the phases are spread evenly.
func TestPhasesAreEven(t *testing.T) {
	const n, period = 100, time.Second
	e := must(Deployment{Engine: Config{PhasedTPOT: period}}.New())
	arrivals := make([]arrival, n)
	for i := range arrivals {
		arrivals[i] = arrival{tokens: sequence(1, uint64(i)), output: 10}
	}
	last := map[*Request]time.Duration{}
	var phases []time.Duration
	for _, event := range play(t, e, 16, arrivals, func() {}).events {
		before, later := last[event.Request]
		switch {
		case event.Kind != Token:
			continue
		case !later:
			phases = append(phases, event.At%period)
		case event.At-before != period:
			t.Fatalf("a gap of %v", event.At-before)
		}
		last[event.Request] = event.At
	}
	slices.Sort(phases)
	for i, p := range phases {
		if gap := (phases[(i+1)%n] - p + period) % period; len(phases) != n || gap < period/n/3 || gap > 3*period/n {
			t.Errorf("phase %v of %d is followed after %v", p, len(phases), gap)
		}
	}
}

func TestTokensDoNotAllocate(t *testing.T) {
	for name, cfg := range map[string]Config{
		"lock-step": {Costs: Costs{Step: Millisecond}},
		"phased":    {PhasedTPOT: ms},
	} {
		e := must(Deployment{Engine: cfg}.New())
		for i := range 100 {
			if err := e.Submit(0, &Request{Prompt: promptOf(16, sequence(100, uint64(i)<<32)...), Output: 100_000}); err != nil {
				t.Fatal(err)
			}
		}
		events := make([]Event, 0, 10_000)
		now := time.Duration(0)
		events = e.Advance(now, events)
		if n := testing.AllocsPerRun(100, func() {
			now += 10 * ms
			events = e.Advance(now, events[:0])
			if len(events) < 100 {
				t.Fatalf("%d events", len(events))
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations for 1000 tokens", name, n)
		}
	}
}

// A request is served although a step that was due had not been processed when it
// was submitted.
func TestSubmitLate(t *testing.T) {
	for _, async := range []bool{false, true} {
		c := must(Deployment{Engine: Config{Costs: Costs{Sequence: 10 * Millisecond}, AsyncScheduling: async}}.New())
		first := &Request{Prompt: promptOf(16, 1), Output: 5}
		if err := c.Submit(0, first); err != nil {
			t.Fatal(err)
		}
		c.Advance(ms, nil)
		c.Cancel(2*ms, first)
		late := &Request{Prompt: promptOf(16, 2), Output: 5}
		if err := c.Submit(15*ms, late); err != nil { // the step has ended at 10 ms
			t.Fatal(err)
		}
		if events := c.Advance(time.Minute, nil); !late.Ended() {
			t.Errorf("async %v: not served: %v", async, events)
		}
	}
}
