package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"moontide/trace/stats"
)

// wekaBlock is the block size of WEKA conversations in tokens.
const wekaBlock = 64

// wekaRequest is a request of a WEKA conversation, or a sub-agent.
type wekaRequest struct {
	T        float64       `json:"t"` // s
	Type     string        `json:"type"`
	Agent    string        `json:"agent_id,omitempty"`
	Model    string        `json:"model,omitempty"`
	In       int           `json:"in,omitempty"`
	Out      int           `json:"out,omitempty"`
	Hashes   []int         `json:"hash_ids,omitempty"`
	Inputs   []string      `json:"input_types,omitempty"`
	Stop     string        `json:"stop,omitempty"`
	API      float64       `json:"api_time,omitempty"`   // s
	Think    float64       `json:"think_time,omitempty"` // s
	Requests []wekaRequest `json:"requests,omitempty"`
}

type wekaConversation struct {
	ID       string        `json:"id"`
	Models   []string      `json:"models"`
	Block    int           `json:"block_size"`
	Scope    string        `json:"hash_id_scope"`
	Requests []wekaRequest `json:"requests"`
}

// coding describes conversations of coding agents like the published ones: prompts
// that start at 11,000 to 18,000 tokens and grow, tools that run for seconds, a user
// who comes back after minutes to an hour, a clock of whole seconds.
type coding struct {
	name          string
	conversations int
	turns         float64 // mean requests of the main agent
	agents        float64 // mean sub-agents
}

// write writes the conversations as files of a folder.
func (c coding) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for i := range c.conversations {
		w := wekaConversation{ID: fmt.Sprintf("%s_%04d", c.name, i), Block: wekaBlock, Scope: "local"}
		a := agent{random: stats.NewStream(0, w.ID), ids: new(int), model: "large"}
		a.subagents = c.agents / c.turns
		if a.random.Float64() < 0.3 {
			a.model = "small"
		}
		w.Models = []string{a.model}
		w.Requests = a.requests(1 + int(a.random.ExpFloat64()*(c.turns-1)+0.5))
		text, err := json.Marshal(w)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, w.ID+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// agent draws the requests of an agent, or of a sub-agent if by is set.
type agent struct {
	random    *rand.Rand
	ids       *int // blocks of the conversation so far
	model     string
	subagents float64 // sub-agents per request
	by        bool
	t         float64 // s
}

func (a *agent) requests(n int) (list []wekaRequest) {
	input := length(a.random, 3000) + 9000
	if a.by {
		input = length(a.random, 2000) + 3000
	}
	var blocks []int
	waited, user := 0.0, !a.by
	for i := range n {
		for len(blocks) < input/wekaBlock {
			*a.ids++
			blocks = append(blocks, *a.ids)
		}
		out := length(a.random, 220)
		r := wekaRequest{T: a.t, Type: "s", Model: a.model, In: input, Out: out, Hashes: blocks[:len(blocks):len(blocks)], Stop: "tool_use", Think: waited}
		r.Inputs = []string{"tool_result"}
		if user {
			r.Inputs = []string{"text"}
		}
		r.API = math.Round(100*(0.7+float64(input)*2e-5+float64(out)*8e-3)) / 100
		end := a.t + r.API
		user = !a.by && a.random.Float64() < 0.1
		if user {
			r.Stop = "end_turn"
		}
		list = append(list, r)
		if i < n-1 && a.random.Float64() < a.subagents {
			list = append(list, a.subagent(end, i))
			end = max(end, a.t)
			waited = 0
		} else {
			waited = a.wait(user)
		}
		a.t = math.Ceil(end + waited)
		input += out + length(a.random, 700)
		if a.random.Float64() < 0.05 { // an edit of the last messages
			blocks = blocks[:len(blocks)*9/10]
		}
	}
	return list
}

// wait returns the seconds of a tool, or of the user.
func (a *agent) wait(user bool) float64 {
	if user {
		return math.Round(min(lognormal(a.random, 300, 2), 3600))
	}
	return math.Round(lognormal(a.random, 4, 1.5))
}

// subagent calls a sub-agent at a time, and ends when it has ended.
func (a *agent) subagent(at float64, number int) wekaRequest {
	at = math.Ceil(at)
	sub := *a
	sub.by, sub.subagents, sub.model, sub.t = true, 0, "small", at
	r := wekaRequest{T: at, Type: "subagent", Agent: fmt.Sprintf("agent%d", number)}
	r.Requests = sub.requests(2 + int(a.random.ExpFloat64()*4))
	last := r.Requests[len(r.Requests)-1]
	a.t = last.T + last.API
	return r
}
