package format

import (
	"fmt"
	"math"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// traceLabBlock is the block size of the ids that rounds get, in tokens.
const traceLabBlock = 64

// maxRound bounds the tokens of a prompt: ids are derived for a number.
const maxRound = 1 << 24

// traceLab is the source of a TraceLab trace: JSON lines with one request, a round
// of a coding agent, each. Rounds of a session follow one another; sessions overlap.
type traceLab struct{ agents }

// prompt has the blocks of a prompt.
type prompt struct {
	ids    []uint64
	unused uint64 // the first id that no prompt of the session had
	tokens int
}

// extend replaces the prompt by that of the next round, the first tokens of which are
// shared with it.
func (p *prompt) extend(shared, tokens int) {
	p.ids = p.ids[:min(shared, p.tokens, tokens)/traceLabBlock]
	for p.tokens = tokens; len(p.ids)*traceLabBlock < tokens; p.unused++ {
		p.ids = append(p.ids, p.unused)
	}
}

func newTraceLab(files textFiles) *traceLab {
	n := files.notes
	n.say("block ids of %d tokens are derived: a prompt begins like the previous one of its session, for as many tokens as the provider had cached (prefix_tokens)", traceLabBlock)
	n.say("sub-agents are sessions of their own, as the trace does not say who called them")
	t := &traceLab{agents{numbers: map[string]int32{}}}
	t.textFiles, t.layout = files, t
	return t
}

func (t *traceLab) BlockSize() int { return traceLabBlock }

// index adds the request of a line.
func (t *traceLab) index(line []byte) error {
	var model []byte
	var recorded jsonscan.Object
	var output trace.Opt[int]
	var row trace.Request
	prefix, ran := 0, roundTimes{begin: math.NaN(), end: math.NaN()}
	err := readRow(line, keys{
		{"session_id", into(&row.SessionID, parseString)},
		{"model", into(&model, parseAnything)},
		{"input_tokens_total", into(&row.InputLength, parseLength)},
		{"output_tokens", optional(&output, parseLength)},
	}, keys{
		{"prefix_tokens", into(&prefix, parseLength)},
		{"timing_events", ran.read},
	}, &recorded, "session_id", "input_tokens_total")
	switch {
	case err != nil:
		return err
	case row.InputLength > maxRound:
		return fmt.Errorf("input_tokens_total is out of range: %d, more than %d tokens", row.InputLength, maxRound)
	case math.IsNaN(ran.begin):
		t.notes.count("rounds left out, without times")
		return nil
	case !output.Set:
		t.notes.count("rounds without output_tokens, with an output length of 0")
	}
	row.OutputLength, row.Extra = output.Value, unknownKeys(model, recorded, !output.Set)
	row.ContextLen = trace.Some(prefix) // until request derives the block ids
	return t.addRow(&row, ran.begin, t.line, call{ref: ref{session: t.sessionOf(row.SessionID)}, end: ran.end, kind: ran.kind})
}

func (t *traceLab) request(record []byte, s *spot[call], r *trace.Request) error {
	ids := r.HashIDs[:0]
	err := t.agents.request(record, s, r)
	p := &t.sessions[s.about.session].prompt
	p.extend(r.ContextLen.Value, r.InputLength)
	r.HashIDs = append(ids, p.ids...)
	namespaceOf(r.SessionID).apply(r.HashIDs)
	if s.about.ends {
		p.ids = nil
	}
	r.ContextLen = trace.Opt[int]{}
	r.Timestamp.Value = roundToMicrosecond(r.Timestamp.Value)
	return err
}

// roundTimes is when a round began and ended, in ms since 1970, NaN if unknown, and the kind of
// the delay before it.
type roundTimes struct {
	begin, end float64
	kind       trace.DelayKind
}

// read finds the times in the events of a round. It begins with the last message
// of the user or result of a tool before the first output of the model, and ends
// with the last output.
func (r *roundTimes) read(_ int, raw []byte) error {
	if _, err := parseArray(raw); err != nil {
		return err
	}
	answered := false
	return jsonscan.Elements(raw, func(_ int, raw []byte) error {
		var kind string
		at := math.NaN()
		if _, err := parseObject(raw); err != nil {
			return fmt.Errorf("has an element that %w", err)
		}
		err := readMembers("has an event whose ", raw, keys{{"event_type", into(&kind, parseString)}, {"timestamp", into(&at, parseEventTime)}}, nil, nil)
		if err != nil || math.IsNaN(at) {
			return err
		}
		switch input := kind == "user_message" || kind == "tool_result"; {
		case input && !answered:
			r.begin, r.kind = at, trace.Tool
			if kind == "user_message" {
				r.kind = trace.Think
			}
		case !input:
			answered, r.begin = true, timeOr(r.begin, at)
			r.end = max(at, r.begin)
		}
		return nil
	})
}

// parseEventTime parses a date in a string, and returns milliseconds since 1970.
func parseEventTime(raw []byte) (float64, error) {
	text, err := parseString(raw)
	if err != nil {
		return 0, err
	}
	ns, err := parseDate([]byte(text))
	return float64(ns) / 1e6, err
}
