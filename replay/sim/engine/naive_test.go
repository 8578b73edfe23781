package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"moontide/trace/routing"
)

// A second implementation of deployments, straight from the package comment and slow:
// every block is an object, every list is searched, and every engine is polled at each
// time.

// naiveBlock is a cached block.
type naiveBlock struct {
	users int
	freed int // the count of releases when it was last let go
}

type naiveRequest struct {
	row, output, until int
	tokens             []uint64
	session            string
	// The blocks that it uses: known ones by what they and all before them
	// hold, and others.
	known     []string
	others    int
	computed  int
	goal      int // of computed, before it generates
	inStep    int
	generated int
	cached    int
	seen      bool // admitted before
	moved     bool // its prompt was computed by another engine
	owes      int
	over      bool
	at        *naiveEngine
}

type naiveEngine struct {
	Config
	queue    []*naiveRequest
	running  []*naiveRequest
	holding  []*naiveRequest
	blocks   map[string]*naiveBlock
	inUse    int
	releases int
	busy     bool
	end      time.Duration
	// Whether anything has changed since it last found nothing that it can do.
	changed bool
	sent    int // tokens of prompts, for prefix routing
}

type naiveTransfer struct {
	until time.Duration
	r     *naiveRequest
}

type naiveCluster struct {
	Deployment
	front, decode []*naiveEngine
	transfers     []naiveTransfer
	turn          int
	random        *rand.Rand
	lines         []string
}

func newNaive(d Deployment) *naiveCluster {
	c := &naiveCluster{Deployment: d, random: rand.New(rand.NewPCG(d.Seed, 0x726f75746572))}
	pool := func(n int) []*naiveEngine {
		var engines []*naiveEngine
		for range n {
			engines = append(engines, &naiveEngine{Config: d.Engine, blocks: map[string]*naiveBlock{}})
		}
		return engines
	}
	c.front, c.decode = pool(max(d.Engines, 1)), nil
	if d.Prefill > 0 {
		c.front, c.decode = pool(d.Prefill), pool(d.Decode)
	}
	return c
}

func (c *naiveCluster) eventLines(at time.Duration, r *naiveRequest, what string) {
	c.lines = append(c.lines, fmt.Sprintf("%v: %d %s", at, r.row, what))
}

func (e *naiveEngine) load() int { return len(e.queue) + len(e.running) + len(e.holding) }

func (e *naiveEngine) toCompute() (tokens int) {
	for _, r := range slices.Concat(e.queue, e.running, e.holding) {
		tokens += r.owes
	}
	return tokens
}

// contents returns the full blocks of the known tokens of a prompt.
func (e *naiveEngine) contents(r *naiveRequest) (all []string) {
	for k := e.BlockSize; k <= len(r.tokens); k += e.BlockSize {
		all = append(all, fmt.Sprint(r.tokens[:k]))
	}
	return all
}

func (e *naiveEngine) hits(r *naiveRequest) (n int) {
	for _, b := range e.contents(r) {
		if e.blocks[b] == nil {
			break
		}
		n++
	}
	return n
}

func (e *naiveEngine) cachedAndFree() (n int) {
	for _, b := range e.blocks {
		if b.users == 0 {
			n++
		}
	}
	return n
}

// take uses n more blocks, evicting the cached ones that were freed first.
func (e *naiveEngine) take(n int) {
	e.inUse += n
	for e.inUse+e.cachedAndFree() > e.KVBlocks {
		oldest := ""
		for content, b := range e.blocks {
			if b.users == 0 && (oldest == "" || b.freed < e.blocks[oldest].freed) {
				oldest = content
			}
		}
		delete(e.blocks, oldest)
	}
}

func (e *naiveEngine) use(r *naiveRequest, content string) {
	b := e.blocks[content]
	if b.users == 0 {
		e.inUse++
	}
	b.users++
	r.known = append(r.known, content)
}

func (e *naiveEngine) letGo(r *naiveRequest) {
	e.inUse -= r.others
	r.others = 0
	for len(r.known) > 0 {
		last := len(r.known) - 1
		b := e.blocks[r.known[last]]
		r.known = r.known[:last]
		e.releases++
		b.users--
		b.freed = e.releases
		if b.users == 0 {
			e.inUse--
		}
	}
}

func (e *naiveEngine) missing(r *naiveRequest, tokens int) int {
	n := 0
	for (len(r.known)+r.others+n)*e.BlockSize < tokens {
		n++
	}
	return n
}

// schedule adds n tokens of a request to the current step.
func (e *naiveEngine) schedule(r *naiveRequest, n int) {
	r.inStep = n
	more := e.missing(r, r.computed+n)
	e.take(more)
	r.others += more
	contents := e.contents(r)
	for len(r.known) < len(contents) && (len(r.known)+1)*e.BlockSize <= r.computed+n {
		content := contents[len(r.known)]
		r.others--
		e.inUse--
		if e.blocks[content] == nil {
			e.blocks[content] = &naiveBlock{}
		}
		e.use(r, content)
	}
}

func (c *naiveCluster) begin(e *naiveEngine, now time.Duration) {
	budget, took, lost := e.MaxBatchedTokens, e.Costs.Step, false
	add := func(r *naiveRequest, n int) {
		budget -= n
		if r.computed < r.goal {
			took += Cost(n) * e.Costs.PrefillToken
		} else {
			took += e.Costs.Sequence + Cost(r.computed+n)*e.Costs.ContextToken
		}
		e.schedule(r, n)
		e.busy = true
	}
	for i := 0; i < len(e.running); i++ {
		r, n := e.running[i], 1
		if r.computed < r.goal {
			n = min(r.goal-r.computed, budget)
		}
		for i < len(e.running) && e.missing(r, r.computed+n) > e.KVBlocks-e.inUse {
			last := e.running[len(e.running)-1]
			e.running = e.running[:len(e.running)-1]
			e.letGo(last)
			last.computed, last.goal, last.inStep = 0, 0, 0
			last.owes = len(last.tokens) + last.generated
			e.queue = slices.Insert(e.queue, 0, last)
			c.eventLines(now, last, "preempted")
			lost = true
		}
		if i < len(e.running) {
			add(r, n)
		}
	}
	for !lost && budget > 0 && len(e.queue) > 0 && len(e.running) < e.MaxSeqs {
		r := e.queue[0]
		hits, known := e.hits(r), len(r.tokens)+r.generated
		r.goal = known
		from := min(hits*e.BlockSize, (known-1)/e.BlockSize*e.BlockSize)
		if r.moved && r.computed > 0 {
			from, r.goal = len(r.tokens), len(r.tokens)
		}
		n := min(known-from, budget)
		need := 0
		for (hits+need)*e.BlockSize < from+n {
			need++
		}
		for _, content := range e.contents(r)[:hits] {
			if e.blocks[content].users == 0 {
				need++
			}
		}
		if need > e.KVBlocks-e.inUse {
			break
		}
		e.queue = e.queue[1:]
		for _, content := range e.contents(r)[:hits] {
			e.use(r, content)
		}
		r.computed = from
		if r.owes = r.goal - from; !r.seen {
			r.seen, r.cached = true, from
		}
		e.running = append(e.running, r)
		add(r, n)
	}
	e.end, e.changed = now+took.Duration(), e.busy
}

// finish ends a step.
func (c *naiveCluster) finish(e *naiveEngine) {
	e.busy = false
	for _, r := range slices.Clone(e.running) {
		n := r.inStep
		r.inStep = 0
		if n == 0 {
			continue
		}
		decoding := r.computed >= r.goal
		r.computed += n
		if !decoding {
			r.owes = r.goal - r.computed
		}
		if r.computed < r.goal {
			continue
		}
		kind := "token"
		if r.generated == 0 {
			kind = "first"
		}
		r.generated++
		c.eventLines(e.end, r, kind)
		if r.generated < r.until {
			continue
		}
		e.running = slices.DeleteFunc(e.running, func(o *naiveRequest) bool { return o == r })
		if r.until < r.output {
			e.holding = append(e.holding, r)
			c.transfers = append(c.transfers, naiveTransfer{e.end + c.Transfer.Base + time.Duration(len(r.tokens))*c.Transfer.PerToken.Duration(), r})
			continue
		}
		e.letGo(r)
		r.over = true
		c.eventLines(e.end, r, "finished")
	}
}

// arrive ends a transfer.
func (c *naiveCluster) arrive(t naiveTransfer) {
	r := t.r
	r.at.drop(r)
	r.moved, r.computed, r.until, r.owes = true, len(r.tokens), r.output, 0
	best := c.decode[0]
	for _, e := range c.decode {
		if e.load() < best.load() || e.load() == best.load() && e.toCompute() < best.toCompute() {
			best = e
		}
	}
	best.add(r)
}

// drop removes a request, wherever it is.
func (e *naiveEngine) drop(r *naiveRequest) {
	is := func(o *naiveRequest) bool { return o == r }
	e.queue, e.running, e.holding = slices.DeleteFunc(e.queue, is), slices.DeleteFunc(e.running, is), slices.DeleteFunc(e.holding, is)
	e.letGo(r)
	e.changed = true
}

// add gives an engine a request.
func (e *naiveEngine) add(r *naiveRequest) {
	r.at = e
	e.queue = append(e.queue, r)
	e.changed = true
}

func (c *naiveCluster) submit(row int, a arrival) *naiveRequest {
	r := &naiveRequest{row: row, output: a.output, until: a.output, tokens: a.tokens, session: a.session}
	all, room := len(a.tokens)+a.output, c.Engine.KVBlocks*c.Engine.BlockSize
	if all > c.Engine.MaxModelLen || all-1 > room {
		return nil
	}
	if c.decode != nil {
		r.until = 1
	}
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
	case c.Routing == routing.Session && a.session != "":
		e = c.front[xxhash.Sum64String(a.session)%uint64(len(c.front))]
	default:
		inTurn()
	}
	r.owes = len(r.tokens) - e.hits(r)*e.BlockSize
	e.add(r)
	return r
}

// playNaively plays arrivals like play. At each time, steps and transfers end
// first, then requests arrive or are cancelled, and then steps begin.
func playNaively(d Deployment, arrivals []arrival) []string {
	c := newNaive(d)
	requests := make([]*naiveRequest, len(arrivals))
	engines := slices.Concat(c.front, c.decode)
	now, submitted := time.Duration(0), 0
	for {
		for ended := true; ended; {
			ended = false
			for _, e := range engines {
				if e.busy && e.end <= now {
					c.finish(e)
					ended = true
				}
			}
			slices.SortStableFunc(c.transfers, func(a, b naiveTransfer) int { return int(a.until - b.until) })
			for len(c.transfers) > 0 && c.transfers[0].until <= now {
				t := c.transfers[0]
				c.transfers = c.transfers[1:]
				c.arrive(t)
				ended = true
			}
		}
		for ; submitted < len(arrivals) && arrivals[submitted].at <= now; submitted++ {
			requests[submitted] = c.submit(submitted, arrivals[submitted])
		}
		for i, r := range requests {
			if a := arrivals[i]; r != nil && !r.over && a.cancelAfter > 0 && a.at+a.cancelAfter <= now {
				r.at.drop(r)
				r.over = true
				c.transfers = slices.DeleteFunc(c.transfers, func(t naiveTransfer) bool { return t.r == r })
			}
		}
		for _, e := range engines {
			if !e.busy && e.changed {
				c.begin(e, now)
			}
		}
		next := time.Duration(-1)
		consider := func(at time.Duration) {
			if next < 0 || at < next {
				next = at
			}
		}
		for _, e := range engines {
			if e.busy {
				consider(e.end)
			}
		}
		for _, t := range c.transfers {
			consider(t.until)
		}
		if submitted < len(arrivals) {
			consider(arrivals[submitted].at)
		}
		for i, r := range requests {
			if r != nil && !r.over && arrivals[i].cancelAfter > 0 {
				consider(arrivals[i].at + arrivals[i].cancelAfter)
			}
		}
		if next < 0 {
			break
		}
		now = next
	}
	for i, r := range requests {
		if r != nil {
			c.lines = append(c.lines, fmt.Sprintf("%d: %d cached", i, r.cached))
		}
	}
	return c.lines
}

// All tokens and preemptions come at the same times as in the naive deployment, and as
// many tokens of each prompt are cached.
func TestDeploymentEqualsNaiveOne(t *testing.T) {
	saw := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		d, arrivals := anyDeployment(t), anyArrivals(t, true)
		d.Engine.PhasedTPOT = 0
		c, err := d.New()
		if err != nil {
			t.Fatal(err)
		}
		got, want := eventLines(play(t, c, c.BlockSize(), arrivals, func() {})), playNaively(d, arrivals)
		// What happens at one time in several engines has no order.
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v\n%s\nnaively:\n%s", d, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, line := range got {
			if strings.HasSuffix(line, "preempted") {
				saw["preempted"]++
			}
			if strings.HasSuffix(line, "cached") && !strings.HasSuffix(line, ": 0 cached") {
				saw["cached"]++
			}
		}
	})
	if !t.Failed() && !testing.Short() && (saw["preempted"] == 0 || saw["cached"] == 0) { // few draws may have none
		t.Errorf("the draws covered too little: %v", saw)
	}
}
