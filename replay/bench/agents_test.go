package bench_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
// request has as many cached tokens as the run predicts. Package run compares its
// predictions with lists of tokens.
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
	wrong := 0
	for rec, err := range run.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Class == replay.OK && rec.Counts.Input.Value == rec.InputLength && rec.Counts.Output.Value == max(rec.OutputLength, 1) {
			continue
		}
		if wrong++; wrong <= 3 {
			t.Errorf("virtual %v, row %d: %d of %d tokens: class %q %s", virtual, rec.Row, rec.Counts.Input.Value, rec.InputLength, rec.Class, rec.Error)
		}
	}
	if p := result.Metrics.Cache.Prediction; p.Predicted == 0 || p.Predicted != p.Measured || p.Equal != len(a.rows) || result.Metrics.Completed != len(a.rows) {
		t.Errorf("virtual %v: %d cached tokens predicted, %d measured; %d of %d requests as predicted", virtual, p.Predicted, p.Measured, p.Equal, len(a.rows))
	}
}

// agents are the rows of sessions.
type agents struct {
	rng     *rand.Rand
	block   int
	rows    []trace.Request
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
