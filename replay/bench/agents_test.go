package bench_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/openai"
	"moontide/replay/prompt"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/trace"
)

// Agents with sub-agents, of any graph, whose contexts grow, are compacted and
// rewritten: over HTTP and in virtual time, with live answers and without, every
// request has as many cached tokens as a naive model says, and as the run predicts.
func TestCachedTokensOfAgents(t *testing.T) {
	sessions := 200
	if os.Getenv("MOONTIDE_MANY_AGENTS") != "" {
		sessions = 10_000
	}
	const shards = 4 // each with a server of its own
	// Block sizes of the trace and of the server:
	for shard, sizes := range [shards][2]int{{8, 4}, {5, 3}, {4, 16}, {16, 5}} {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("blocks=%d,%d/live=%v", sizes[0], sizes[1], live), func(t *testing.T) {
				t.Parallel()
				a := anyAgents(uint64(shard), sessions/shards, sizes[0])
				for _, virtual := range []bool{true, false} {
					a.check(t, sizes[1], live, virtual)
				}
			})
		}
	}
}

// check replays the rows one by one and compares cached tokens.
func (a *agents) check(t *testing.T, serverBlock int, live, virtual bool) {
	t.Helper()
	answers := openai.AnswersFromTrace
	if live {
		answers = openai.LiveAnswers
	}
	engines := engine.Config{BlockSize: serverBlock}
	if virtual { // the order of requests is that of their times
		engines.Costs.Step = engine.Millisecond
	}
	result, err := bench.Run(t.Context(), bench.Config{
		Dir:    filepath.Join(t.TempDir(), "run"),
		Trace:  bench.Trace{Requests: trace.FromSlice(a.rows), BlockSize: a.block},
		Client: openai.Config{Prompt: openai.Tokens, Answers: answers, Source: prompt.Source{Low: 1 << 16, High: 1 << 30}},
		Closed: true, MaxConcurrency: 1, CacheGenerated: true, Virtual: virtual,
		Engines: engine.Deployment{Engine: engines},
	})
	if err != nil {
		t.Fatal(err)
	}
	run, err := runfile.Open(result.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	naive := naiveCache{agents: a, block: serverBlock, live: live, tokens: map[token]int32{}, next: map[[2]int32]int32{}, done: map[int]*conversation{}}
	wrong, cached := 0, 0
	for rec, err := range run.Records() { // in the order in which they ended, and so were sent
		if err != nil {
			t.Fatal(err)
		}
		want := naive.request(rec)
		cached += want
		if rec.Class == replay.OK && rec.Counts.Cached.Value == want && rec.Counts.Input.Value == rec.InputLength && rec.Counts.Output.Value == max(rec.OutputLength, 1) {
			continue
		}
		if wrong++; wrong <= 3 {
			t.Errorf("virtual %v, row %d: %d of %d tokens cached, want %d of %d: class %q %s", virtual, rec.Row, rec.Counts.Cached.Value, rec.Counts.Input.Value, want, rec.InputLength, rec.Class, rec.Error)
		}
	}
	if p := result.Metrics.Cache.Prediction; p.Predicted != cached || p.Equal != len(a.rows) {
		t.Errorf("virtual %v: %d cached tokens predicted, want %d; %d of %d requests as predicted", virtual, p.Predicted, cached, p.Equal, len(a.rows))
	}
	if wrong > 0 || len(naive.done) != len(a.rows) || result.Metrics.Completed != len(a.rows) || cached == 0 {
		t.Errorf("virtual %v: %d of %d requests, %d with other cached tokens, %d cached", virtual, len(naive.done), len(a.rows), wrong, cached)
	}
}

// agents are the rows of sessions.
type agents struct {
	rng     *rand.Rand
	block   int
	rows    []trace.Request
	waits   [][]int // the rows that each waits for
	session int
	ids     uint64          // so far
	prompts map[string]bool // so far
}

// branch is an agent in progress: its last row, and the tokens of its prompt.
type branch struct {
	session string
	first   string // id of the first row
	last    trace.Request
}

// anyAgents returns rows without equal prompts: a simulated server gives them equal
// answers.
func anyAgents(seed uint64, sessions, block int) *agents {
	a := &agents{rng: rand.New(rand.NewPCG(seed, 1)), block: block, prompts: map[string]bool{}}
	for range sessions {
		a.session++
		root := a.begin(fmt.Sprint("s", a.session), nil)
		for range a.rng.IntN(3) {
			switch a.rng.IntN(3) {
			case 0:
				a.delegate(root)
			default:
				a.turn(root, nil)
			}
		}
	}
	return a
}

// begin adds the first row of a branch. All systems have the same first blocks.
func (a *agents) begin(session string, after []string) *branch {
	const system = 2
	isl := 1 + a.rng.IntN((system+3)*a.block)
	ids := []uint64{1, 2}[:min(a.rng.IntN(system+1), (isl-1)/a.block)]
	return a.add(&branch{session: session}, isl, ids, after)
}

// turn adds a row that continues a branch in one of the ways that agents do.
func (a *agents) turn(b *branch, after []string) *branch {
	full := min(b.last.InputLength/a.block, len(b.last.HashIDs))
	isl, keep := b.last.InputLength, full
	switch a.rng.IntN(8) {
	case 0: // compacted
		isl = 1 + a.rng.IntN(isl)
		keep = a.rng.IntN(full + 1)
	case 1: // rewritten
		isl += 1 + a.rng.IntN(3*a.block)
		keep = a.rng.IntN(full + 1)
	case 2: // hardly room for the answer, or none
		isl += 1 + a.rng.IntN(b.last.OutputLength+1)
	default:
		isl += b.last.OutputLength + 1 + a.rng.IntN(3*a.block)
	}
	if a.rng.IntN(2) == 0 && keep == full && isl/a.block > len(b.last.HashIDs) {
		keep = len(b.last.HashIDs) // the last block was not full and goes on
	}
	return a.add(b, isl, b.last.HashIDs[:min(keep, isl/a.block)], after)
}

// delegate adds sub-agents that run in parallel, and a row that joins them.
func (a *agents) delegate(parent *branch) {
	var join []string
	from := parent.last
	if a.rng.IntN(4) > 0 {
		join = append(join, from.ID)
	}
	if a.rng.IntN(4) == 0 {
		join = append(join, parent.first)
	}
	for i := range 1 + a.rng.IntN(3) {
		session := fmt.Sprintf("%s.%d.%d", parent.session, len(a.rows), i)
		if a.rng.IntN(6) == 0 {
			session = ""
		}
		var sub *branch
		if a.rng.IntN(2) == 0 {
			sub = a.turn(&branch{session: session, last: from}, []string{from.ID})
		} else {
			sub = a.begin(session, []string{from.ID})
		}
		for session != "" && a.rng.IntN(2) == 0 {
			a.turn(sub, nil)
		}
		if join = append(join, sub.last.ID); a.rng.IntN(8) == 0 {
			join = nil // forgotten
		}
	}
	switch a.rng.IntN(8) {
	case 0: // nothing joins them
	case 1, 2: // another agent does
		a.turn(&branch{session: fmt.Sprintf("%s.%d", parent.session, len(a.rows)), last: from}, append([]string{}, join...))
	default:
		a.turn(parent, join)
	}
}

// add adds a row of which the first blocks are given; other ids are new, and may not
// cover all of it.
func (a *agents) add(b *branch, isl int, ids []uint64, after []string) *branch {
	ids = slices.Clone(ids)
	covered := (isl + a.block - 1) / a.block
	switch a.rng.IntN(12) {
	case 0:
		covered = a.rng.IntN(covered + 1)
	case 1, 2, 3:
		covered = isl / a.block
	}
	for len(ids) < covered {
		ids = append(ids, a.newID())
	}
	if prompt := fmt.Sprint(isl, ids); len(ids)*a.block >= isl && a.prompts[prompt] {
		ids[len(ids)-1] = a.newID()
	} else {
		a.prompts[prompt] = true
	}
	if b.first == "" {
		b.first = fmt.Sprint("r", len(a.rows))
	}
	var waits []int
	for _, id := range after {
		row, _ := strconv.Atoi(id[1:])
		waits = append(waits, row)
	}
	if after == nil && b.last.ID != "" {
		row, _ := strconv.Atoi(b.last.ID[1:])
		waits = append(waits, row)
	}
	slices.Sort(waits)
	a.waits = append(a.waits, slices.Compact(waits))
	b.last = trace.Request{
		ID: fmt.Sprint("r", len(a.rows)), SessionID: b.session, After: after,
		InputLength: isl, OutputLength: a.rng.IntN(7), HashIDs: ids,
	}
	a.rows = append(a.rows, b.last)
	return b
}

func (a *agents) newID() uint64 {
	a.ids++
	return 100 + a.ids
}

// token identifies a token by its content, whatever its id.
type token struct {
	of     string // "id", "row" or "answer"
	number uint64
	place  int
}

// conversation is a request and its answer.
type conversation struct {
	row    trace.Request
	number int
	tokens []token // of the prompt and the answer
}

// naiveCache is a cache that holds every block of every sequence of tokens.
type naiveCache struct {
	*agents
	block  int
	live   bool
	tokens map[token]int32    // numbers them
	next   map[[2]int32]int32 // by a sequence and a token: the sequence with it
	held   []bool             // of each sequence: it ends with a cached block
	done   map[int]*conversation
}

// request returns the number of cached tokens of a request, and caches it.
func (n *naiveCache) request(rec replay.Record) (cached int) {
	c := &conversation{row: rec.Request, number: rec.Row}
	c.tokens = n.prompt(rec.Request, rec.Row)
	for i := range max(rec.OutputLength, 1) {
		c.tokens = append(c.tokens, token{"answer", uint64(rec.Row), i})
	}
	n.done[rec.Row] = c
	at, hit := int32(0), true
	for i, t := range c.tokens[:len(c.tokens)-1] { // the last token of an answer is not computed
		if _, ok := n.tokens[t]; !ok {
			n.tokens[t] = int32(len(n.tokens))
		}
		key := [2]int32{at, n.tokens[t]}
		if _, ok := n.next[key]; !ok {
			n.held = append(n.held, false)
			n.next[key] = int32(len(n.held))
		}
		if at = n.next[key]; (i+1)%n.block > 0 {
			continue
		}
		if hit = hit && n.held[at-1]; hit && i+1 < rec.InputLength { // the last token of a prompt is computed
			cached = i + 1
		}
		n.held[at-1] = true
	}
	return cached
}

// prompt returns the tokens of a row.
func (n *naiveCache) prompt(r trace.Request, number int) []token {
	tokens := n.ofTrace(r, number)
	base := n.base(r, n.waits[number])
	if base == nil {
		return tokens
	}
	before := n.ofTrace(base.row, base.number)
	size := n.agents.block
	full := base.row.InputLength / size
	switch longer := len(tokens) > len(before); {
	case longer && min(len(r.HashIDs), len(base.row.HashIDs)) < full: // unknown
	case longer && slices.Equal(tokens[:full*size], before[:full*size]):
		copy(tokens[:len(tokens)-1], base.tokens)
	default:
		for i := range min(len(r.HashIDs), len(base.row.HashIDs)) {
			if r.HashIDs[i] != base.row.HashIDs[i] {
				break
			}
			copy(tokens[i*size:min((i+1)*size, len(tokens))], base.tokens[i*size:min((i+1)*size, len(before))])
		}
		if last := len(tokens) - 1; tokens[last].of == "answer" {
			tokens[last] = n.ofTrace(r, number)[last]
		}
	}
	return tokens
}

// base returns what a row continues: of the rows that it waits for the latest of its
// session, or else the one of which it has the most tokens, the first of several.
func (n *naiveCache) base(r trace.Request, waits []int) (base *conversation) {
	if !n.live {
		return nil
	}
	most := 0
	for _, row := range slices.Backward(waits) {
		c := n.done[row]
		own := c.row.SessionID == r.SessionID && r.SessionID != ""
		switch full := c.row.InputLength / n.agents.block; {
		case own:
			return c
		case full > 0 && c.row.InputLength < r.InputLength && c.row.InputLength >= most &&
			len(r.HashIDs) >= full && len(c.row.HashIDs) >= full && slices.Equal(r.HashIDs[:full], c.row.HashIDs[:full]):
			base, most = c, c.row.InputLength
		}
	}
	return base
}

// ofTrace returns the tokens of a row as the trace has them.
func (n *naiveCache) ofTrace(r trace.Request, number int) (tokens []token) {
	for i := range r.InputLength {
		t := token{"row", uint64(number), i}
		if block := i / n.agents.block; block < len(r.HashIDs) {
			t = token{"id", r.HashIDs[block], i % n.agents.block}
		}
		tokens = append(tokens, t)
	}
	return tokens
}
