package sessions

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/stats"
)

// Model is a learned model of a trace. Make one with [Fit] or [Read]. It is
// immutable and safe for concurrent use.
type Model struct {
	*shared
	clients   []client
	irregular int
	untimed   int     // source rows without a timestamp
	speed     float64 // multiple of the source's rate
	hold      bool    // a trace longer than the source holds its last regime
	notes     []string
}

// shared is what all clients of a model have in common: what is in a row, and the
// templates.
type shared struct {
	file      modelFile
	size      trace.BlockSize
	hasBlocks bool       // rows have block ids
	templates []template // the first stands for no template
	firstFree uint64     // first block id not used by templates
}

// client is a source of requests with arrivals, lengths and sessions of its own.
type client struct {
	*shared
	*clientFile

	// Derived from the file:
	extra      []byte              // unknown keys of the rows, without reasoning
	extraFrom  []byte              // with reasoning, before its tokens
	extraTo    []byte              // and after them
	stream     string              // distinguishes its random streams
	popularity stats.Discrete[int] // templates by number of sessions
	firstTurns [2]joint            // without and with a template
	continues  [2]*choice          // whether and how a turn is continued: the first time, and again
	turns      [relations]joint    // of a continuation: kind of delay if known, kept share, wait
	lengths    [relations]joint    // tokens, OSL

	regimes []regimePopularity // templates by number of sessions, in each of TemplateRegimes
}

func newModel() *Model { return &Model{shared: &shared{}, speed: 1} }

// template is a shared prefix of many prompts, such as a system prompt or a
// document. Templates form a tree: a longer one extends its parent.
type template struct {
	parent int
	blocks int // after its parent's

	// tail is the tokens of a partial last block, which make the template a
	// whole prompt, or 0.
	tail int

	depth int    // blocks, including its parents'
	first uint64 // id of the first block after its parent's; the others follow in sequence
}

// run returns the template's blocks without its parents'.
func (t *template) run() synth.BlockRun { return synth.BlockRun{First: t.first, Blocks: t.blocks} }

// prepare derives the rest of the model from its valid file.
func (m *Model) prepare() {
	m.hasBlocks = m.file.BlockSize > 0
	m.file.Bursts.prepare()
	m.templates, m.firstFree = []template{{}}, m.file.FirstBlock
	for _, t := range m.file.Templates {
		own := template{parent: t[0], blocks: t[1], tail: t[2], first: m.firstFree}
		own.depth = m.templates[own.parent].depth + own.blocks
		m.firstFree += uint64(own.blocks)
		m.templates = append(m.templates, own)
	}
	m.clients = make([]client, len(m.file.Clients))
	for i := range m.clients {
		m.clients[i] = client{shared: m.shared, clientFile: &m.file.Clients[i]}
		if len(m.clients) > 1 {
			m.clients[i].stream = " of " + m.clients[i].Name
		}
		m.clients[i].prepare()
	}
}

func (c *client) prepare() {
	c.Arrivals.ofBursts = c.file.Bursts != nil
	c.popularity = stats.Discrete[int]{}
	keys, values := c.file.ClientKeys[:len(c.Values):len(c.Values)], c.Values[:len(c.Values):len(c.Values)]
	c.extra = slices.Clip(extraOf(keys, values))
	c.extraFrom, c.extraTo, _ = bytes.Cut(extraOf(append(keys, clientKey{c.file.ReasoningKey, numberValue}), append(values, tokensMark)), []byte(tokensMark))
	for _, t := range c.Templates {
		c.popularity.Add(t[0], t[1])
	}
	c.firstTurns = [2]joint{c.FirstTurn, c.FirstTurnTemplated}
	c.continues = [2]*choice{&c.Continues, &c.ContinuesAgain}
	c.regimes = regimePopularities(c.TemplateRegimes)
	for i, name := range relationNames {
		c.turns[i], c.lengths[i] = c.LaterTurns[name], c.LaterLengths[name]
	}
	joints := append(c.SubAgents.joints(), c.Reasoning, c.FirstTurn, c.FirstTurnTemplated, c.Arrivals.Steps)
	for _, j := range slices.Concat(c.turns[:], c.lengths[:], joints) {
		for i := range j {
			j[i].prepare()
		}
	}
}

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

// Notes returns notes on how the source was modelled, each one sentence without a
// full stop. They are not stored in a model's file.
func (m *Model) Notes() []string { return m.notes }

// SourceRequests returns the number of requests that the model was learned from.
func (m *Model) SourceRequests() int {
	n := 0
	for i := range m.clients {
		n += m.clients[i].Requests
	}
	return n
}

// Templates returns the number of shared prefixes in the model.
func (m *Model) Templates() int { return len(m.templates) - 1 }

// AtRate returns the model with factor times as many sessions per second; the
// time between the turns of a session is unchanged. (To speed up everything,
// use [trace.Speed] on the requests.) The factor must be positive and finite.
func (m *Model) AtRate(factor float64) (*Model, error) {
	if !(factor > 0) || math.IsInf(factor, 0) {
		return nil, fmt.Errorf("rate factor %v is not a positive number", factor)
	}
	faster := *m
	faster.speed *= factor
	return &faster, nil
}

// Hold returns the model for traces that, once longer than the source, continue with
// its last regime: the segments of a steady rate that make up at least its last tenth.
// Otherwise they repeat the source's course with new sessions.
func (m *Model) Hold() *Model {
	held := *m
	held.hold = true
	return &held
}

// firstTurnsOf returns the index in firstTurns for a session that starts
// with a template. It falls back to the other index if that one is empty.
func (c *client) firstTurnsOf(template int) int {
	i := indicator(template > 0)
	if len(c.firstTurns[i]) == 0 {
		return 1 - i
	}
	return i
}

func indicator(b bool) int {
	if b {
		return 1
	}
	return 0
}

// blocksOf returns the number of block ids of a prompt.
func (s *shared) blocksOf(isl int) int {
	if s.hasBlocks && !s.file.FullBlocksOnly {
		return (isl + s.size.Tokens - 1) / s.size.Tokens
	}
	return s.fullBlocks(isl)
}

// fullBlocks returns the number of full blocks of a prompt.
func (s *shared) fullBlocks(isl int) int {
	if !s.hasBlocks {
		return 0
	}
	return isl / s.size.Tokens
}

// tokensOf returns the number of tokens of a template, including its parents.
func (s *shared) tokensOf(template int) int {
	t := &s.templates[template]
	if t.tail > 0 {
		return (t.depth-1)*s.size.Tokens + t.tail
	}
	return t.depth * s.size.Tokens
}

// startKnown is the number of values that the lengths of a first turn depend
// on.
const startKnown = 3

// startContext returns these values: the time of the source, the blocks of the
// template, and whether the template is a whole prompt.
func (c *client) startContext(template int, phase float64) [startKnown]float64 {
	t := &c.templates[template]
	return [startKnown]float64{phase, float64(t.depth), float64(indicator(t.tail > 0))}
}

const (
	turnKnown   = 11            // number of values that a continuation depends on
	turnNumber  = 3             // the index of the turn's number among them
	maxNumber   = 64            // beyond it, numbers count the same
	lengthKnown = turnKnown + 4 // and its lengths: also the kept share, the wait, the time of the source, and the kind of delay
)

// timesContinued returns how often a turn was continued before, and a half more if it was
// repeated the last time: what is sent again continues the request that was sent last, so
// a repeated turn is not repeated again, but one that was extended may be.
func timesContinued(order int, last relation) float64 {
	times := float64(min(order, 4))
	if order > 0 && last == repeats {
		times += .5
	}
	return times
}

// turnContext returns the values that the package comment lists for continues.
// Close to the end of the source, its time would tell which continuations come too
// late to be seen.
func (c *client) turnContext(t *turn, order int, last relation) [turnKnown]float64 {
	return [turnKnown]float64{
		timesContinued(order, last), float64(t.isl), float64(t.osl), float64(min(t.number, maxNumber)),
		float64(t.isl - t.shared*c.size.Tokens), t.gap, t.meanGap, min(t.phase, c.Arrivals.PeriodMs-c.SettledMs),
		float64(t.isl - c.tokensOf(t.template)), float64(min(t.level, 3)), float64(min(t.calls, 64)),
	}
}
