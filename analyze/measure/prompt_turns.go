package measure

import (
	"cmp"
	"slices"
	"sort"

	"moontide/replay"
	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/block"
)

// assumedBlock is the block size for live answers if the server's is unknown.
const assumedBlock = 16

// textShare is the largest expected difference between the tokens of a generated answer and
// those of its text, as a share. A model with random weights, whose tokens no encoder
// chooses, has 18 %.
const textShare = 0.25

// predictor relates the prompts of a run to those that they continue, and predicts the cached
// tokens. Prompts with real answers are rebuilt from the records, in the server's blocks.
type predictor struct {
	*collector
	serverBlock int
	maxHits     trace.Opt[int]
	prediction  CachePrediction
	turns       Turns
	lengths     Lengths // of prompts with real answers

	// By request, if prompts are related:
	base []int32 // request whose prompt it continues, or noBase
	next []int32 // number of requests that continue it and are not rebuilt
}

// Turns counts how the prompts of later turns relate to the prompt before them.
type Turns struct {
	block.Relations
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

// predict computes the figures of p. The requests must be sorted.
func (p *predictor) predict(each bool) {
	p.serverBlock = max(cmp.Or(p.opts.ServerBlockSize, p.opts.Samples.Server.BlockSize), 0)
	each, live := each || p.inSessions > 0, p.live && p.inSessions > 0 && p.opts.BlockSize > 0
	p.turns.Lost = p.opts.LostTurns
	traced := &prefixCache{blockSize: p.opts.BlockSize, blocks: &p.blocks}
	for q := range p.all {
		if q.WasSent {
			traced.add(p.promptOf(q))
		}
	}
	cache := traced
	if p.inSessions > 0 && p.opts.BlockSize > 0 {
		n := len(p.requests)
		p.base, p.next = slices.Repeat([]int32{noBase}, n), make([]int32, n)
		for i := range p.requests {
			p.findBase(int32(i), live)
		}
	}
	p.maxHits = traced.maxHits()
	if live {
		cache = p.rebuild()
		p.maxHits = cache.maxHits()
		if p.serverBlock == 0 { // smaller blocks cache up to this much more of each prompt
			p.maxHits.Value += len(traced.prompts) * (assumedBlock - 1)
		}
	}
	p.compareLengths()
	counts := p.serverCounts()
	if !counts.cached || p.opts.BlockSize == 0 {
		return
	}
	p.prediction = cache.compare(counts, p.serverBlock, live, each)
	if live {
		p.compareTraced(traced.compare(counts, p.serverBlock, false, each))
	}
}

// compareTraced compares the prediction with that for the trace's answers.
func (p *predictor) compareTraced(traced CachePrediction) {
	fromAnswers := 0
	for i := range p.prediction.Each { // both are in the same order
		e, t := &p.prediction.Each[i], &traced.Each[i]
		e.TracePredicted = t.Predicted
		fromAnswers += max(min(e.Measured, e.Predicted)-t.Predicted, 0)
	}
	p.prediction.TracePredicted, p.prediction.FromAnswers = trace.Some(traced.Predicted), trace.Some(fromAnswers)
}

// findBase finds the prompt that a later turn continues: the one in its record or, with the
// trace's answers, the one that [transcript.Base] finds.
func (p *predictor) findBase(i int32, live bool) {
	q := &p.requests[i]
	if !q.inSession || !q.WasSent {
		return
	}
	base, recorded := p.recordedBase(q)
	switch {
	case !recorded:
		if base = p.tracedBase(i); base == noBase {
			return
		}
		if live {
			p.turns.AnswerUnknown++
			return
		}
		_, turn := p.prompt(base).Continue(transcript.Generated{}, p.row(i), q.Row)
		p.turns.add(turn)
	case base == noBase || sentOrder(&p.requests[base], q) >= 0:
		p.turns.AnswerUnknown++
		q.blind = true
	default:
		if p.base[i] = base; p.next[base] == 0 {
			p.turns.addAnswer(p.links[q.links-1].base.Answer, int(p.requests[base].MaxTokens))
		}
		p.next[base]++
	}
}

// recordedBase returns the request that a record says a request continues, or noBase if it
// has no record.
func (p *predictor) recordedBase(q *Request) (base int32, recorded bool) {
	if !q.hasBase {
		return noBase, false
	}
	row := p.links[q.links-1].base.Row.Value
	at, found := slices.BinarySearchFunc(p.requests, row, func(q Request, row int) int { return cmp.Compare(q.Row, row) })
	if !found || !p.requests[at].WasSent {
		return noBase, true
	}
	return int32(at), true
}

// tracedBase returns the request that a request continues by the trace, or noBase.
func (p *predictor) tracedBase(i int32) int32 {
	var waited []*transcript.Prompt
	var requests []int32
	for _, before := range p.graph.Before(int(i)) {
		if p.requests[before].WasSent {
			waited, requests = append(waited, p.prompt(before)), append(requests, before)
		}
	}
	base := transcript.Base(p.row(i), waited)
	if at := slices.Index(waited, base); base != nil {
		return requests[at]
	}
	return noBase
}

// row returns the row of a request. Its block ids are numbers.
func (p *predictor) row(i int32) trace.Request {
	q := &p.requests[i]
	r := trace.Request{InputLength: int(q.ISL), SessionID: q.session.Value()}
	for n := range p.blocks.of(q.blocks) {
		r.HashIDs = append(r.HashIDs, uint64(n))
	}
	return r
}

// prompt returns the prompt of the trace.
func (p *predictor) prompt(i int32) *transcript.Prompt {
	return transcript.New(p.row(i), p.requests[i].Row, p.opts.BlockSize)
}

// rebuilt is a prompt with real answers.
type rebuilt struct {
	*transcript.Prompt
	index int32 // in the cache, with its answer if others continue it
	// ids are the hashes of the blocks of the prompt and its answer, numbers their numbers
	// in the cache's table.
	ids     []uint64
	numbers []uint32
}

// rebuild returns a cache with all prompts as they were sent, in blocks of the server, each
// after the one that it continues. It forgets prompts that no later one continues.
func (p *predictor) rebuild() *prefixCache {
	cache := &prefixCache{blockSize: cmp.Or(p.serverBlock, assumedBlock), blocks: &promptBlocks{}}
	all := map[int32]*rebuilt{} // by request
	for _, i := range inOrder(len(p.requests), func(a, b int32) int { return sentOrder(&p.requests[a], &p.requests[b]) }) {
		q := &p.requests[i]
		if !q.WasSent {
			continue
		}
		now, entry := &rebuilt{}, p.promptOf(q)
		before := all[p.base[i]]
		if before == nil {
			now.Prompt = p.prompt(i)
		} else {
			now.Prompt = p.extend(before, i, &entry)
			if p.next[p.base[i]]--; p.next[p.base[i]] == 0 {
				delete(all, p.base[i])
			}
		}
		generated := 0
		if p.next[i] > 0 {
			all[i], generated = now, p.generated(q)
		}
		now.ids = now.Blocks(cache.blockSize, generated)
		now.number(before, &cache.blocks.table)
		entry.blocks = cache.blocks.addNumbers(now.numbers[:now.Len/cache.blockSize])
		if now.index = cache.add(entry); generated > 0 {
			now.index = cache.add(cachedPrompt{
				Request: q, isAnswer: true, sent: q.Last, first: q.Last, row: -1 - q.Row, length: entry.length + int32(generated),
				blocks: cache.blocks.addNumbers(now.numbers), base: noBase,
			})
		}
	}
	return cache
}

// extend returns the content of a prompt that continues another, and sets in its entry what
// it continues.
func (p *predictor) extend(before *rebuilt, i int32, entry *cachedPrompt) *transcript.Prompt {
	q, base := &p.requests[i], &p.requests[p.base[i]]
	answer := p.links[q.links-1].base.Answer
	prompt, turn := before.Continue(answer, p.row(i), q.Row)
	p.turns.add(turn)
	if p.opts.TextAnswers {
		q.asText = textTokens(prompt, turn)
	}
	if turn.Relation != block.Extends {
		return prompt
	}
	q.baseTokens = int32(p.promptOf(base).tokens())
	entry.base, entry.cacheable = before.index, q.baseTokens
	if answer.Dropped == 0 {
		entry.cacheable += int32(min(turn.Answer, p.generated(base)))
	}
	return prompt
}

// generated returns the number of generated tokens that the server caches after a prompt:
// all but the last, which no step has computed.
func (p *predictor) generated(q *Request) int {
	if !p.opts.GeneratedCached || !q.inSession || q.Class != replay.OK || !q.Answered {
		return 0
	}
	return max(int(q.Output)-1, 0)
}

// number finds the numbers of a prompt's blocks. It copies those shared with the prompt
// before, because a look-up in the table takes far longer.
func (r *rebuilt) number(before *rebuilt, table *block.Table) {
	r.numbers = make([]uint32, 0, len(r.ids))
	if before != nil {
		// After the first difference, all hashes differ.
		same := sort.Search(min(len(r.ids), len(before.ids)), func(i int) bool { return r.ids[i] != before.ids[i] })
		r.numbers = append(r.numbers, before.numbers[:same]...)
	}
	r.numbers = table.AppendNumbers(r.numbers, r.ids[len(r.numbers):])
}

// textSlack returns by how many tokens the answers in a prompt may differ.
func (q *Request) textSlack() int { return int(textShare * float64(q.asText)) }

// compareLengths finds the prompts with answers as text whose lengths are off by more than
// 1 % and more than these answers explain. The client aims at the trace's ISL but exceeds
// it if the previous prompt and its answer are longer.
func (p *predictor) compareLengths() {
	for q := range p.all {
		if !p.opts.TextAnswers || !q.Counted || !q.hasBase || !q.WasSent || q.Input < 0 || q.estimated {
			continue
		}
		planned := p.opts.countedISL(int(q.ISL))
		aim := planned
		if q.asText > 0 {
			p.lengths.AsText++
			p.lengths.TextTokens += int(q.Input) - planned
		}
		if q.baseTokens > 0 {
			aim = max(aim, int(q.baseTokens+q.asText)+1)
		}
		off := int(q.Input) - aim
		countIf(&p.lengths.PromptsOff, max(off, -off) > aim/100+q.textSlack())
	}
}

func (t *Turns) add(turn transcript.Turn) {
	t.Add(turn.Relation)
	countIf(&t.Live, turn.Answer > 0)
	countIf(&t.Cut, turn.Cut > 0)
	t.CutTokens += turn.Cut
}

// addAnswer counts an answer that later prompts contain, which was to have some tokens.
func (t *Turns) addAnswer(answer transcript.Generated, planned int) {
	countIf(&t.Dropped, answer.Dropped > 0)
	t.DroppedTokens += answer.Dropped
	if answer.Tokens == 0 { // reasoning only
		return
	}
	t.Answers++
	countIf(&t.Shorter, answer.Tokens+answer.Dropped < planned)
	countIf(&t.Longer, answer.Tokens+answer.Dropped > planned)
}

// textTokens returns the number of answer tokens in a prompt whose text may encode to other
// tokens: those of the latest answer if the prompt extends one of known length.
func textTokens(p *transcript.Prompt, turn transcript.Turn) int32 {
	if turn.Relation == block.Extends {
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
