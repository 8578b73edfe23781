package engine

import (
	"slices"
	"time"

	"pgregory.net/rapid"
)

// arrival is a request to submit, and to cancel some time later if it is not finished.
type arrival struct {
	at          time.Duration
	tokens      []uint64
	assumed     int // cached tokens
	output      int
	session     string
	cancelAfter time.Duration // 0: never
}

// machine is an engine or a cluster.
type machine interface {
	Submit(time.Duration, *Request) error
	Cancel(time.Duration, *Request)
	Next() (time.Duration, bool)
	Advance(time.Duration, []Event) []Event
	Stats() Stats
}

// history is the outcome of arrivals.
type history struct {
	requests []*Request // by arrival; nil: refused
	events   []Event
}

// play drives a machine in virtual time until it is idle, and calls look whenever it may
// have begun a step.
func play(t rapid.TB, m machine, blockSize int, arrivals []arrival, look func()) history {
	h := history{requests: make([]*Request, len(arrivals))}
	type cancel struct {
		at time.Duration
		r  *Request
	}
	var cancels []cancel
	now, next := time.Duration(0), 0
	for {
		for ; next < len(arrivals) && arrivals[next].at <= now; next++ {
			a := arrivals[next]
			prompt := promptOf(blockSize, a.tokens...)
			prompt.AssumeCached(a.assumed)
			r := &Request{Prompt: prompt, Output: a.output, Session: a.session, Owner: next}
			if m.Submit(now, r) != nil {
				continue
			}
			h.requests[next] = r
			if a.cancelAfter > 0 {
				cancels = append(cancels, cancel{now + a.cancelAfter, r})
			}
		}
		cancels = slices.DeleteFunc(cancels, func(c cancel) bool {
			if c.at <= now {
				m.Cancel(now, c.r)
			}
			return c.at <= now
		})
		at, ok := m.Next()
		look()
		if next < len(arrivals) && (!ok || arrivals[next].at < at) {
			at, ok = arrivals[next].at, true
		}
		for _, c := range cancels {
			if !ok || c.at < at {
				at, ok = c.at, true
			}
		}
		if !ok {
			return h
		}
		if at < now {
			t.Fatalf("time goes back from %v to %v", now, at)
		}
		now = at
		h.events = m.Advance(now, h.events)
	}
}

func promptOf(blockSize int, tokens ...uint64) *Prompt {
	p := NewPrompt(blockSize)
	for _, token := range tokens {
		p.AddToken(token)
	}
	return p
}

func sequence(n int, first uint64) []uint64 {
	tokens := make([]uint64, n)
	for i := range tokens {
		tokens[i] = first + uint64(i)
	}
	return tokens
}

// anyConfig draws an engine small enough to be always short of room.
func anyConfig(t *rapid.T) Config {
	unit := rapid.SampledFrom([]Cost{Nanosecond, 370 * Picosecond}).Draw(t, "unit of costs")
	cost := func(name string, most int) Cost {
		return unit * Cost(rapid.IntRange(0, most).Draw(t, name))
	}
	cfg := Config{
		Costs: Costs{
			Step: cost("step cost", 9), PrefillToken: cost("prefill cost", 3),
			Sequence: cost("sequence cost", 3), ContextToken: cost("context cost", 2),
		},
		MaxSeqs:     rapid.IntRange(1, 6).Draw(t, "max seqs"),
		BlockSize:   rapid.IntRange(1, 4).Draw(t, "block size"),
		KVBlocks:    rapid.IntRange(4, 24).Draw(t, "KV blocks"),
		MaxModelLen: rapid.IntRange(20, 60).Draw(t, "max model len"),
	}
	if rapid.Bool().Draw(t, "other costs") {
		cfg.Costs.PrefillStep, cfg.Costs.Attention = cost("prefill step cost", 9), cost("attention cost", 1)
		entry := BatchCost{}
		for range rapid.IntRange(0, 3).Draw(t, "decode entries") {
			entry.Sequences += rapid.IntRange(1, 3).Draw(t, "sequences")
			entry.Cost += cost("decode cost", 9)
			cfg.Costs.Decode = append(cfg.Costs.Decode, entry)
		}
	}
	cfg.NoPrefixCache = rapid.IntRange(0, 5).Draw(t, "prefix cache") == 5
	cfg.MaxBatchedTokens = cfg.MaxSeqs + rapid.IntRange(0, 12).Draw(t, "batched tokens beyond seqs")
	cfg.AsyncScheduling = rapid.Bool().Draw(t, "async scheduling")
	return cfg
}

func anyArrivals(t *rapid.T, cancels bool) []arrival {
	var arrivals []arrival
	now := time.Duration(0)
	for range rapid.IntRange(1, 25).Draw(t, "requests") {
		now += time.Duration(rapid.IntRange(0, 20).Draw(t, "gap"))
		a := arrival{
			at:      now,
			tokens:  rapid.SliceOfN(rapid.Uint64Range(0, 1), 1, 24).Draw(t, "tokens"),
			output:  rapid.IntRange(1, 20).Draw(t, "output"),
			session: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "session"),
		}
		if rapid.IntRange(0, 5).Draw(t, "assumes") == 5 {
			a.assumed = rapid.IntRange(0, 30).Draw(t, "assumed cached tokens")
		}
		if cancels && rapid.IntRange(0, 3).Draw(t, "cancels") == 0 {
			a.cancelAfter = time.Duration(rapid.IntRange(1, 200).Draw(t, "cancel after"))
		}
		arrivals = append(arrivals, a)
	}
	return arrivals
}

// checkAnswers compares the events with the requests.
func checkAnswers(t rapid.TB, arrivals []arrival, h history) {
	type answer struct {
		tokens, finished int
		last             time.Duration
	}
	answers := make(map[*Request]*answer)
	for i, r := range h.requests {
		if r != nil {
			answers[r] = &answer{last: arrivals[i].at}
		}
	}
	now := time.Duration(0)
	for _, e := range h.events {
		if e.At < now {
			t.Fatalf("an event at %v after one at %v", e.At, now)
		}
		now = e.At
		a := answers[e.Request]
		if e.At < a.last || a.finished > 0 {
			t.Fatalf("request %d: %v at %v, after %v, finished %d times", e.Request.Owner, e.Kind, e.At, a.last, a.finished)
		}
		a.last = e.At
		switch e.Kind {
		case First, Token:
			if (e.Kind == First) != (a.tokens == 0) {
				t.Fatalf("request %d: token %d is reported as %v", e.Request.Owner, a.tokens, e.Kind)
			}
			a.tokens++
		case Finished:
			a.finished++
		case Preempted:
		default:
			t.Fatalf("request %d: %v", e.Request.Owner, e.Kind)
		}
	}
	for i, r := range h.requests {
		if r == nil {
			continue
		}
		a, asked := answers[r], arrivals[i]
		if asked.cancelAfter == 0 && (a.tokens != asked.output || a.finished != 1) {
			t.Fatalf("request %d: %d tokens of %d, finished %d times", i, a.tokens, asked.output, a.finished)
		}
		if a.tokens > asked.output || a.finished == 1 && a.tokens != asked.output || !r.Ended() {
			t.Fatalf("request %d: %d tokens of %d, finished %d times, ended %v", i, a.tokens, asked.output, a.finished, r.Ended())
		}
	}
}

// checkCounts recounts what an engine counts.
func checkCounts(t rapid.TB, e *rank) {
	all := slices.Concat(e.running, e.queue.items[e.queue.head:])
	decoding := 0
	for _, token := range e.engine.phased.items[e.engine.phased.head:] {
		if token.r.rank == e {
			all = append(all, token.r)
			decoding++
		}
	}
	backlog, batched, used := 0, 0, 0
	users := make(map[*run]int)
	for _, r := range all {
		backlog += r.backlog
		batched += r.scheduled
		used += r.others
		chained := 0
		for at := r.chain; at != nil; at = at.parent {
			users[at]++
			chained += len(at.hashes)
		}
		if chained != r.chained || r.others < 0 || r.state == running && r.computed > r.room || r.room != (r.chained+r.others)*e.cfg.BlockSize {
			t.Fatalf("request %d has computed %d tokens, has %d blocks cached, counts %d, and %d others", r.Owner, r.computed, chained, r.chained, r.others)
		}
		if e.engine.stepping && r.state == running && r.scheduled < 1 {
			t.Fatalf("request %d runs without tokens in the current step", r.Owner)
		}
		if r.state == waiting && r.chained+r.others > 0 {
			t.Fatalf("request %d waits and has %d blocks", r.Owner, r.chained+r.others)
		}
	}
	stale := 0
	for first, r := range e.kv.runs {
		if r.hashes[0] != first {
			t.Fatal("a run is found by a hash that it does not begin with")
		}
		if r.users != users[r] {
			t.Fatalf("a run of %d blocks has %d users, counts %d", len(r.hashes), users[r], r.users)
		}
		if r.users == 0 {
			stale += len(r.hashes)
		} else {
			used += len(r.hashes)
		}
		if p := r.parent; p != nil && r.users > 0 && p.users == 0 {
			t.Fatal("a run is used and its parent is not")
		}
	}
	if stale != e.kv.stale || e.kv.free != e.cfg.KVBlocks-used || stale > e.kv.free {
		t.Fatalf("%d of %d blocks are used and %d free ones are cached; it counts %d free and %d", used, e.cfg.KVBlocks, stale, e.kv.free, e.kv.stale)
	}
	if len(e.running)+decoding > e.cfg.MaxSeqs || decoding != e.phased || batched > e.cfg.MaxBatchedTokens || backlog != e.backlog || e.backlog < 0 {
		t.Fatalf("%d running, %d tokens in a step, backlog %d, counts %d", len(e.running), batched, backlog, e.backlog)
	}
}

// checkIdle checks that an engine has nothing left of any request.
func checkIdle(t rapid.TB, e *rank) {
	checkCounts(t, e)
	if s := e.state(0); s.KVUsed != 0 || s.Running != 0 || s.Waiting != 0 || e.backlog != 0 || e.inFlight() != 0 {
		t.Fatalf("idle with %+v, backlog %d, in flight %d", s, e.backlog, e.inFlight())
	}
}
