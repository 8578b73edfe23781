package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"moontide/trace/stats"
)

// bailianBlock is the block size of Bailian traces in tokens.
const bailianBlock = 16

// bailianRow is a row of a Bailian trace.
type bailianRow struct {
	Chat   int      `json:"chat_id"`
	Parent int      `json:"parent_chat_id"` // -1 for none
	At     float64  `json:"timestamp"`      // s
	ISL    int      `json:"input_length"`
	OSL    int      `json:"output_length"`
	Type   string   `json:"type"`
	Turn   int      `json:"turn"`
	Hashes []uint64 `json:"hash_ids"`
}

// app is an application of a model service whose trace has Bailian's layout.
type app struct {
	kind      string  // type of its rows
	rate      float64 // new chats per second
	turns     float64 // mean turns
	think     float64 // mean s between an answer and the next prompt
	first     float64 // mean tokens of a first prompt, behind its template
	more      float64 // mean tokens that a later prompt adds
	answer    float64 // mean tokens of an answer that later prompts have
	reasoning float64 // mean tokens of an answer that they leave out
	again     float64 // probability that a prompt is sent once more with another last message
	templates int
	prefix    float64 // mean blocks of a template
}

// thinking are people who ask a reasoning model, beside an API whose many prompts have
// few templates.
func thinking() []app {
	return []app{
		{kind: "thinking", rate: .35, turns: 2.2, think: 70, first: 400, more: 120, answer: 450, reasoning: 900, again: .08, templates: 30, prefix: 30},
		{kind: "text", rate: .5, turns: 1, first: 250, answer: 60, templates: 8, prefix: 60},
	}
}

// coder are agents that send whole files and grow fast, and completions of single lines.
func coder() []app {
	return []app{
		{kind: "coder", rate: .05, turns: 14, think: 9, first: 6000, more: 900, answer: 160, again: .03, templates: 5, prefix: 250},
		{kind: "coder", rate: .4, turns: 1.5, think: 4, first: 1500, more: 40, answer: 30, templates: 40, prefix: 90},
	}
}

// bailian makes a source of an hour of some applications.
func bailian(name string, apps []app) func(path string) error {
	return func(path string) error {
		var rows []bailianRow
		var d drawn
		for i, a := range apps {
			a.draw(stats.NewStream(0, fmt.Sprint(name, i)), &d, &rows)
		}
		slices.SortStableFunc(rows, func(a, b bailianRow) int { return int(1000 * (a.At - b.At)) })
		numbers := map[int]int{-1: -1}
		for i := range rows {
			numbers[rows[i].Chat] = i
			rows[i].Chat, rows[i].Parent = i, numbers[rows[i].Parent]
		}
		return writeLines(path, rows)
	}
}

// draw appends the chats of an hour.
func (a *app) draw(random *rand.Rand, d *drawn, rows *[]bailianRow) {
	shared := make([][]uint64, a.templates)
	for i := range shared {
		shared[i] = d.fresh(length(random, a.prefix))
	}
	popular := stats.NewZipf(a.templates, 1)
	for t := 0.0; ; {
		if t += random.ExpFloat64() / a.rate; t >= hour/second {
			return
		}
		a.chat(random, t, shared[popular.At(random.Float64())], d, rows)
	}
}

// chat appends the turns of a chat.
func (a *app) chat(random *rand.Rand, t float64, prefix []uint64, d *drawn, rows *[]bailianRow) {
	parent, known := -1, slices.Clone(prefix)
	isl := len(known)*bailianBlock + length(random, a.first)
	for turn := 1; t < hour/second; turn++ {
		ids := slices.Clone(known)
		ids = append(ids, d.fresh((isl+bailianBlock-1)/bailianBlock-len(ids))...)
		visible, hidden := length(random, a.answer), 0
		if a.reasoning > 0 {
			hidden = length(random, a.reasoning)
		}
		row := bailianRow{Chat: int(d.fresh(1)[0]), Parent: parent, At: math.Round(1000*t) / 1000, ISL: isl, OSL: visible + hidden, Type: a.kind, Turn: turn, Hashes: ids}
		*rows = append(*rows, row)
		t += float64(row.OSL)*.02 + lognormal(random, max(a.think, 1), 1.5)
		if random.Float64() >= a.again { // else the same turn again
			if random.Float64() >= 1-1/a.turns {
				return
			}
			parent, known = row.Chat, ids[:isl/bailianBlock] // the partial block changes
			isl += visible + length(random, a.more)
		}
	}
}

// traceLabRound is a row of a TraceLab trace.
type traceLabRound struct {
	Session string          `json:"session_id"`
	Model   string          `json:"model"`
	Input   int             `json:"input_tokens_total"`
	Prefix  int             `json:"prefix_tokens"`
	Output  int             `json:"output_tokens"`
	Events  []traceLabEvent `json:"timing_events"`
	began   time.Time
}

type traceLabEvent struct {
	Kind string    `json:"event_type"`
	At   time.Time `json:"timestamp"`
}

// traceLab makes a source of the steps of coding agents: a user asks, the agent calls
// tools until it is done, and at 120,000 tokens it goes on with a summary. Sessions start
// in working hours of three days.
func traceLab(path string) error {
	random := stats.NewStream(0, "tracelab")
	var rounds []traceLabRound
	for i := range 150 {
		day := float64(i % 3)
		at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration((day*24 + 8*random.Float64()) * float64(time.Hour)))
		rounds = append(rounds, steps(random, fmt.Sprintf("session-%03d", i), at)...)
	}
	slices.SortStableFunc(rounds, func(a, b traceLabRound) int { return a.began.Compare(b.began) })
	return writeLines(path, rounds)
}

// steps returns the rounds of a session.
func steps(random *rand.Rand, session string, at time.Time) (rounds []traceLabRound) {
	const limit = 120_000
	after := func(seconds float64) time.Time {
		at = at.Add(time.Duration(seconds * 1e9))
		return at
	}
	input, cached, kind := 14_000+length(random, 2000), 0, "user_message"
	for range 1 + int(random.ExpFloat64()*25) {
		r := traceLabRound{Session: session, Model: "large", Input: input, Prefix: cached, Output: length(random, 350), began: at}
		r.Events = []traceLabEvent{{kind, at}, {"assistant_text", after(1 + float64(input)*2e-5)}, {"tool_use", after(float64(r.Output) * .012)}}
		rounds = append(rounds, r)
		cached, kind = input, "tool_result"
		if random.Float64() < .06 { // minutes later the provider has dropped the prompt
			kind = "user_message"
			after(min(lognormal(random, 400, 2), 7200))
		} else {
			after(lognormal(random, 6, 2.5))
		}
		if input += r.Output + length(random, 1200); input > limit {
			input, cached = 16_000+length(random, 3000), 12_000
		}
	}
	return rounds
}

// writeLines writes rows as JSON lines.
func writeLines[T any](path string, rows []T) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := json.NewEncoder(f)
	for _, row := range rows {
		if err := w.Encode(row); err != nil {
			return err
		}
	}
	return f.Close()
}
