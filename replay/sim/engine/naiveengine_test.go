package engine

import (
	"fmt"
	"slices"
	"time"
)

// naiveBlock is a cached block.
type naiveBlock struct {
	users int
	freed int // the count of releases when it was last let go
}

type naiveRequest struct {
	row, output, until int
	tokens             []uint64
	assumed            int // cached tokens, by the caller
	session            string
	reaches            time.Duration // the router
	queued             time.Duration // on its engine
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

// naiveWorker is an engine: ranks that step together.
type naiveWorker struct {
	Config
	ranks []*naiveEngine
	busy  bool
	began time.Duration
	end   time.Duration
	rest  Cost // of the steps so far, below a nanosecond
}

// naiveEngine is a rank.
type naiveEngine struct {
	Config
	queue    []*naiveRequest
	running  []*naiveRequest
	holding  []*naiveRequest
	blocks   map[string]*naiveBlock
	inUse    int
	releases int
	// Whether anything has changed since it last found nothing that it can do.
	changed bool
	sent    int // tokens of prompts, for prefix routing
	link    naiveLink
}

func (e *naiveEngine) load() int { return len(e.queue) + len(e.running) + len(e.holding) }

func (e *naiveEngine) toCompute() (tokens int) {
	for _, r := range slices.Concat(e.queue, e.running, e.holding) {
		tokens += r.owes
	}
	return tokens
}

// contents returns the full blocks of the known tokens of a prompt that can be found.
func (e *naiveEngine) contents(r *naiveRequest) (all []string) {
	if e.NoPrefixCache || r.assumed > 0 {
		return nil
	}
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

// place adds n tokens of a request to the current step.
func (e *naiveEngine) place(r *naiveRequest, n int) {
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

// naiveWork is what a rank computes in a step.
type naiveWork struct{ prompt, pairs, decoding, context int }

// cost adds up the parts of a step.
func (w naiveWork) cost(c Costs) Cost {
	cost := c.Step + Cost(w.context)*c.ContextToken
	if w.prompt > 0 {
		cost += c.PrefillStep + Cost(w.prompt)*c.PrefillToken + Cost(w.pairs)*c.Attention
	}
	knots := slices.Concat([]BatchCost{{}}, c.Decode)
	for i, to := range knots {
		if i == 0 || to.Sequences < w.decoding && i < len(knots)-1 {
			continue
		}
		from := knots[i-1]
		if to.Sequences == w.decoding {
			return cost + to.Cost
		}
		return cost + from.Cost + Cost(w.decoding-from.Sequences)*((to.Cost-from.Cost)/Cost(to.Sequences-from.Sequences))
	}
	return cost + Cost(w.decoding)*c.Sequence
}

// begin begins a step of all ranks that can do something, as long as the slowest needs.
func (c *naiveCluster) begin(w *naiveWorker, now time.Duration) {
	if ahead := w.began; w.AsyncScheduling && w.end == now {
		c.beginWith(w, now, ahead)
	}
	if !w.busy {
		c.beginWith(w, now, now)
	}
}

// beginWith is begin for requests that were queued until a time.
func (c *naiveCluster) beginWith(w *naiveWorker, now, until time.Duration) {
	var slowest Cost
	working := 0
	for _, e := range w.ranks {
		if !e.changed {
			continue
		}
		work, late := c.schedule(e, now, until)
		if late {
			c.saw["late for a step scheduled ahead"]++
		}
		if e.changed = late || work != (naiveWork{}); work == (naiveWork{}) {
			continue
		}
		w.busy = true
		if cost := work.cost(w.Costs); working > 0 && cost != slowest {
			c.saw["ranks wait"]++
			slowest = max(slowest, cost)
		} else {
			slowest = cost
		}
		working++
		if work.prompt > 0 && work.decoding > 0 {
			c.saw["mixed step"]++
		}
		if work.decoding > 1 && len(w.Costs.Decode) > 0 {
			c.saw["decode table"]++
		}
		if work.pairs > 0 && w.Costs.Attention > 0 {
			c.saw["attention"]++
		}
	}
	if !w.busy {
		return
	}
	if w.rest > 0 {
		c.saw["below a nanosecond"]++
	}
	w.began = now
	spent := slowest + w.rest
	w.end, w.rest = now+spent.Duration(), spent%Nanosecond
}

// schedule schedules a rank's part of a step: one token of each sequence or what is left
// of its prompt, and then the prompts that wait.
func (c *naiveCluster) schedule(e *naiveEngine, now, until time.Duration) (work naiveWork, late bool) {
	budget := e.MaxBatchedTokens
	add := func(r *naiveRequest, n int) {
		budget -= n
		if r.computed < r.goal {
			work.prompt += n
			for k := range n {
				work.pairs += r.computed + k
			}
		} else {
			work.decoding++
			work.context += r.computed + n
		}
		e.place(r, n)
	}
	lost := false
	for i := 0; i < len(e.running); i++ {
		r, n := e.running[i], 1
		if r.computed < r.goal {
			n = min(r.goal-r.computed, budget)
		}
		for i < len(e.running) && e.missing(r, r.computed+n) > e.KVBlocks-e.inUse {
			last := e.running[len(e.running)-1]
			e.preempt(last)
			c.eventLines(now, last, "preempted")
			lost = true
		}
		if i < len(e.running) {
			add(r, n)
		}
	}
	for !lost && budget > 0 && len(e.queue) > 0 && len(e.running) < e.MaxSeqs {
		r := e.queue[0]
		if r.queued > until {
			return work, true
		}
		n := e.admit(r, budget)
		if n == 0 {
			break
		}
		add(r, n)
	}
	return work, false
}

func (e *naiveEngine) preempt(last *naiveRequest) {
	e.running = e.running[:len(e.running)-1]
	e.letGo(last)
	last.computed, last.goal, last.inStep = 0, 0, 0
	last.owes = len(last.tokens) + last.generated
	e.queue = slices.Insert(e.queue, 0, last)
}

// admit lets the first request of the queue run and returns how many of its tokens the
// step computes; none if it lacks blocks.
func (e *naiveEngine) admit(r *naiveRequest, budget int) int {
	hits, known := e.hits(r), len(r.tokens)+r.generated
	r.goal = known
	from := max(r.assumed, min(hits*e.BlockSize, (known-1)/e.BlockSize*e.BlockSize))
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
		return 0
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
	return n
}

// finish ends a step of a rank.
func (c *naiveCluster) finish(e *naiveEngine, now time.Duration) {
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
		moves := r.generated == r.until && r.until < r.output
		if !moves || !c.Transfer.FirstTokenAfter {
			c.eventLines(now, r, kind)
		}
		if r.generated < r.until {
			continue
		}
		e.running = slices.DeleteFunc(e.running, func(o *naiveRequest) bool { return o == r })
		if moves {
			e.holding = append(e.holding, r)
			need := c.Transfer.Base + (Cost(len(r.tokens)) * c.Transfer.PerToken).Duration()
			e.link.active = append(e.link.active, &naiveTransfer{r, now, need})
			if len(e.link.active) > 1 {
				c.saw["transfers share: "+string(c.Transfer.Sharing)]++
			}
			continue
		}
		e.letGo(r)
		r.over = true
		c.eventLines(now, r, "finished")
	}
}

// drop removes a request, wherever it is.
func (e *naiveEngine) drop(r *naiveRequest) {
	is := func(o *naiveRequest) bool { return o == r }
	e.queue, e.running, e.holding = slices.DeleteFunc(e.queue, is), slices.DeleteFunc(e.running, is), slices.DeleteFunc(e.holding, is)
	e.link.remove(r)
	e.letGo(r)
	e.changed = true
}

// add gives an engine a request.
func (e *naiveEngine) add(now time.Duration, r *naiveRequest) {
	r.at, r.queued = e, now
	e.queue = append(e.queue, r)
	e.changed = true
}
