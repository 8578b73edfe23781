package sessions_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/check"
	"moontide/trace/format"
	"moontide/trace/stats"
)

// agentLoad generates runs of agents that start sub-agents, by other means than the
// model.
type agentLoad struct {
	seed     uint64
	runs     int
	gap      float64 // ms between the starts of runs
	turns    float64 // mean of a main agent
	call     float64 // probability that a turn starts sub-agents
	fan      int     // most that it starts
	chain    float64 // mean turns of a sub-agent
	nested   float64 // the same probability for turns of sub-agents, at most 2 levels
	later    float64 // probability that the second next turn waits for a sub-agent
	never    float64 // and that none does
	fork     float64 // probability that a sub-agent starts with its caller's prompt
	think    float64 // ms, median, of one turn in four of a main agent
	tool     float64 // ms, median
	systems  int     // system prompts of sub-agents
	unnamed  bool    // rows have no session ids
	noBlocks bool
}

const agentBlock = 16

type agentRun struct {
	agentLoad
	random  *rand.Rand
	rows    []trace.Request
	at      []float64
	next    uint64 // block id
	session string
	agents  int
}

func (w agentLoad) rows() []trace.Request {
	g := &agentRun{agentLoad: w, random: rand.New(rand.NewPCG(w.seed, 11)), next: 1 << 20}
	for i := range w.runs {
		g.session, g.agents = fmt.Sprint("run", i), 0
		start := float64(i) * w.gap * (.5 + g.random.Float64())
		g.agent(0, g.system(0), start, nil, "")
	}
	order := make([]int, len(g.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.at[a], g.at[b]) })
	var rows []trace.Request
	for _, i := range order {
		rows = append(rows, g.rows[i])
	}
	return rows
}

// system returns the blocks of a system prompt of a level.
func (g *agentRun) system(level int) []uint64 {
	n, which := 20, uint64(0)
	if level > 0 {
		which = 1 + g.random.Uint64N(uint64(g.systems))
		n = 10 + 5*int(which)
	}
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = which<<10 + uint64(i)
	}
	return ids
}

func (g *agentRun) geometric(mean float64) int {
	return 1 + int(math.Log(1-g.random.Float64())/math.Log(1-1/max(mean, 1.01)))
}

func (g *agentRun) delay(level int) (ms float64, kind trace.DelayKind) {
	if level == 0 && g.random.IntN(4) == 0 {
		return math.Round(g.think * math.Exp(g.random.NormFloat64())), trace.Think
	}
	return math.Round(g.tool * math.Exp(.7*g.random.NormFloat64())), trace.Tool
}

// agent adds the rows of an agent that starts after a time, or after others at that
// time, and returns its last id and the end of that.
func (g *agentRun) agent(level int, ids []uint64, at float64, after []string, caller string) (last string, end float64) {
	name := g.session
	if level > 0 {
		g.agents++
		name = fmt.Sprintf("%s/%d", g.session, g.agents)
	}
	var waits []string
	start := at
	var delay float64
	var kind trace.DelayKind
	if level > 0 {
		delay, kind = g.delay(level)
		waits, start = after, at+delay
	}
	turns := g.geometric(map[bool]float64{true: g.turns, false: g.chain}[level == 0])
	type running struct {
		turn int
		id   string
		end  float64
	}
	var calls []running
	for turn := range turns {
		if turn > 0 {
			ready := end
			waits = []string{last}
			calls = slices.DeleteFunc(calls, func(c running) bool {
				if c.turn <= turn {
					waits, ready = append(waits, c.id), max(ready, c.end)
				}
				return c.turn <= turn
			})
			delay, kind = g.delay(level)
			start = ready + delay
		}
		for range 1 + g.random.IntN(12) {
			ids = append(ids, g.next)
			g.next++
		}
		r := trace.Request{InputLength: len(ids) * agentBlock, OutputLength: 1 + int(60*g.random.ExpFloat64()), HashIDs: slices.Clone(ids),
			SessionID: name, ID: fmt.Sprintf("%s:%d", name, turn)}
		switch {
		case turn == 0 && level == 0:
			r.Timestamp = trace.Some(math.Round(start))
			start = r.Timestamp.Value
		default:
			r.Delay, r.DelayKind = trace.Some(delay), kind
			if len(waits) > 1 || turn == 0 || g.unnamed {
				r.After = waits
			}
		}
		if g.unnamed {
			r.SessionID = ""
		}
		if g.noBlocks {
			r.HashIDs = nil
		}
		g.rows, g.at = append(g.rows, r), append(g.at, start)
		last, end = r.ID, start+trace.AnswerTime(r.OutputLength)
		p := g.call
		if level > 0 {
			p = g.nested
		}
		if level < 2 && g.random.Float64() < p {
			for range 1 + g.random.IntN(g.fan) {
				begin := g.system(level + 1)
				if g.random.Float64() < g.fork {
					begin = slices.Clone(ids)
				}
				id, ends := g.agent(level+1, begin, end, []string{last}, last)
				switch u := g.random.Float64(); {
				case u < g.never:
				case u < g.never+g.later:
					calls = append(calls, running{turn + 2, id, ends})
				default:
					calls = append(calls, running{turn + 1, id, ends})
				}
			}
		}
	}
	return last, end
}

// graphOf returns the graph of rows, which must be whole: rows wait for earlier rows only.
func graphOf(t rapid.TB, rows []trace.Request) *trace.Graph {
	var b trace.GraphBuilder
	var earlier trace.Earlier
	for i, r := range rows {
		b.Add(r, i+1)
		if known := earlier.Add(r); len(r.After) > 0 && len(known) != len(r.After) {
			t.Fatalf("row %d waits for %v, which are not all before it", i+1, r.After)
		}
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if g.Lost() > 0 {
		t.Fatalf("missing: %v", g.LostIDs())
	}
	return g
}

// agentShape holds the distributions that make the load of agents.
type agentShape struct {
	tool, think []float64 // delays, ms
	subAgents   []float64 // of each session
	turns       []float64 // of each sub-agent
	waits       []float64 // rows that each later turn waits for
	makespan    []float64 // ms, of sessions, with assumed answers
	parallel    []float64 // requests of the session in progress when one starts
	isl         []float64
	depth       []float64 // rows of the longest chain of each session
	width       []float64 // most rows of a session at one depth
}

func shapeOf(t rapid.TB, rows []trace.Request) (s agentShape) {
	g := graphOf(t, rows)
	at, sessions := make([]float64, len(rows)), map[int][]int{}
	depth := make([]int, len(rows))
	begun := map[string]int{}
	turns := map[string]float64{}
	for i, r := range rows {
		first := g.First(i)
		sessions[first] = append(sessions[first], i)
		at[i] = r.Timestamp.Value
		if before := g.Before(i); len(before) > 0 && !r.Timestamp.Set {
			at[i] = 0
			for _, b := range before {
				at[i] = max(at[i], at[b]+trace.AnswerTime(rows[b].OutputLength))
			}
			at[i] += r.Delay.Value
			s.waits = append(s.waits, float64(len(before)))
		}
		for _, b := range g.Before(i) {
			depth[i] = max(depth[i], depth[b]+1)
		}
		switch r.DelayKind {
		case trace.Think:
			s.think = append(s.think, r.Delay.Value)
		case trace.Tool:
			s.tool = append(s.tool, r.Delay.Value)
		}
		s.isl = append(s.isl, float64(r.InputLength))
		if r.SessionID != "" {
			if rows[first].SessionID != r.SessionID {
				if turns[r.SessionID]++; turns[r.SessionID] == 1 {
					begun[rows[first].SessionID]++
				}
			}
		}
	}
	for _, name := range sortedKeys(turns) {
		s.turns = append(s.turns, turns[name])
	}
	for first, of := range sessions {
		s.subAgents = append(s.subAgents, float64(begun[rows[first].SessionID]))
		end := 0.0
		deepest, widest, atDepth := 0, 0, map[int]int{}
		for _, i := range of {
			atDepth[depth[i]]++
			deepest, widest = max(deepest, depth[i]+1), max(widest, atDepth[depth[i]])
		}
		s.depth, s.width = append(s.depth, float64(deepest)), append(s.width, float64(widest))
		for _, i := range of {
			end = max(end, at[i]+trace.AnswerTime(rows[i].OutputLength))
			n := 0
			for _, k := range of {
				if at[k] <= at[i] && at[i] < at[k]+trace.AnswerTime(rows[k].OutputLength) {
					n++
				}
			}
			s.parallel = append(s.parallel, float64(n))
		}
		s.makespan = append(s.makespan, end-at[first])
	}
	return s
}

func sortedKeys(m map[string]float64) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func ks(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return float64(indicator(len(a) != len(b)))
	}
	return stats.KS(stats.Of(slices.Clone(a)), stats.Of(slices.Clone(b)))
}

func indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}

var agentLoads = map[string]agentLoad{
	"research": {seed: 1, runs: 300, gap: 20_000, turns: 6, call: .3, fan: 4, chain: 3, think: 30_000, tool: 2000, systems: 3},
	"forks":    {seed: 2, runs: 300, gap: 20_000, turns: 5, call: .3, fan: 3, chain: 4, fork: .7, later: .2, never: .1, think: 60_000, tool: 800, systems: 2},
	"nested":   {seed: 3, runs: 300, gap: 20_000, turns: 4, call: .4, fan: 2, chain: 3, nested: .2, think: 20_000, tool: 1500, systems: 2},
	"unnamed":  {seed: 5, runs: 300, gap: 20_000, turns: 6, call: .3, fan: 3, chain: 3, think: 30_000, tool: 2000, systems: 3, unnamed: true},
	"no ids":   {seed: 6, runs: 300, gap: 20_000, turns: 6, call: .3, fan: 3, chain: 3, think: 30_000, tool: 2000, systems: 3, unnamed: true, noBlocks: true},
}

// Drawn agents start as many sub-agents at a time, of as many turns, as those of the
// source, wait for as many requests, with the same pauses, and take as long. Another
// sample of the load shows how much that differs by chance.
func TestAgentsAreLike(t *testing.T) {
	t.Parallel()
	for name, w := range agentLoads {
		t.Run(name, func(t *testing.T) {
			rows := w.rows()
			w.seed += 100
			source, other := shapeOf(t, rows).aspects(), shapeOf(t, w.rows()).aspects()
			m := fit(t, rows, sessions.Options{})
			const seeds = 3
			distances := map[string]float64{}
			for seed := range uint64(seeds) {
				for aspect, drawn := range shapeOf(t, draw(t, m, seed, len(rows))).aspects() {
					distances[aspect] += ks(source[aspect], drawn) / seeds
				}
			}
			for aspect, d := range distances {
				chance := ks(source[aspect], other[aspect])
				t.Logf("%s: KS %.3f, by chance %.3f", aspect, d, chance)
				if d > max(.06, chance) {
					t.Errorf("%s: a KS distance of %.3f, by chance %.3f", aspect, d, chance)
				}
			}
		})
	}
}

// Every part of the laws of sub-agents is derived from at least five requests.
func TestAgentPartsRestOnFiveRequests(t *testing.T) {
	t.Parallel()
	for name, w := range agentLoads {
		for _, runs := range []int{3, 10, 300} {
			w.runs = runs
			var file struct {
				Clients []struct {
					SubAgents any `json:"sub_agents"`
				}
			}
			if err := json.Unmarshal(saved(t, fit(t, w.rows(), sessions.Options{})), &file); err != nil {
				t.Fatal(err)
			}
			parts := 0
			for _, c := range file.Clients {
				eachLeaf(c.SubAgents, func(requests float64) {
					if parts++; requests < 5 {
						t.Errorf("%s, %d runs: a part rests on %v requests", name, runs, requests)
					}
				})
			}
			if parts < 5 {
				t.Errorf("%s, %d runs: %d parts", name, runs, parts)
			}
		}
	}
}

// eachLeaf calls f with the number of requests, the first number, of each innermost list
// of the leaves in a JSON value.
func eachLeaf(value any, f func(requests float64)) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if key != "splits" && key != "templates" {
				eachLeaf(member, f)
			}
		}
	case []any:
		if len(v) > 0 {
			if n, number := v[0].(float64); number {
				f(n)
				return
			}
		}
		for _, member := range v {
			eachLeaf(member, f)
		}
	}
}

func (s agentShape) aspects() map[string][]float64 {
	return map[string][]float64{
		"tool times": s.tool, "think times": s.think, "sub-agents per session": s.subAgents, "turns per sub-agent": s.turns,
		"waits per turn": s.waits, "makespan": s.makespan, "requests at a time": s.parallel, "ISL": s.isl,
		"depth": s.depth, "width": s.width,
	}
}

// A source with one call of sub-agents has too few to learn parts of their own from,
// but they do not get lost.
func TestFewAgents(t *testing.T) {
	t.Parallel()
	w := agentLoad{seed: 4, runs: 4, gap: 20_000, turns: 8, think: 30_000, tool: 2000, systems: 1, chain: 3, fan: 1}
	rows := w.rows()
	id := rows[0].ID
	for i := range 6 {
		r := trace.Request{After: []string{id}, ID: fmt.Sprint("x", i), SessionID: fmt.Sprint("x", i%3), Delay: trace.Some(1000.0),
			DelayKind: trace.Tool, InputLength: agentBlock, OutputLength: 9, HashIDs: []uint64{uint64(1<<30 + i)}}
		if i >= 3 {
			r.After = nil
		}
		rows = append(rows, r)
	}
	for i, r := range rows {
		if r.SessionID == rows[0].SessionID && r.ID != id {
			rows[i].After = []string{id, "x3", "x4", "x5"}
			break
		}
	}
	rows, err := trace.Collect(trace.Sort(trace.FromSlice(rows), format.Codec()))
	if err != nil {
		t.Fatal(err)
	}
	drawn := draw(t, fit(t, rows, sessions.Options{}), 1, 3000)
	s := shapeOf(t, drawn)
	calls, joins := 0, 0
	for _, n := range s.subAgents {
		calls += int(n)
	}
	for _, n := range s.waits {
		joins += indicator(n == 4)
	}
	want := 3 * len(drawn) / len(rows)
	if calls < want/2 || calls > 2*want || joins < want/8 {
		t.Errorf("%d sub-agents, and %d turns that wait for three, in %d rows; want about %d sub-agents", calls, joins, len(drawn), want)
	}
}

func checked(t rapid.TB, rows []trace.Request) *check.Report {
	var b bytes.Buffer
	w, err := format.NewWriter(&b, "trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	src, err := format.NewReader(&b, "trace.jsonl", format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := check.Run(src, check.Options{BlockSize: agentBlock})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// chance matches the findings that times and lengths of small traces have by chance.
var chance = regexp.MustCompile("^(time_|delay_in_|long_span|zero_output|block_size)")

// Whatever agents do, what is drawn is a valid trace: rows wait for earlier rows only,
// and none of it is an error.
func TestDrawnAgentsAreValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0, 1)
		w := agentLoad{
			seed: rapid.Uint64().Draw(t, "seed"), runs: rapid.IntRange(1, 12).Draw(t, "runs"), gap: rapid.Float64Range(0, 60_000).Draw(t, "gap"),
			turns: rapid.Float64Range(1, 8).Draw(t, "turns"), call: share.Draw(t, "call"), fan: rapid.IntRange(1, 6).Draw(t, "fan"),
			chain: rapid.Float64Range(1, 5).Draw(t, "chain"), nested: .4 * share.Draw(t, "nested"), later: .5 * share.Draw(t, "later"),
			never: .5 * share.Draw(t, "never"), fork: share.Draw(t, "fork"), think: 10_000, tool: 500, systems: rapid.IntRange(1, 3).Draw(t, "systems"),
			unnamed: rapid.Bool().Draw(t, "unnamed"), noBlocks: rapid.Bool().Draw(t, "no blocks"),
		}
		rows := w.rows()
		m, err := sessions.Fit(trace.FromSlice(rows), sessions.Options{BlockSize: agentBlock})
		if len(rows) < 5 {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if _, err := m.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		read, err := sessions.Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		drawn, err := trace.Collect(read.Requests(1, 300))
		if err != nil {
			t.Fatal(err)
		}
		graphOf(t, drawn)
		for _, f := range checked(t, drawn).Findings {
			if f.Severity == check.Error || f.Severity == check.Warning && !chance.MatchString(string(f.Kind)) {
				t.Fatalf("%s: %s %v", f.Kind, f.Message, f.Examples)
			}
		}
	})
}
