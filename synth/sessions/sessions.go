package sessions

import (
	"fmt"
	"math"

	"moontide/trace"
	"moontide/trace/block"
)

// Model is a model of a trace: its sessions. Make one with [Fit] or [Read]. It is
// immutable and safe for concurrent use.
type Model struct {
	modelFile
	clients   []client
	size      block.Size
	rate      float64 // multiple of the source's
	irregular int
	notes     []string
}

// prefixRun is a run of blocks that several sessions share. Runs form a tree, whose first
// is empty.
type prefixRun struct {
	Parent int `json:"parent,omitempty"`
	Blocks int `json:"blocks"` // after its parent's
	// Template is set if the run is so common that all of the trace has it. The others
	// are new each time that the sessions of the source are repeated.
	Template bool `json:"template,omitempty"`

	depth int // blocks, including its parents'
}

// turn is a request of a session. The first of a session has a timestamp. The others refer
// to earlier ones by how many turns these are back.
type turn struct {
	Arrival int             `json:"arrival,omitempty"` // which of the arrivals of the source it is, if it has a timestamp
	Timing  int             `json:"timing,omitempty"`
	Delay   float64         `json:"delay,omitempty"`
	Kind    trace.DelayKind `json:"kind,omitempty"`

	Prefix int `json:"prefix,omitempty"`
	Own    int `json:"tokens,omitempty"` // after the prefix; below 0 if its last block is a partial one
	OSL    int `json:"osl,omitempty"`
	Parent int `json:"parent,omitempty"` // back: a turn with the same prefix that it shares blocks with; 0 for none
	Shared int `json:"shared,omitempty"` // these blocks, after the prefix

	Reasoned int   `json:"reasoned,omitempty"` // ten-thousandths of the answer, and 1; 0 if unknown
	Client   int   `json:"client,omitempty"`
	Agent    int   `json:"agent,omitempty"` // of the session, each with a session id; 0 for none
	Named    bool  `json:"named,omitempty"` // it names the turns that it waits for
	Waits    []int `json:"waits,omitempty"` // back: the turns that it names, or the one before of its agent
}

// Values of Timing: what a row has.
const (
	timestamp = iota
	timestampAndDelay
	delayOnly
)

// BlockSize returns the tokens per block and how the size was determined. It is
// zero if the source has no block ids.
func (m *Model) BlockSize() block.Size { return m.size }

// Irregular returns the number of source rows without one id per block. It is
// not stored in a model's file.
func (m *Model) Irregular() int { return m.irregular }

// Notes returns the properties of the source that the model drops or assumes, each one
// sentence without a full stop. A model file does not contain them.
func (m *Model) Notes() []string { return m.notes }

// SourceRequests returns the number of requests of the source.
func (m *Model) SourceRequests() (n int) {
	for i := range m.Sessions {
		n += len(m.Sessions[i])
	}
	return n
}

// AtRate returns the model with factor times as many sessions in the same time; the
// time between the turns of a session is unchanged. (To speed up everything, use
// [trace.Speed] on the requests.)
func (m *Model) AtRate(factor float64) (*Model, error) {
	if !(factor > 0) || math.IsInf(factor, 0) {
		return nil, fmt.Errorf("rate factor %v is not a positive number", factor)
	}
	faster := *m
	faster.rate *= factor
	if sessions := float64(len(m.Sessions)) * faster.rate; faster.rate < .001 || sessions > 1e7 {
		return nil, fmt.Errorf("rate factor %v is below .001, or makes more than 10 million sessions of %d", factor, len(m.Sessions))
	}
	return &faster, nil
}

// islOf returns the ISL of a turn.
func (m *Model) islOf(t *turn) int { return m.Prefixes[t.Prefix].depth*m.Tokens + t.Own }

// blocksOf returns the number of block ids of a prompt.
func (m *Model) blocksOf(isl int) int {
	if m.Tokens > 0 && !m.FullBlocksOnly {
		return (isl + m.Tokens - 1) / m.Tokens
	}
	return m.fullBlocks(isl)
}

// fullBlocks returns the number of full blocks of a prompt.
func (m *Model) fullBlocks(isl int) int {
	if m.Tokens == 0 {
		return 0
	}
	return isl / m.Tokens
}
