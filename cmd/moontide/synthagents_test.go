package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// coder writes recordings of coding agents in WEKA's format: tools of seconds and users
// of minutes, and sub-agents that run in parallel while their caller waits.
type coder struct {
	*rand.Rand
	blocks    int // used in the conversation
	subSystem []int
}

type codedCall struct {
	T         float64     `json:"t"`
	Type      string      `json:"type"`
	AgentID   string      `json:"agent_id,omitempty"`
	In        int         `json:"in"`
	Out       int         `json:"out"`
	HashIDs   []int       `json:"hash_ids,omitempty"`
	InputType []string    `json:"input_types,omitempty"`
	APITime   float64     `json:"api_time,omitempty"`
	Requests  []codedCall `json:"requests,omitempty"`
}

func (c *coder) new(blocks int) (ids []int) {
	for range blocks {
		c.blocks++
		ids = append(ids, c.blocks)
	}
	return ids
}

func (c *coder) lognormal(median, sigma float64) float64 {
	return math.Round(1000*median*math.Exp(sigma*c.NormFloat64())) / 1000
}

// agent returns the calls of an agent and the end of the last one, in seconds.
func (c *coder) agent(main bool, t float64, ids []int, turns int) (calls []codedCall, end float64) {
	isl, cause := 64*len(ids), "text"
	for turn := range turns {
		isl += 100 + int(c.lognormal(500, 1))
		ids = append(ids, c.new(max(0, isl/64-len(ids)))...)
		osl := 1 + int(c.lognormal(120, .8))
		api := trace.AnswerTime(osl) / 1000
		calls = append(calls, codedCall{T: t, Type: "n", In: isl, Out: osl, HashIDs: append([]int(nil), ids...), InputType: []string{cause}, APITime: api})
		isl += osl
		end = t + api
		if main && turn+1 < turns && c.Float64() < .2 {
			begin := end
			for range 1 + c.IntN(3) {
				if c.subSystem == nil {
					c.subSystem = c.new(40)
				}
				start := begin + c.lognormal(1, .4)
				inner, last := c.agent(false, start, append([]int(nil), c.subSystem...), 1+int(3*c.ExpFloat64()))
				calls = append(calls, codedCall{T: start, Type: "subagent", AgentID: strconv.Itoa(c.blocks), Requests: inner})
				end = max(end, last)
			}
		}
		if cause = "tool_result"; main && c.IntN(6) == 0 {
			cause = "text"
		}
		pause := c.lognormal(3, .8)
		if cause == "text" {
			pause = c.lognormal(60, 1)
		}
		t = end + pause
	}
	return calls, end
}

func writeCoders(t *testing.T, dir string, conversations int) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range conversations {
		c := &coder{Rand: rand.New(rand.NewPCG(5, uint64(i)))}
		calls, _ := c.agent(true, 0, c.new(150), 1+int(10*c.ExpFloat64()))
		data, err := json.Marshal(map[string]any{"id": fmt.Sprint("c", i), "block_size": 64, "hash_id_scope": "local", "requests": calls})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("c%03d.json", i)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// agentRun holds the distributions of a simulated run of agents.
type agentRun struct {
	ttft, gaps, tool, think, waits, subAgents, makespan, atOnce []float64
	cached                                                      float64 // share of the prompt tokens
}

func agentRunOf(t *testing.T, dir string) (a agentRun) {
	t.Helper()
	records := recordsOf(t, dir)
	var b trace.GraphBuilder
	for row := range len(records) {
		b.Add(records[row].Request, 0)
	}
	graph, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	latest, named := map[string]replay.Record{}, map[string]bool{}
	begin, end, subAgents := map[int]time.Duration{}, map[int]time.Duration{}, map[int]int{}
	var cached, tokens float64
	for row := range len(records) {
		r := records[row]
		session := graph.First(row)
		if before, later := latest[r.SessionID]; later {
			a.gaps = append(a.gaps, (r.Sent.Value - before.Sent.Value).Seconds())
		}
		if _, begun := begin[session]; !begun {
			begin[session] = r.Due
		} else if !named[r.SessionID] {
			subAgents[session]++
		}
		named[r.SessionID], latest[r.SessionID] = true, r
		end[session] = max(end[session], r.Done)
		a.ttft = append(a.ttft, (r.First.Value - r.Sent.Value).Seconds())
		switch r.DelayKind {
		case trace.Tool:
			a.tool = append(a.tool, r.Delay.Value)
		case trace.Think:
			a.think = append(a.think, r.Delay.Value)
		}
		if n := len(graph.Before(row)); n > 0 {
			a.waits = append(a.waits, float64(n))
		}
		inProgress := 0
		for other := range len(records) {
			if o := records[other]; graph.First(other) == session && o.Sent.Value <= r.Sent.Value && r.Sent.Value < o.Done {
				inProgress++
			}
		}
		a.atOnce = append(a.atOnce, float64(inProgress))
		cached, tokens = cached+float64(r.Counts.Cached.Value), tokens+float64(r.InputLength)
	}
	for session := range begin {
		a.makespan = append(a.makespan, (end[session] - begin[session]).Seconds())
		a.subAgents = append(a.subAgents, float64(subAgents[session]))
	}
	a.cached = cached / tokens
	return a
}

// Order, waits and tool times of recorded agents survive convert, fit, synth and a
// replay in virtual time.
func TestLearnedAgentsReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCoders(t, filepath.Join(dir, "coders"), 120)
	must(t, dir, "convert", "coders", "--session-rate", "0.1", "--arrival", "poisson", "-o", "source.jsonl")
	must(t, dir, "fit", "source.jsonl", "-o", "model.json")
	must(t, dir, "simulate", "source.jsonl", "--out", "source")
	source := agentRunOf(t, filepath.Join(dir, "source"))
	rows := strconv.Itoa(len(source.ttft))
	must(t, dir, "synth", "--from", "model.json", "-n", rows, "--seed", "1", "-o", "drawn.jsonl")
	if text := must(t, dir, "check", "drawn.jsonl"); !strings.Contains(text, "can be replayed faithfully") {
		t.Error(text)
	}
	must(t, dir, "simulate", "drawn.jsonl", "--out", "drawn")
	waited(t, filepath.Join(dir, "drawn"))
	drawn := agentRunOf(t, filepath.Join(dir, "drawn"))
	for _, x := range []struct {
		what          string
		source, drawn []float64
		bound         float64
	}{
		{"tool times", source.tool, drawn.tool, .05}, {"turn gaps", source.gaps, drawn.gaps, .05},
		{"waits", source.waits, drawn.waits, .05}, {"requests at once", source.atOnce, drawn.atOnce, .05}, {"TTFT", source.ttft, drawn.ttft, .1},
		// There are 250 think times and 120 sessions: by chance, two samples are .12 and .17 apart.
		{"think times", source.think, drawn.think, .12}, {"sub-agents", source.subAgents, drawn.subAgents, .17}, {"makespan", source.makespan, drawn.makespan, .17},
	} {
		d := stats.KS(stats.Of(x.source), stats.Of(x.drawn))
		t.Logf("%s: KS %.3f of %d and %d", x.what, d, len(x.source), len(x.drawn))
		if !(d <= x.bound) {
			t.Errorf("%s: a KS distance of %.3f, want at most %v", x.what, d, x.bound)
		}
	}
	if math.Abs(source.cached-drawn.cached) > .05 {
		t.Errorf("%.3f of the prompt tokens are cached, %.3f in the source", drawn.cached, source.cached)
	}
}
