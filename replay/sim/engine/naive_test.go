package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/trace/routing"
)

// A second implementation of deployments, straight from the package comment and slow:
// every block is an object, every list is searched, every engine is polled at each time,
// and links send a nanosecond at a time.

type naiveCluster struct {
	Deployment
	workers       []*naiveWorker
	front, decode []*naiveEngine // the first ranks of all workers before the second
	coming        []*naiveRequest
	turn          int
	random        *rand.Rand
	lines         []string
	saw           map[string]int
}

func newNaive(d Deployment, saw map[string]int) *naiveCluster {
	c := &naiveCluster{Deployment: d, random: rand.New(rand.NewPCG(d.Seed, 0x726f75746572)), saw: saw}
	pool := func(cfg Config, n int) []*naiveEngine {
		var workers []*naiveWorker
		for range n {
			workers = append(workers, &naiveWorker{Config: cfg})
		}
		var ranks []*naiveEngine
		for range max(cfg.Ranks, 1) {
			for _, w := range workers {
				e := &naiveEngine{Config: cfg, blocks: map[string]*naiveBlock{}}
				w.ranks, ranks = append(w.ranks, e), append(ranks, e)
			}
		}
		c.workers = append(c.workers, workers...)
		return ranks
	}
	if d.Prefill == 0 {
		c.front = pool(d.Engine, max(d.Engines, 1))
		return c
	}
	c.front = pool(d.Engine, d.Prefill)
	if d.DecodeEngine == nil {
		d.DecodeEngine = &d.Engine
	}
	c.decode = pool(*d.DecodeEngine, d.Decode)
	return c
}

func (c *naiveCluster) eventLines(at time.Duration, r *naiveRequest, what string) {
	c.lines = append(c.lines, fmt.Sprintf("%v: %d %s", at, r.row, what))
}

// submit returns nil for a request that can never be served.
func (c *naiveCluster) submit(row int, a arrival) *naiveRequest {
	r := &naiveRequest{row: row, output: a.output, until: a.output, tokens: a.tokens, assumed: min(a.assumed, len(a.tokens)-1), session: a.session}
	fits := func(e *naiveEngine, output int) bool {
		all := len(a.tokens) + output
		return all <= e.MaxModelLen && all-1 <= e.KVBlocks*e.BlockSize
	}
	if c.decode != nil {
		r.until = 1
		if !fits(c.decode[0], a.output) {
			return nil
		}
	}
	if !fits(c.front[0], r.until) {
		return nil
	}
	r.reaches = a.at + c.Latency
	c.coming = append(c.coming, r)
	return r
}

// route gives a request to an engine.
func (c *naiveCluster) route(now time.Duration, r *naiveRequest) {
	e := c.front[0]
	inTurn := func() {
		e = c.front[c.turn%len(c.front)]
		c.turn++
	}
	weigh := func(weight func(*naiveEngine) int) {
		for _, other := range c.front {
			if weight(other) < weight(e) {
				e = other
			}
		}
	}
	switch {
	case len(c.front) == 1:
	case c.Routing == routing.Random:
		e = c.front[c.random.IntN(len(c.front))]
	case c.Routing == routing.LeastLoaded:
		weigh(func(e *naiveEngine) int { return e.load()<<30 + e.toCompute() })
	case c.Routing == routing.Prefix:
		weigh(func(e *naiveEngine) int { return (e.toCompute()-e.hits(r)*e.BlockSize+200*e.load())<<30 + e.sent })
		e.sent += len(r.tokens)
	case c.Routing == routing.Session && r.session != "":
		e = c.front[xxhash.Sum64String(r.session)%uint64(len(c.front))]
	default:
		inTurn()
	}
	r.owes = len(r.tokens) - max(r.assumed, e.hits(r)*e.BlockSize)
	e.add(now, r)
}

// reached routes the requests that have reached the router.
func (c *naiveCluster) reached(now time.Duration) {
	for len(c.coming) > 0 && c.coming[0].reaches <= now {
		c.route(now, c.coming[0])
		c.coming = c.coming[1:]
	}
}

// cancel ends a request, wherever it is.
func (c *naiveCluster) cancel(now time.Duration, r *naiveRequest) {
	r.over = true
	if r.at == nil {
		c.coming = slices.DeleteFunc(c.coming, func(o *naiveRequest) bool { return o == r })
		c.saw["cancelled before the router"]++
		return
	}
	if len(r.at.link.active) > 1 {
		c.saw["cancelled on a shared link"]++
	}
	r.at.drop(r)
}

// playNaively plays arrivals like play. At each time, steps, transfers and latencies end
// first, then requests are submitted or cancelled, and then steps begin.
func playNaively(d Deployment, arrivals []arrival, saw map[string]int) []string {
	c := newNaive(d, saw)
	requests := make([]*naiveRequest, len(arrivals))
	now, submitted := time.Duration(0), 0
	for now >= 0 {
		for _, w := range c.workers {
			if w.busy && w.end <= now {
				w.busy = false
				for _, e := range w.ranks {
					c.finish(e, now)
				}
			}
		}
		c.arrivals(now)
		c.reached(now)
		for ; submitted < len(arrivals) && arrivals[submitted].at <= now; submitted++ {
			requests[submitted] = c.submit(submitted, arrivals[submitted])
			if c.Latency == 0 {
				c.reached(now)
			}
		}
		for i, r := range requests {
			if a := arrivals[i]; r != nil && !r.over && a.cancelAfter > 0 && a.at+a.cancelAfter <= now {
				c.cancel(now, r)
			}
		}
		for _, w := range c.workers {
			if !w.busy {
				c.begin(w, now)
			}
		}
		now = c.wait(now, c.next(arrivals, requests, submitted))
	}
	for i, r := range requests {
		if r != nil {
			c.lines = append(c.lines, fmt.Sprintf("%d: %d cached", i, r.cached))
		}
	}
	return c.lines
}

// next returns the time of the next event that no link causes, below 0 if there is none.
func (c *naiveCluster) next(arrivals []arrival, requests []*naiveRequest, submitted int) time.Duration {
	next := time.Duration(-1)
	consider := func(at time.Duration) {
		if next < 0 || at < next {
			next = at
		}
	}
	for _, w := range c.workers {
		if w.busy {
			consider(w.end)
		}
	}
	for _, r := range c.coming {
		consider(r.reaches)
	}
	if submitted < len(arrivals) {
		consider(arrivals[submitted].at)
	}
	for i, r := range requests {
		if r != nil && !r.over && arrivals[i].cancelAfter > 0 {
			consider(arrivals[i].at + arrivals[i].cancelAfter)
		}
	}
	return next
}

// All tokens and preemptions come at the same times as in the naive deployment, and as
// many tokens of each prompt are cached.
func TestDeploymentEqualsNaiveOne(t *testing.T) {
	saw := map[string]int{}
	check := func(t *rapid.T) {
		d, arrivals := anyDeployment(t), anyArrivals(t, true)
		d.Engine.PhasedTPOT = 0
		c := must(d.New())
		got, want := eventLines(play(t, c, c.BlockSize(), arrivals, func() {})), playNaively(d, arrivals, saw)
		// What happens at one time in several engines has no order.
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v, - naively:\n%s", d, cmp.Diff(want, got))
		}
		for _, line := range got {
			if strings.HasSuffix(line, "preempted") {
				saw["preempted"]++
			}
			if strings.HasSuffix(line, "cached") && !strings.HasSuffix(line, ": 0 cached") {
				saw["cached"]++
			}
		}
	}
	rapid.Check(t, check)
	if t.Failed() || testing.Short() { // few draws may have none
		return
	}
	for range 9 { // the rarer mechanisms
		rapid.Check(t, check)
	}
	for _, mechanism := range []string{
		"preempted", "cached", "ranks wait", "late for a step scheduled ahead", "mixed step", "decode table", "attention", "below a nanosecond",
		"first token after", "cancelled before the router", "cancelled on a shared link",
		"transfers share: ", "transfers share: batch",
	} {
		if saw[mechanism] == 0 {
			t.Errorf("no draw covers %q: %v", mechanism, saw)
		}
	}
}
