package sessions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"moontide/trace"
)

// Model is a model of a trace: its sessions. Make one with [Fit] or [Read]. It is
// immutable and safe for concurrent use.
type Model struct {
	modelFile
	size      trace.BlockSize
	rate      float64 // multiple of the source's
	irregular int
	notes     []string
}

// prefixRun is a run of blocks that several sessions share. Runs form a tree, whose first
// is empty.
type prefixRun struct {
	Parent int `json:"parent,omitempty"`
	Blocks int `json:"blocks"`         // after its parent's
	Tail   int `json:"tail,omitempty"` // tokens of a partial last block, which ends the prompt, or 0
	// Template is set if the run is so common that all of the trace has it. The others
	// are new each time that the sessions of the source are repeated.
	Template bool `json:"template,omitempty"`

	depth int // blocks, including its parents'
}

// session is a session of the source, or one that is drawn.
type session struct {
	Start float64 `json:"start"` // in units of the clock
	Turns []turn  `json:"turns"` // in order of time
}

// client returns the number of its client, which is that of its first turn.
func (s *session) client() int { return s.Turns[0].Client }

// turn is a request of a session. It refers to earlier turns by how many turns they are
// back.
type turn struct {
	Gap    float64         `json:"gap,omitempty"` // since the turn with a timestamp before it, in units of the clock
	Timing int             `json:"timing,omitempty"`
	Delay  float64         `json:"delay,omitempty"`
	Kind   trace.DelayKind `json:"kind,omitempty"`

	Prefix int `json:"prefix,omitempty"`
	Own    int `json:"tokens,omitempty"` // after the prefix
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

// none stands for the lack of a number.
const none = -1

// reasonedParts are the parts of an answer in which its reasoning is counted.
const reasonedParts = 10_000

// BlockSize returns the tokens per block and how the size was determined. It is
// zero if the source has no block ids.
func (m *Model) BlockSize() trace.BlockSize {
	return m.size
}

// Irregular returns the number of source rows without one id per block. It is
// not stored in a model's file.
func (m *Model) Irregular() int { return m.irregular }

// Notes returns the properties of the source that the model drops or assumes, each one
// sentence without a full stop. A model file does not contain them.
func (m *Model) Notes() []string { return m.notes }

// SourceRequests returns the number of requests of the source.
func (m *Model) SourceRequests() (n int) {
	for i := range m.Sessions {
		n += len(m.Sessions[i].Turns)
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
	switch slots := float64(len(m.Sessions)) * faster.rate; {
	case slots < .001:
		return nil, fmt.Errorf("rate factor %v is too small: it leaves one session in more than 1,000 times the duration of the source", factor)
	case slots > 1e8:
		return nil, fmt.Errorf("rate factor %v is too large: it makes more than 100 million sessions of %d", factor, len(m.Sessions))
	}
	return &faster, nil
}

// Client describes a client of a model.
type Client struct {
	Name     string // "" if rows name no clients
	Requests int    // of the source
	Sessions int    // of the source
	ISL, OSL float64
}

// Clients returns the clients of the model, the largest first. The last may be
// "rest", which stands for those with few requests. The client of a session is that of
// its first request.
func (m *Model) Clients() []Client {
	all := make([]Client, len(m.KnownClients))
	for i := range all {
		all[i].Name = m.KnownClients[i].name
	}
	for i := range m.Sessions {
		s := &m.Sessions[i]
		c := &all[s.client()]
		c.Sessions++
		c.Requests += len(s.Turns)
		for k := range s.Turns {
			c.ISL += float64(m.islOf(&s.Turns[k]))
			c.OSL += float64(s.Turns[k].OSL)
		}
	}
	for i := range all {
		all[i].ISL /= float64(all[i].Requests)
		all[i].OSL /= float64(all[i].Requests)
	}
	rest := all[0]
	all = slices.DeleteFunc(all[1:], func(c Client) bool { return c.Requests == 0 })
	slices.SortStableFunc(all, func(a, b Client) int { return b.Requests - a.Requests })
	if rest.Requests > 0 {
		if len(all) > 0 {
			rest.Name = restName
		}
		all = append(all, rest)
	}
	return all
}

// restName is the name of the client that stands for those with few requests.
const restName = "rest"

// Only returns the model with the sessions of one client.
func (m *Model) Only(name string) (*Model, error) {
	var names []string
	for _, c := range m.Clients() {
		names = append(names, strconv.Quote(c.Name))
	}
	switch {
	case slices.Equal(names, []string{`""`}):
		return nil, errors.New("the rows of the source name no clients")
	case !slices.Contains(names, strconv.Quote(name)):
		return nil, fmt.Errorf("no client %q: the model has %s", name, strings.Join(names, ", "))
	}
	only := *m
	only.Sessions = nil
	for _, s := range m.Sessions {
		if m.KnownClients[s.client()].name == name || s.client() == 0 && name == restName {
			only.Sessions = append(only.Sessions, s)
		}
	}
	return &only, nil
}

// islOf returns the ISL of a turn.
func (m *Model) islOf(t *turn) int { return m.tokensOf(t.Prefix) + t.Own }

// tokensOf returns the tokens of a prefix.
func (m *Model) tokensOf(prefix int) int {
	p := &m.Prefixes[prefix]
	if p.Tail > 0 {
		return (p.depth-1)*m.Tokens + p.Tail
	}
	return p.depth * m.Tokens
}

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
