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
	layout
	prefixes []prefixRun // prefixes[0] is the empty one
	clients  []client    // clients[0] has no values
	sessions []session   // in order of start
	clock    clock
	isl, osl fixedLengths

	rate      float64 // multiple of the source's
	irregular int
	untimed   int
	notes     []string
}

// layout is what is in a row.
type layout struct {
	size           trace.BlockSize
	hasBlocks      bool // rows have block ids
	fullBlocksOnly bool // a partial last block has no id
	firstBlock     uint64
	graph          bool // rows name the rows that they wait for
	keys           []string
	reasoningKey   string
}

// prefixRun is a run of blocks that several sessions share. Runs form a tree.
type prefixRun struct {
	parent int
	blocks int // after its parent's
	tail   int // tokens of a partial last block, which ends the prompt, or 0
	// template is set if the run is so common that all of the trace has it. The others
	// are new each time that the sessions of the source are repeated.
	template bool

	depth int // blocks, including its parents'
}

// session is a session of the source, or one that is drawn.
type session struct {
	start  float64 // in units of the clock
	client int     // of its first turn
	turns  []turn  // in order of time
}

// turn is a request of a session.
type turn struct {
	gap     float64 // since the turn before it, in units of the clock
	untimed bool    // has a delay instead of a timestamp
	delay   trace.Opt[float64]
	kind    trace.DelayKind

	prefix int // of the prefixes
	own    int // tokens after the prefix
	osl    int
	parent int // an earlier turn with the same prefix that it shares blocks with, or none
	shared int // these blocks, after the prefix

	reasoned float64 // share of the answer, or none
	client   int
	agent    int   // of the session, each with a session id, or none
	named    bool  // the turn names those that it waits for
	after    []int // turns that it waits for: those that it names, or the one before of its agent
}

const none = -1

// BlockSize returns the tokens per block and how the size was determined. It is
// zero if the source has no block ids.
func (m *Model) BlockSize() trace.BlockSize {
	if !m.hasBlocks {
		return trace.BlockSize{}
	}
	return m.size
}

// Irregular returns the number of source rows without one id per block. It is
// not stored in a model's file.
func (m *Model) Irregular() int { return m.irregular }

// Untimed returns the number of source rows without a timestamp, whose times were
// estimated from delays and [trace.AnswerTime]. It is not stored in a model's file.
func (m *Model) Untimed() int { return m.untimed }

// Notes returns notes on what the model does not keep, each one sentence without a
// full stop. They are not stored in a model's file.
func (m *Model) Notes() []string { return m.notes }

// SourceRequests returns the number of requests of the source.
func (m *Model) SourceRequests() (n int) {
	for i := range m.sessions {
		n += len(m.sessions[i].turns)
	}
	return n
}

// maxSlots limits the sessions that a model starts in the time of its source.
const maxSlots = 100_000_000

// AtRate returns the model with factor times as many sessions in the same time; the
// time between the turns of a session is unchanged. (To speed up everything, use
// [trace.Speed] on the requests.)
func (m *Model) AtRate(factor float64) (*Model, error) {
	if !(factor > 0) || math.IsInf(factor, 0) {
		return nil, fmt.Errorf("rate factor %v is not a positive number", factor)
	}
	faster := *m
	faster.rate *= factor
	switch slots := float64(len(m.sessions)) * faster.rate; {
	case slots < .001:
		return nil, fmt.Errorf("rate factor %v is too small: it leaves one session in more than 1,000 times the duration of the source", factor)
	case slots > maxSlots:
		return nil, fmt.Errorf("rate factor %v is too large: it makes more than %d sessions of %d", factor, maxSlots, len(m.sessions))
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
	all := make([]Client, len(m.clients))
	for i := range all {
		all[i].Name = m.clients[i].name
	}
	for i := range m.sessions {
		s := &m.sessions[i]
		c := &all[s.client]
		c.Sessions++
		c.Requests += len(s.turns)
		for k := range s.turns {
			c.ISL += float64(m.islOf(&s.turns[k]))
			c.OSL += float64(s.turns[k].osl)
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
	only.sessions = nil
	for _, s := range m.sessions {
		if m.clients[s.client].name == name || s.client == 0 && name == restName {
			only.sessions = append(only.sessions, s)
		}
	}
	return &only, nil
}

// islOf returns the ISL of a turn.
func (m *Model) islOf(t *turn) int { return m.tokensOf(t.prefix) + t.own }

// tokensOf returns the tokens of a prefix.
func (m *Model) tokensOf(prefix int) int {
	p := &m.prefixes[prefix]
	if p.tail > 0 {
		return (p.depth-1)*m.size.Tokens + p.tail
	}
	return p.depth * m.size.Tokens
}

// blocksOf returns the number of block ids of a prompt.
func (l *layout) blocksOf(isl int) int {
	if l.hasBlocks && !l.fullBlocksOnly {
		return (isl + l.size.Tokens - 1) / l.size.Tokens
	}
	return l.fullBlocks(isl)
}

// fullBlocks returns the number of full blocks of a prompt.
func (l *layout) fullBlocks(isl int) int {
	if !l.hasBlocks {
		return 0
	}
	return isl / l.size.Tokens
}

// addDepths sets the depths of the prefixes.
func (m *Model) addDepths() {
	for i := 1; i < len(m.prefixes); i++ {
		p := &m.prefixes[i]
		p.depth = m.prefixes[p.parent].depth + p.blocks
	}
}
