package measure

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/block"
)

// promptHistory simulates a prefix cache that all servers share. It takes about 100 bytes
// per prompt and 12 bytes per distinct block.
type promptHistory struct {
	blockSize   int  // of the trace
	textAnswers bool // see Options
	table       block.Table
	prompts     []prompt
	ranges      []blockRange
	numbers     []uint32 // of the latest prompt, reused
	ids         []uint64 // reused

	// For maxHits: tokens of all blocks, and the minimum for each block.
	tokens int
	fewest []int32
	blind  bool // a prompt without block ids was sent

	hasCached     bool // the server reported cached tokens at least once
	cachedDivisor int  // greatest common divisor of all reported counts
	extras        map[int]int
	targets       map[int]bool // server numbers of records

	// continued has, with live answers, the prompts that continue another, by row.
	continued map[int]continuation
	places    map[int]int32 // of the rows among the prompts

	// By block, for the prompts sent so far: the place of the first one with the block plus
	// 1, whether another has it, and whether the first token of one has arrived. tails has
	// the prompts that end within a block.
	sender, again, computed block.Sparse
	tails                   map[uint32][]int32
}

type prompt struct {
	sent, first        time.Duration // first is never if no token arrived
	row, target        int
	isl, own           int32 // with and without the chat template
	input, cached      int32 // the server's counts, -1 if missing
	ranges, rangesEnd  uint32
	blocks, lastLength int32 // number of blocks, and tokens in the last one
	counted            bool  // included in the comparison
	blind              bool  // without block ids
	estimated          bool  // its ISL
	text               int32 // tokens of live answers that may encode to others

	isSent, answered bool // so far
	// Leading tokens shared with prompts sent before it, with prompts whose first token had
	// arrived by then, and with prompts sent before its own first token.
	shared, computed, meanwhile int32
}

// blockRange is a range of n consecutive block numbers.
type blockRange struct{ first, n uint32 }

// continuation describes a prompt that begins with another and the answer to it.
type continuation struct {
	base   int   // row of the other prompt in the history
	shared int32 // tokens of the other prompt and of the answer that a cache can have
	before int32 // tokens of the other prompt
}

const never = time.Duration(math.MaxInt64)

// add adds a record that was sent. Prompts with counted false are not compared but
// may have filled the cache for others.
func (h *promptHistory) add(rec *replay.Record, ownISL int, counted bool) {
	q := prompt{
		sent: rec.Sent.Value, first: never, row: rec.Row, target: rec.Target,
		isl: int32(rec.InputLength), own: int32(ownISL), input: -1, cached: -1,
		counted: counted, blind: rec.HashIDs == nil, estimated: runfile.ISLEstimated(rec),
	}
	h.targets[rec.Target] = true
	if rec.First.Set {
		q.first = max(rec.First.Value, q.sent)
	}
	if n := rec.Counts.Input; n.Set {
		q.input = int32(min(n.Value, math.MaxInt32))
		if counted && !q.estimated && !(h.textAnswers && rec.Base.Row.Set) {
			h.extras[n.Value-int(q.own)]++
		}
	}
	if n := rec.Counts.Cached; n.Set && counted {
		q.cached = int32(min(n.Value, math.MaxInt32))
		h.hasCached = true
		h.cachedDivisor = gcd(h.cachedDivisor, n.Value)
	}
	h.numbers = h.table.AppendNumbers(h.numbers[:0], h.idsOf(rec))
	h.append(q, h.numbers)
}

// append adds a prompt of blocks that have numbers in the table.
func (h *promptHistory) append(q prompt, numbers []uint32) {
	h.addBlocks(&q, numbers)
	h.addTokens(&q, numbers)
	h.prompts = append(h.prompts, q)
}

// idsOf returns the block ids of a record. Models share no blocks.
func (h *promptHistory) idsOf(rec *replay.Record) []uint64 {
	if rec.Model == "" {
		return rec.HashIDs
	}
	mix := xxhash.Sum64String(rec.Model)
	h.ids = h.ids[:0]
	for _, id := range rec.HashIDs {
		h.ids = append(h.ids, id^mix)
	}
	return h.ids
}

func (h *promptHistory) addBlocks(q *prompt, numbers []uint32) {
	q.blocks, q.lastLength = 0, 0
	if h.blockSize > 0 && q.own > 0 {
		size := int32(h.blockSize)
		q.blocks = min(int32(len(numbers)), (q.own-1)/size+1)
		q.lastLength = min(size, q.own-(q.blocks-1)*size)
	}
	own := len(h.ranges)
	for _, n := range numbers {
		if last := len(h.ranges) - 1; last >= own && h.ranges[last].first+h.ranges[last].n == n {
			h.ranges[last].n++
			continue
		}
		h.ranges = append(h.ranges, blockRange{n, 1})
	}
	q.ranges, q.rangesEnd = uint32(own), uint32(len(h.ranges))
}

// addTokens updates the data for maxHits. Uncounted tokens are 0.
func (h *promptHistory) addTokens(q *prompt, numbers []uint32) {
	h.blind = h.blind || h.blockSize == 0 || q.blind
	if h.blockSize == 0 {
		return
	}
	for i, n := range numbers {
		tokens := 0
		if q.counted {
			tokens = max(0, min(h.blockSize, int(q.isl)-i*h.blockSize))
		}
		h.tokens += tokens
		if int(n) >= len(h.fewest) {
			h.fewest = append(h.fewest, int32(tokens))
		}
		h.fewest[n] = min(h.fewest[n], int32(tokens))
	}
}

// maxHits returns an upper bound of the cached tokens: each block is computed at
// least once, at best in the prompt with the fewest of its tokens.
func (h *promptHistory) maxHits() trace.Opt[int] {
	if h.blind {
		return trace.Opt[int]{}
	}
	hits := h.tokens
	for _, tokens := range h.fewest {
		hits -= int(tokens)
	}
	return trace.Some(hits)
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// template returns the most frequent difference of at least 0 between the server's count of
// prompt tokens and the row's, the lowest of several.
func (h *promptHistory) template() int {
	most, number := 0, 0
	for x, n := range h.extras {
		if x >= 0 && (n > most || n == most && x < number) {
			most, number = n, x
		}
	}
	return number
}

func sentOrder(a, b prompt) int {
	return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.row, b.row))
}

// play visits the sends and first tokens of the prompts in order of time.
func (h *promptHistory) play() {
	slices.SortFunc(h.prompts, sentOrder)
	byFirst := make([]int32, len(h.prompts))
	if h.continued != nil {
		h.places = make(map[int]int32, len(h.prompts))
	}
	for i := range h.prompts {
		byFirst[i] = int32(i)
		if h.places != nil {
			h.places[h.prompts[i].row] = int32(i)
		}
	}
	slices.SortFunc(byFirst, func(a, b int32) int {
		return cmp.Or(cmp.Compare(h.prompts[a].first, h.prompts[b].first), cmp.Compare(a, b))
	})
	h.tails = map[uint32][]int32{}
	for i := range h.prompts {
		for len(byFirst) > 0 && h.prompts[byFirst[0]].first < h.prompts[i].sent {
			h.answer(byFirst[0])
			byFirst = byFirst[1:]
		}
		h.send(int32(i))
	}
	for _, i := range byFirst {
		h.answer(i)
	}
}

func (h *promptHistory) send(i int32) {
	q := &h.prompts[i]
	isSent := func(r *prompt) bool { return r.isSent }
	q.shared = h.prefix(q, func(n uint32) bool { return h.sender.At(n) != 0 }, isSent)
	q.computed = h.prefix(q, func(n uint32) bool { return h.computed.At(n) != 0 }, func(r *prompt) bool { return r.answered })
	q.isSent = true
	for n, length := range h.blocks(q) {
		switch {
		case length < h.blockSize:
			h.tails[n] = append(h.tails[n], i)
		case h.sender.At(n) == 0:
			h.sender.Set(n, uint32(i)+1)
		default:
			h.again.Set(n, 1)
		}
	}
}

func (h *promptHistory) answer(i int32) {
	q := &h.prompts[i]
	if q.counted && q.cached > q.shared { // else it does not matter
		byOthers := func(n uint32) bool {
			sender := h.sender.At(n)
			return sender != 0 && (sender != uint32(i)+1 || h.again.At(n) != 0)
		}
		q.meanwhile = h.prefix(q, byOthers, func(r *prompt) bool { return r.isSent })
	}
	if q.first == never {
		return
	}
	q.answered = true
	for n, length := range h.blocks(q) {
		if length == h.blockSize {
			h.computed.Set(n, 1)
		}
	}
}

// blocks iterates over the blocks of a prompt with their lengths.
func (h *promptHistory) blocks(q *prompt) iter.Seq2[uint32, int] {
	return func(yield func(number uint32, length int) bool) {
		left := q.blocks
		for _, r := range h.ranges[q.ranges:q.rangesEnd] {
			for n := r.first; n < r.first+r.n && left > 0; n++ {
				length := h.blockSize
				if left--; left == 0 {
					length = int(q.lastLength)
				}
				if !yield(n, length) {
					return
				}
			}
		}
	}
}

// prefix returns how many leading tokens of a prompt are in blocks for which full
// returns true, or in the ends of prompts for which ends returns true.
func (h *promptHistory) prefix(q *prompt, full func(number uint32) bool, ends func(*prompt) bool) int32 {
	tokens := h.prefixOfBlocks(q, full, ends)
	if k, some := h.continued[q.row]; some && ends(&h.prompts[h.places[k.base]]) {
		tokens = max(tokens, int(k.shared))
	}
	return int32(tokens)
}

func (h *promptHistory) prefixOfBlocks(q *prompt, full func(number uint32) bool, ends func(*prompt) bool) (tokens int) {
	for n, length := range h.blocks(q) {
		if full(n) {
			tokens += length
			continue
		}
		part := 0
		for _, i := range h.tails[n] {
			r := &h.prompts[i]
			if r != q && ends(r) {
				part = max(part, min(int(r.lastLength), length))
			}
			if part == length { // stop early: many equal prompts have the same part
				break
			}
		}
		if tokens += part; part < length {
			return tokens
		}
	}
	return tokens
}
