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
			prompt.cached = max(0, min(a.assumed, prompt.Len()-1))
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

// must returns a deployment that is valid.
func must(c *Cluster, err error) *Cluster {
	if err != nil {
		panic(err)
	}
	return c
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

// checkIdle checks that a cluster has nothing left of any request.
func checkIdle(t rapid.TB, c *Cluster) {
	if c.arriving.len() != 0 {
		t.Fatal("requests before the router are left")
	}
	for _, e := range c.ranks() {
		if s := e.state(0); s.KVUsed != 0 || s.Running != 0 || s.Waiting != 0 || e.backlog != 0 || e.inFlight() != 0 || len(e.link.active) != 0 {
			t.Fatalf("idle with %+v, backlog %d, in flight %d", s, e.backlog, e.inFlight())
		}
	}
}

func (c *Cluster) ranks() []*rank {
	all := c.front.ranks
	if c.decode != nil {
		all = slices.Concat(all, c.decode.ranks)
	}
	return all
}
