package run

import (
	"cmp"
	"math"
	"slices"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace/block"
)

// prompts are the prompts of a run by their blocks, from which follows what each
// could find cached. Records come in the order in which requests ended, so they
// are kept until all are known: some 80 bytes for each, with its blocks as the
// few runs of consecutive numbers that they are, and 12 bytes for each distinct
// block of a server.
type prompts struct {
	blockSize int // of the trace
	ownISL    func(isl int) int
	table     block.Table
	sent      []sentPrompt
	runs      []numberRun
	numbers   []uint32 // of the last prompt, reused

	said          bool // the server said what was cached, at least once
	cachedDivisor int  // greatest common divisor of what it said
	extras        map[int]int

	targets map[int]int32 // the servers' indexes, by what records call them
	names   []int         // and back

	// Of order: when blocks were first sent and computed, by anyone and by each
	// of several servers.
	anyone  blockTimes
	servers []blockTimes
	tails   map[uint32][]int // prompts that end within a block, by its number
}

// everywhere stands for all servers in place of one.
const everywhere = -1

// sentPrompt is a prompt that was sent.
type sentPrompt struct {
	sent, first   time.Duration // first is never where no token came
	row           int
	target        int32
	isl, own      int32 // of its row, and as many of these as were sent
	input, cached int32 // by the server's count, -1 if it gave none
	runs, runsEnd uint32
	blocks, tail  int32 // blocks, and the tokens of the last of them
	counted       bool  // it is compared
	blind         bool  // the trace does not say what it shares

	// Places in the order in which prompts were sent, and in that in which their
	// first tokens came.
	sentAt, firstAt uint32
	sentByFirst     uint32 // prompts that were sent when its first token came
	firstBySent     uint32 // first tokens that had come when it was sent
}

// numberRun is n consecutive block numbers.
type numberRun struct{ first, n uint32 }

// blockTimes tell for each full block, by its number, the sentAt of the two
// prompts with it that were sent first, and the least firstAt: each plus 1, so
// that 0 is never.
type blockTimes struct{ sent, again, computed block.Sparse }

// never is when a first token came that did not come.
const never = time.Duration(math.MaxInt64)

// add takes a record that was sent, and returns the numbers of its blocks, which
// are valid until the next call. Whether its prompt is compared is said by
// counted.
func (p *prompts) add(rec *replay.Record, counted bool) (numbers []uint32) {
	p.numbers = p.table.AppendNumbers(p.numbers[:0], rec.HashIDs)
	q := sentPrompt{
		sent: rec.Sent.Value, first: never, row: rec.Row, target: p.target(rec.Target),
		isl: int32(rec.InputLength), own: int32(p.ownISL(rec.InputLength)), input: -1, cached: -1,
		counted: counted, blind: rec.HashIDs == nil, runs: uint32(len(p.runs)),
	}
	if rec.First.Set {
		q.first = max(rec.First.Value, q.sent)
	}
	if n := rec.Counts.Input; n.Set {
		q.input = int32(min(n.Value, math.MaxInt32))
		if counted && !runfile.ISLEstimated(rec) {
			p.extras[n.Value-int(q.own)]++
		}
	}
	if n := rec.Counts.Cached; n.Set && counted {
		q.cached = int32(min(n.Value, math.MaxInt32))
		p.said = true
		p.cachedDivisor = divisor(p.cachedDivisor, n.Value)
	}
	p.addBlocks(&q)
	p.sent = append(p.sent, q)
	return p.numbers
}

// addBlocks keeps the blocks that lie within the prompt.
func (p *prompts) addBlocks(q *sentPrompt) {
	if p.blockSize > 0 && q.own > 0 {
		size := int32(p.blockSize)
		q.blocks = min(int32(len(p.numbers)), (q.own-1)/size+1)
		q.tail = min(size, q.own-(q.blocks-1)*size)
	}
	own := len(p.runs)
	for _, n := range p.numbers[:q.blocks] {
		if last := len(p.runs) - 1; last >= own && p.runs[last].first+p.runs[last].n == n {
			p.runs[last].n++
			continue
		}
		p.runs = append(p.runs, numberRun{n, 1})
	}
	q.runsEnd = uint32(len(p.runs))
}

// target is the index of a server.
func (p *prompts) target(named int) int32 {
	index, known := p.targets[named]
	if !known {
		index = int32(len(p.targets))
		p.targets[named] = index
		p.names = append(p.names, named)
	}
	return index
}

func divisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// template is what most prompts had more than meant. Of equally many it is the
// least.
func (p *prompts) template() int {
	most, tokens := 0, 0
	for extra, n := range p.extras {
		if extra >= 0 && (n > most || n == most && extra < tokens) {
			most, tokens = n, extra
		}
	}
	return tokens
}

// order places the prompts in the order in which they were sent, and notes when
// each block was first sent and computed.
func (p *prompts) order() {
	slices.SortFunc(p.sent, func(a, b sentPrompt) int {
		return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.row, b.row))
	})
	byFirst := make([]int32, len(p.sent))
	for i := range p.sent {
		byFirst[i] = int32(i)
	}
	slices.SortFunc(byFirst, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.sent[a].first, p.sent[b].first), cmp.Compare(a, b))
	})
	for place, i := range byFirst {
		p.sent[i].firstAt = uint32(place)
	}
	for i := range p.sent {
		q := &p.sent[i]
		q.sentAt = uint32(i)
		sent, _ := slices.BinarySearchFunc(p.sent, q.first, func(r sentPrompt, at time.Duration) int { return cmp.Compare(r.sent, at) })
		q.sentByFirst = max(uint32(sent), q.sentAt+1)
		first, _ := slices.BinarySearchFunc(byFirst, q.sent, func(r int32, at time.Duration) int { return cmp.Compare(p.sent[r].first, at) })
		q.firstBySent = uint32(first)
	}
	if len(p.targets) > 1 {
		p.servers = make([]blockTimes, len(p.targets))
	}
	p.tails = map[uint32][]int{}
	for i := range p.sent {
		p.note(&p.sent[i])
	}
}

// note takes down when the blocks of a prompt were sent and computed. Prompts
// come in the order in which they were sent.
func (p *prompts) note(q *sentPrompt) {
	at := int32(0)
	for _, run := range p.runs[q.runs:q.runsEnd] {
		for n := run.first; n < run.first+run.n; n++ {
			if at++; at == q.blocks && int(q.tail) < p.blockSize {
				p.tails[n] = append(p.tails[n], int(q.sentAt))
				continue
			}
			p.anyone.note(n, q)
			if p.servers != nil {
				p.servers[q.target].note(n, q)
			}
		}
	}
}

func (t *blockTimes) note(n uint32, q *sentPrompt) {
	switch {
	case t.sent.At(n) == 0:
		t.sent.Set(n, q.sentAt+1)
	case t.again.At(n) == 0:
		t.again.Set(n, q.sentAt+1)
	}
	if known := t.computed.At(n); q.first != never && (known == 0 || q.firstAt+1 < known) {
		t.computed.Set(n, q.firstAt+1)
	}
}

// before reports whether a noted place is one that lies before another.
func before(noted, place uint32) bool { return noted != 0 && noted-1 < place }

// of are the times of a server, or of everywhere.
func (p *prompts) of(target int32) *blockTimes {
	if target == everywhere || p.servers == nil {
		return &p.anyone
	}
	return &p.servers[target]
}

// sharedBefore is how many tokens of a prompt begin one that was sent before it
// to a server.
func (p *prompts) sharedBefore(q *sentPrompt, target int32) int {
	t := p.of(target)
	return p.prefix(q, target,
		func(n uint32) bool { return before(t.sent.At(n), q.sentAt) },
		func(r *sentPrompt) bool { return r.sentAt < q.sentAt })
}

// computedBefore is how many begin one whose first token its server had sent
// when the prompt was sent.
func (p *prompts) computedBefore(q *sentPrompt) int { return p.computedBy(q, q.firstBySent) }

// computedMeanwhile is how many begin one whose first token its server sent
// before the prompt's own.
func (p *prompts) computedMeanwhile(q *sentPrompt) int { return p.computedBy(q, q.firstAt) }

// computedBy is how many begin one whose first token its server had sent when so
// many first tokens had come.
func (p *prompts) computedBy(q *sentPrompt, firsts uint32) int {
	t := p.of(q.target)
	return p.prefix(q, q.target,
		func(n uint32) bool { return before(t.computed.At(n), firsts) },
		func(r *sentPrompt) bool { return r.first != never && r.firstAt < firsts })
}

// sharedMeanwhile is how many begin another that was sent to its server before
// the prompt's own first token came.
func (p *prompts) sharedMeanwhile(q *sentPrompt) int {
	t := p.of(q.target)
	full := func(n uint32) bool {
		if first := t.sent.At(n); first != q.sentAt+1 {
			return before(first, q.sentByFirst)
		}
		return before(t.again.At(n), q.sentByFirst)
	}
	return p.prefix(q, q.target, full, func(r *sentPrompt) bool { return r.sentAt < q.sentByFirst })
}

// prefix is how many tokens of a prompt are covered by blocks that are there:
// full ones as full says, and parts of one as far as prompts have it that end
// within it, if ending says so.
func (p *prompts) prefix(q *sentPrompt, target int32, full func(number uint32) bool, ending func(*sentPrompt) bool) int {
	tokens, at := 0, int32(0)
	for _, run := range p.runs[q.runs:q.runsEnd] {
		for n := run.first; n < run.first+run.n; n++ {
			length := p.blockSize
			if at++; at == q.blocks {
				length = int(q.tail)
			}
			if full(n) {
				tokens += length
				continue
			}
			part := 0
			for _, i := range p.tails[n] {
				r := &p.sent[i]
				if r != q && ending(r) && (target == everywhere || r.target == target) {
					part = max(part, min(int(r.tail), length))
				}
				if part == length { // all of many equal prompts would say the same
					break
				}
			}
			if tokens += part; part < length {
				return tokens
			}
		}
	}
	return tokens
}
