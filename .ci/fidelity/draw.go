package main

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"strings"

	"moontide/synth/spec"
	"moontide/trace"
	"moontide/trace/stats"
)

const (
	blockSize = 512
	second    = 1000.0 // ms
	minute    = 60 * second
	hour      = 60 * minute
)

// Templates and turns of the conversations that most sources vary, as keys of a
// description.
const templates = "shared: {count: 10, tokens: 2048, zipf: 1}"

func turns(number, think string, newTokens int) string {
	return fmt.Sprintf("sessions: {turns: %s, think_time: lognormal:%s:1.2, new_tokens: lognormal:%d:1, timestamps: all}", number, think, newTokens)
}

// talk are such conversations at a rate in requests per second, or a list of rates.
func talk(rate string) string {
	return client(rate, 1500, 250, templates, turns("geometric:2.5", "40s", 300))
}

// client describes a client with mean lengths, and more keys.
func client(rate string, isl, osl int, more ...string) string {
	return fmt.Sprintf("rate: %s, unique_isl: lognormal:%d:1, osl: lognormal:%d:1, %s", rate, isl, osl, strings.Join(more, ", "))
}

// chat draws an hour of conversations, or another time.
func chat(duration string) []trace.Request { return described(duration, talk("2.5")) }

// described draws the rows of some clients, without session ids and what else a recorded
// trace does not have.
func described(duration string, clients ...string) (rows []trace.Request) {
	text := fmt.Sprintf("duration: %s\nblock_size: %d\nclients:\n", duration, blockSize)
	for i, keys := range clients {
		text += fmt.Sprintf("- {name: client%d, %s}\n", i, keys)
	}
	s, err := spec.Parse([]byte(text), spec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for r := range s.Requests() {
		r.SessionID, r.ContextLen, r.UniquePromptLen = "", trace.Opt[int]{}, trace.Opt[int]{}
		r.Timestamp.Value = math.Round(r.Timestamp.Value)
		rows = append(rows, r)
	}
	return rows
}

// drawn is the state of a drawing: the ids in use, and the rows.
type drawn struct {
	ids  uint64
	rows []trace.Request
}

func (d *drawn) fresh(n int) (ids []uint64) {
	for range n {
		ids = append(ids, d.ids)
		d.ids++
	}
	return ids
}

// length draws a number of tokens of a mean.
func length(random *rand.Rand, mean float64) int {
	return max(1, int(lognormal(random, mean, 1)))
}

func lognormal(random *rand.Rand, mean, cv float64) float64 {
	return stats.NewLognormal(mean, cv).Quantile(1 - random.Float64()*(1-stats.MinP))
}
