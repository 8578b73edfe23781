package server

import (
	"cmp"
	"fmt"

	"moontide/replay/listen"
	"moontide/replay/sim/engine"
)

// Config configures a [Server]. The zero value serves the model "sim" as fast
// as possible.
type Config struct {
	Model      string            // name of the model; default "sim"
	Deployment engine.Deployment // computes the answers
	// TimeScale is the speed of the deployment relative to real time, from
	// [LeastTimeScale] to [MostTimeScale]; 0 is 1.
	TimeScale float64
	// CacheGenerated also caches generated tokens, all but the last of an answer, so
	// that a later turn of a conversation that has the answer does not recompute it.
	CacheGenerated bool
	// Faults lists faults to simulate. Each affects its share of the requests
	// not affected by earlier ones. A request can select another fault in a
	// header.
	Faults []Fault
	// Refuse lists parameters, by name, and APIs that are refused as other servers
	// do: see [Refusable].
	Refuse []string
	// ReasoningTokens is the number of tokens at the start of each answer that are
	// reasoning, which chat, responses and messages tell from visible text. An
	// answer that is shorter has no visible text.
	ReasoningTokens int
	Seed            uint64 // for selecting requests with faults and their place in the stream
	// Encode splits prompts into tokens; if nil, each word is a token.
	Encode  Encoder
	Version string // returned by /version
	// MaxConnections limits open connections; 0 is what the limit on open files allows.
	MaxConnections int
}

// Encoder appends the tokens of a text to dst, as a model's tokenizer does.
type Encoder func(dst []uint32, text string) ([]uint32, error)

// Limits of [Config.TimeScale]. Beyond them the deployment's time would
// overflow within weeks, or the next event could be years away.
const (
	LeastTimeScale = 0.001
	MostTimeScale  = 1000
)

func (c Config) withDefaults() Config {
	c.Model = cmp.Or(c.Model, "sim")
	c.Deployment.Engine = c.Deployment.Engine.WithDefaults()
	c.TimeScale = cmp.Or(c.TimeScale, 1)
	c.MaxConnections = cmp.Or(c.MaxConnections, listen.Room(1))
	return c
}

func (c Config) validate() error {
	if !(c.TimeScale >= LeastTimeScale && c.TimeScale <= MostTimeScale) {
		return fmt.Errorf("time scale must be from %v to %v, got %v", LeastTimeScale, MostTimeScale, c.TimeScale)
	}
	if c.ReasoningTokens < 0 {
		return fmt.Errorf("number of reasoning tokens must not be negative, got %d", c.ReasoningTokens)
	}
	return checkRefuse(c.Refuse)
}
