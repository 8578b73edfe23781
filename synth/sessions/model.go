package sessions

import (
	"fmt"
	"math"

	"moontide/synth"
	"moontide/trace"
	"moontide/trace/stats"
)

// Model is a learned model of a trace. Make one with [Fit] or [Read]. It is
// immutable and safe for concurrent use.
type Model struct {
	file      modelFile
	size      trace.BlockSize
	hasBlocks bool // rows have block ids
	irregular int
	untimed   int     // source rows without a timestamp
	speed     float64 // multiple of the source's rate

	// Derived from the file:
	templates  []template          // the first stands for no template
	popularity stats.Discrete[int] // templates by number of sessions
	firstFree  uint64              // first block id not used by templates
	firstTurns [2]joint            // without and with a template
	continues  [2]*choice          // whether and how a turn is continued: the first time, and again
	turns      [relations]joint    // of a continuation: kept share, wait, tokens, OSL
}

// template is a shared prefix of many prompts, such as a system prompt or a
// document. Templates form a tree: a longer one extends its parent.
type template struct {
	parent   int
	blocks   int // after its parent's
	sessions int // that start with it and no longer one; at least minRequests, or 0

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
	f := &m.file
	m.hasBlocks = f.BlockSize > 0
	m.templates = []template{{}}
	for i, t := range f.Templates {
		own := template{parent: t[0], blocks: t[1], sessions: t[2], tail: t[3], first: m.firstFree}
		own.depth = m.templates[own.parent].depth + own.blocks
		m.firstFree += uint64(own.blocks)
		m.templates = append(m.templates, own)
		m.popularity.Add(i+1, own.sessions)
	}
	m.firstTurns = [2]joint{f.FirstTurn, f.FirstTurnTemplated}
	m.continues = [2]*choice{&f.Continues, &f.ContinuesAgain}
	for i, name := range relationNames {
		m.turns[i] = f.LaterTurns[name]
	}
	for _, j := range append(m.turns[:], f.FirstTurn, f.FirstTurnTemplated, f.Arrivals.Steps) {
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

// SourceRequests returns the number of requests that the model was learned from.
func (m *Model) SourceRequests() int { return m.file.Requests }

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

// firstTurnsOf returns the index in Model.firstTurns for a session that starts
// with a template. It falls back to the other index if that one is empty.
func (m *Model) firstTurnsOf(template int) int {
	i := indicator(template > 0)
	if len(m.firstTurns[i]) == 0 {
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
func (m *Model) blocksOf(isl int) int {
	if m.hasBlocks && !m.file.FullBlocksOnly {
		return (isl + m.size.Tokens - 1) / m.size.Tokens
	}
	return m.fullBlocks(isl)
}

// fullBlocks returns the number of full blocks of a prompt.
func (m *Model) fullBlocks(isl int) int {
	if !m.hasBlocks {
		return 0
	}
	return isl / m.size.Tokens
}

// tokensOf returns the number of tokens of a template, including its parents.
func (m *Model) tokensOf(template int) int {
	t := &m.templates[template]
	if t.tail > 0 {
		return (t.depth-1)*m.size.Tokens + t.tail
	}
	return t.depth * m.size.Tokens
}

// startKnown is the number of values that the lengths of a first turn depend
// on.
const startKnown = 3

// startContext returns these values: the time until the trace has settled, the
// blocks of the template, and whether the template is a whole prompt.
func (m *Model) startContext(template int, at float64) [startKnown]float64 {
	t := &m.templates[template]
	return [startKnown]float64{min(at, m.file.SettledMs), float64(t.depth), float64(indicator(t.tail > 0))}
}

// turnKnown is the number of values that a continuation depends on.
const turnKnown = 9

// turnContext returns the values that the package comment lists for continues.
func (m *Model) turnContext(t *turn, order int) [turnKnown]float64 {
	return [turnKnown]float64{
		float64(min(order, 4)), float64(t.isl), float64(t.osl), float64(min(t.number, 64)),
		float64(t.isl - t.shared*m.size.Tokens), t.gap, t.meanGap, min(t.at, m.file.SettledMs),
		float64(t.isl - m.tokensOf(t.template)),
	}
}
