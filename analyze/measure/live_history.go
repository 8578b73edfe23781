package measure

import (
	"cmp"
	"slices"
	"sort"

	"moontide/replay"
	"moontide/replay/transcript"
	"moontide/trace"
)

// assumedBlock is the block size for live answers if the server's is unknown.
const assumedBlock = 16

// liveHistory rebuilds the prompts of a run from its records and relates each to the one
// that it continues. With live answers, history has the prompts in the server's blocks. It
// takes about 100 bytes per prompt, 100 per continued answer, and 30 per distinct block of
// the server.
type liveHistory struct {
	*collector
	serverBlock int
	history     promptHistory
	turns       Turns

	// By prompt of the trace's history, before it is sorted:
	request []int32 // -1 outside of sessions
	base    []int32 // prompt that it continues, or noBase
	next    []int32 // number of prompts that continue it and are not built
}

const noBase = -1

// Turns counts how the prompts of later turns relate to the prompt before them.
type Turns struct {
	trace.Relations
	Lost int // ids in after that no row of the trace has
	// Live answers, which are 0 if all answers are the trace's:
	Live          int // prompts that contain a real answer
	AnswerUnknown int // later turns after an unknown answer, as after a resume
	Answers       int // real answers that prompts contain
	Shorter       int // of Answers, those shorter than in the trace
	Longer        int
	Dropped       int // answers without their reasoning
	DroppedTokens int
	Cut           int // prompts without room for the whole answer
	CutTokens     int
}

// newLiveHistory must be called before the trace's history is sorted.
func (c *collector) newLiveHistory(serverBlock int) *liveHistory {
	h := &liveHistory{collector: c, serverBlock: serverBlock}
	h.turns.Lost = c.opts.LostTurns
	if c.sessionRequests == 0 || c.prompts.blockSize == 0 {
		c.live = false
		return h
	}
	n := len(c.prompts.prompts)
	h.request, h.base, h.next = filled(n, -1), filled(n, noBase), make([]int32, n)
	h.findBases()
	if !c.live {
		return h
	}
	own := &h.history
	own.blockSize = cmp.Or(max(serverBlock, 0), assumedBlock)
	own.hasCached, own.cachedDivisor, own.extras = c.prompts.hasCached, c.prompts.cachedDivisor, c.prompts.extras
	own.targets, own.continued = c.prompts.targets, map[int]continuation{}
	h.build()
	return h
}

// maxHits returns the upper bound of the cached tokens.
func (h *liveHistory) maxHits() trace.Opt[int] {
	if !h.live {
		return h.prompts.maxHits()
	}
	most := h.history.maxHits()
	if h.serverBlock <= 0 { // smaller blocks cache up to this much more of each prompt
		most.Value += len(h.prompts.prompts) * (assumedBlock - 1)
	}
	return most
}

func filled(n int, value int32) []int32 { return slices.Repeat([]int32{value}, n) }

// findBases finds the prompt that each later turn continues: the one in its record
// or, with the trace's answers, the one that [transcript.Base] finds.
func (h *liveHistory) findBases() {
	for i := range h.requests {
		if q := &h.requests[i]; q.inSession && q.prompt >= 0 {
			h.request[q.prompt] = int32(i)
		}
	}
	for prompt, request := range h.request {
		if request < 0 {
			continue
		}
		q := &h.requests[request]
		base, recorded := h.recordedBase(q)
		if !recorded {
			if base = h.tracedBase(int(request)); base == noBase {
				continue
			}
			if h.live {
				h.turns.AnswerUnknown++
				continue
			}
			h.count(h.prompt(base).Continue(transcript.Generated{}, h.row(int32(prompt)), q.Row))
			continue
		}
		if base == noBase || !h.before(base, int32(prompt)) {
			h.turns.AnswerUnknown++
			h.prompts.prompts[prompt].blind = true // nothing is known about its beginning
			continue
		}
		if h.base[prompt] = base; h.next[base] == 0 {
			h.countAnswer(base, h.baseOf(int32(prompt)).Answer)
		}
		h.next[base]++
	}
}

// before reports whether a prompt was sent before another.
func (h *liveHistory) before(a, b int32) bool {
	return sentOrder(h.prompts.prompts[a], h.prompts.prompts[b]) < 0
}

// recordedBase returns the prompt that a record says a request continues, or noBase
// if it has no record.
func (h *liveHistory) recordedBase(q *Request) (prompt int32, recorded bool) {
	if q.links == 0 || !h.links[q.links-1].base.Row.Set {
		return noBase, false
	}
	row := h.links[q.links-1].base.Row.Value
	at, found := slices.BinarySearchFunc(h.requests, row, func(q Request, row int) int { return cmp.Compare(q.Row, row) })
	if !found {
		return noBase, true
	}
	return h.requests[at].prompt, true
}

// tracedBase returns the prompt that a request continues by the trace, or noBase.
func (h *liveHistory) tracedBase(request int) int32 {
	var waited []*transcript.Prompt
	var prompts []int32
	for _, before := range h.graph.Before(request) {
		if at := h.requests[before].prompt; at >= 0 {
			waited, prompts = append(waited, h.prompt(at)), append(prompts, at)
		}
	}
	base := transcript.Base(h.row(h.requests[request].prompt), waited)
	if at := slices.Index(waited, base); base != nil {
		return prompts[at]
	}
	return noBase
}

// row returns the row of a prompt. Its block ids are numbers.
func (h *liveHistory) row(prompt int32) trace.Request {
	q := &h.prompts.prompts[prompt]
	r := trace.Request{InputLength: int(q.isl)}
	if request := h.request[prompt]; request >= 0 {
		r.SessionID = h.requests[request].session.Value()
	}
	for _, span := range h.prompts.ranges[q.ranges:q.rangesEnd] {
		for n := span.first; n < span.first+span.n; n++ {
			r.HashIDs = append(r.HashIDs, uint64(n))
		}
	}
	return r
}

// prompt returns the prompt of the trace.
func (h *liveHistory) prompt(i int32) *transcript.Prompt {
	return transcript.New(h.row(i), h.prompts.prompts[i].row, h.prompts.blockSize)
}

func (h *liveHistory) count(_ *transcript.Prompt, turn transcript.Turn) {
	t := &h.turns
	t.Add(turn.Relation)
	if turn.Answer > 0 {
		t.Live++
	}
	if turn.Cut > 0 {
		t.Cut++
		t.CutTokens += turn.Cut
	}
}

// builtPrompt is a prompt in the history.
type builtPrompt struct {
	*transcript.Prompt
	// ids are the hashes of the blocks of the prompt and its answer, numbers their numbers
	// in the history's table.
	ids     []uint64
	numbers []uint32
}

// build adds all prompts in send order, each after the one that it continues. It forgets
// prompts that no later one continues.
func (h *liveHistory) build() {
	order := make([]int32, len(h.base))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return sentOrder(h.prompts.prompts[a], h.prompts.prompts[b]) })
	built := map[int32]*builtPrompt{}
	for _, prompt := range order {
		p, before := &builtPrompt{}, built[h.base[prompt]]
		if before == nil {
			p.Prompt = h.prompt(prompt)
		} else {
			p.Prompt = h.continueFrom(before.Prompt, prompt)
			if h.next[h.base[prompt]]--; h.next[h.base[prompt]] == 0 {
				delete(built, h.base[prompt])
			}
		}
		if h.add(prompt, p, before); h.next[prompt] > 0 {
			built[prompt] = p
		}
	}
}

// continueFrom returns the content of a prompt that continues another.
func (h *liveHistory) continueFrom(before *transcript.Prompt, prompt int32) *transcript.Prompt {
	q, base := &h.prompts.prompts[prompt], &h.prompts.prompts[h.base[prompt]]
	answer := h.baseOf(prompt).Answer
	p, turn := before.Continue(answer, h.row(prompt), q.row)
	h.count(p, turn)
	if h.opts.TextAnswers {
		q.text = textTokens(p, turn)
	}
	if turn.Relation != trace.Extends {
		return p
	}
	k := continuation{base: base.row, before: base.length()}
	k.shared = k.before
	if n := h.generated(h.base[prompt]); n > 0 {
		k.base = generatedRow(base.row)
		if answer.Dropped == 0 {
			k.shared += int32(min(turn.Answer, n))
		}
	}
	h.history.continued[q.row] = k
	return p
}

// textTokens returns the number of answer tokens in a prompt whose text may encode to other
// tokens: those of the latest answer if the prompt extends one of known length.
func textTokens(p *transcript.Prompt, turn transcript.Turn) int32 {
	if turn.Relation == trace.Extends {
		return int32(turn.Answer)
	}
	tokens := 0
	for s := range p.Segments() {
		if s.Kind == transcript.Reply {
			tokens += s.Len
		}
	}
	return int32(tokens)
}

// textShare is the largest expected difference between the tokens of a generated answer and
// those of its text, as a share. A model with random weights, whose tokens no encoder
// chooses, has 18 %.
const textShare = 0.25

// textSlack returns by how many tokens the answers in a prompt may differ.
func (q *prompt) textSlack() int { return int(textShare * float64(q.text)) }

// length returns the number of tokens by the server's count, if known.
func (q *prompt) length() int32 {
	if q.input >= 0 {
		return q.input
	}
	return q.own
}

// compareLengths finds the prompts with answers as text whose lengths are off by more than
// 1 % and more than these answers explain. The client aims at the trace's ISL but exceeds
// it if the previous prompt and its answer are longer. It must be called before the trace's
// history is sorted.
func (h *liveHistory) compareLengths(l *Lengths) {
	for i := range h.requests {
		q := &h.requests[i]
		base, recorded := h.recordedBase(q)
		if !h.opts.TextAnswers || !q.Counted || !recorded {
			continue
		}
		p := &h.prompts.prompts[q.prompt]
		if p.input < 0 || p.estimated {
			continue
		}
		planned := h.opts.countedISL(int(q.ISL))
		aim := planned
		if p.text > 0 {
			l.AsText++
			l.TextTokens += int(p.input) - planned
		}
		if k, extends := h.history.continued[q.Row]; extends && base != noBase {
			aim = max(aim, int(k.before+p.text)+1)
		}
		if off := int(p.input) - aim; max(off, -off) > aim/100+p.textSlack() {
			l.PromptsOff++
		}
	}
}

func (h *liveHistory) baseOf(prompt int32) replay.Base {
	return h.links[h.requests[h.request[prompt]].links-1].base
}

// generatedRow is the row in the history of the answer to a row. No prompt has it, and it
// sorts before prompts that were sent when the answer ended.
func generatedRow(row int) int { return -1 - row }

// generated returns the number of generated tokens that the server caches after a prompt:
// all but the last, which no step has computed.
func (h *liveHistory) generated(prompt int32) int {
	if !h.opts.GeneratedCached || h.request[prompt] < 0 {
		return 0
	}
	q := &h.requests[h.request[prompt]]
	if q.Class != replay.OK || !q.Answered {
		return 0
	}
	return max(int(q.Output)-1, 0)
}

// add adds a prompt to the history and, if others continue it, its answer.
func (h *liveHistory) add(prompt int32, p, before *builtPrompt) {
	q := h.prompts.prompts[prompt]
	n := 0
	if h.next[prompt] > 0 {
		n = h.generated(prompt)
	}
	size := h.history.blockSize
	p.ids = p.Blocks(size, n)
	h.number(p, before)
	h.history.append(q, p.numbers[:p.Len/size])
	if n == 0 {
		return
	}
	ended := h.requests[h.request[prompt]].Last
	q.row, q.sent, q.first, q.own = generatedRow(q.row), ended, ended, q.own+int32(n)
	q.input, q.cached, q.counted = -1, -1, false
	h.history.append(q, p.numbers)
}

// number finds the numbers of a prompt's blocks. It copies those shared with the prompt
// before, because a look-up in the table takes far longer.
func (h *liveHistory) number(p, before *builtPrompt) {
	p.numbers = make([]uint32, 0, len(p.ids))
	if before != nil {
		// After the first difference, all hashes differ.
		same := sort.Search(min(len(p.ids), len(before.ids)), func(i int) bool { return p.ids[i] != before.ids[i] })
		p.numbers = append(p.numbers, before.numbers[:same]...)
	}
	p.numbers = h.history.table.AppendNumbers(p.numbers, p.ids[len(p.numbers):])
}

// countAnswer counts an answer that later prompts contain.
func (h *liveHistory) countAnswer(prompt int32, answer transcript.Generated) {
	t := &h.turns
	if answer.Dropped > 0 {
		t.Dropped++
		t.DroppedTokens += answer.Dropped
	}
	if answer.Tokens == 0 { // reasoning only
		return
	}
	t.Answers++
	if request := h.request[prompt]; request >= 0 {
		switch asked := max(int(h.requests[request].osl), 1); cmp.Compare(answer.Tokens+answer.Dropped, asked) {
		case -1:
			t.Shorter++
		case 1:
			t.Longer++
		}
	}
}

// predict returns the prediction for prompts with live answers, and that with the trace's
// answers.
func (h *liveHistory) predict(each bool) CachePrediction {
	traced := h.prompts.predict(h.serverBlock, each || h.live)
	if !h.live || traced.Requests == 0 {
		return traced
	}
	p := h.history.predict(h.serverBlock, true)
	again := 0
	for i := range p.Each { // both are in the same order
		e, t := &p.Each[i], &traced.Each[i]
		e.TracePredicted = t.Predicted
		again += max(min(e.Measured, e.Predicted)-t.Predicted, 0)
	}
	p.TracePredicted, p.FromAnswers = trace.Some(traced.Predicted), trace.Some(again)
	if !each {
		p.Each = nil
	}
	return p
}
