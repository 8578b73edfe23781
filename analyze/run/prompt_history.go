package run

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

// promptHistory determines what each prompt of a run could find in a prefix cache.
// It takes about 80 bytes per prompt and 12 bytes per distinct block and server.
type promptHistory struct {
	blockSize int // of the trace
	table     block.Table
	prompts   []prompt
	ranges    []blockRange
	numbers   []uint32 // of the latest prompt, reused
	ids       []uint64 // reused

	// For maxHits: tokens of all blocks, and the minimum for each block.
	tokens int
	fewest []int32
	blind  bool // a prompt without block ids was sent

	hasCached     bool // the server reported cached tokens at least once
	cachedDivisor int  // greatest common divisor of all reported counts
	extras        map[int]int

	targets map[int]int32 // record's server number to index
	names   []int         // index to server number

	// Set by order: when blocks were sent and computed, over all servers and, if
	// there are several, for each; and the prompts that end within a block, by
	// block.
	all     blockTimes
	servers []blockTimes
	tails   map[uint32][]int

	// Only with live answers: the prompts that begin with another and the answer to
	// it, by row, and whether answers are sent as text.
	continued   map[int]continuation
	textAnswers bool
}

const allServers = -1

type prompt struct {
	sent, first        time.Duration // first is never if no token arrived
	row                int
	target             int32
	isl, own           int32 // with and without the chat template
	input, cached      int32 // the server's counts, -1 if missing
	ranges, rangesEnd  uint32
	blocks, lastLength int32 // number of blocks, and tokens in the last one
	counted            bool  // included in the comparison
	blind              bool  // without block ids

	sentAt, firstAt uint32 // ranks of sent and first among all prompts
	sentByFirst     uint32 // prompts sent by the time its first token arrived
	firstBySent     uint32 // first tokens that had arrived by the time it was sent
}

// blockRange is a range of n consecutive block numbers.
type blockRange struct{ first, n uint32 }

// blockTimes holds for each full block the sentAt of the first two prompts with it,
// and the lowest firstAt. Values are plus 1; 0 means never.
type blockTimes struct{ sent, sentAgain, computed block.Sparse }

const never = time.Duration(math.MaxInt64)

// add adds a record that was sent. Prompts with counted false are not compared but
// may have filled the cache for others.
func (h *promptHistory) add(rec *replay.Record, ownISL int, counted bool) {
	q := prompt{
		sent: rec.Sent.Value, first: never, row: rec.Row, target: h.target(rec.Target),
		isl: int32(rec.InputLength), own: int32(ownISL), input: -1, cached: -1,
		counted: counted, blind: rec.HashIDs == nil,
	}
	if rec.First.Set {
		q.first = max(rec.First.Value, q.sent)
	}
	if n := rec.Counts.Input; n.Set {
		q.input = int32(min(n.Value, math.MaxInt32))
		if counted && !runfile.ISLEstimated(rec) {
			h.extras[n.Value-int(q.own)]++
		}
	}
	if n := rec.Counts.Cached; n.Set && counted {
		q.cached = int32(min(n.Value, math.MaxInt32))
		h.hasCached = true
		h.cachedDivisor = gcd(h.cachedDivisor, n.Value)
	}
	h.append(q, h.idsOf(rec), counted)
}

// append adds a prompt of some blocks.
func (h *promptHistory) append(q prompt, ids []uint64, counted bool) {
	h.numbers = h.table.AppendNumbers(h.numbers[:0], ids)
	h.appendNumbered(q, h.numbers, counted)
}

// appendNumbered adds a prompt of blocks that have numbers in the table.
func (h *promptHistory) appendNumbered(q prompt, numbers []uint32, counted bool) {
	h.addBlocks(&q, numbers)
	h.addTokens(&q, numbers, counted)
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

// addTokens updates the data for maxHits; tokens that are not counted are 0.
func (h *promptHistory) addTokens(q *prompt, numbers []uint32, counted bool) {
	h.blind = h.blind || h.blockSize == 0 || q.blind
	if h.blockSize == 0 {
		return
	}
	for i, n := range numbers {
		tokens := 0
		if counted {
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

func (h *promptHistory) target(name int) int32 {
	index, known := h.targets[name]
	if !known {
		index = int32(len(h.targets))
		h.targets[name] = index
		h.names = append(h.names, name)
	}
	return index
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// template returns the most frequent difference between the server's prompt token
// count and the row's, or the lowest of several.
func (h *promptHistory) template() int { return mostFrequent(h.extras) }

// mostFrequent returns the number from 0 with the highest count, or the lowest of
// several.
func mostFrequent(counts map[int]int) int {
	most, number := 0, 0
	for x, n := range counts {
		if x >= 0 && (n > most || n == most && x < number) {
			most, number = n, x
		}
	}
	return number
}

// order sorts the prompts by send time.
func (h *promptHistory) order() {
	slices.SortFunc(h.prompts, func(a, b prompt) int {
		return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.row, b.row))
	})
	byFirst := make([]int32, len(h.prompts))
	for i := range h.prompts {
		byFirst[i] = int32(i)
	}
	slices.SortFunc(byFirst, func(a, b int32) int {
		return cmp.Or(cmp.Compare(h.prompts[a].first, h.prompts[b].first), cmp.Compare(a, b))
	})
	for rank, i := range byFirst {
		h.prompts[i].firstAt = uint32(rank)
	}
	h.findContinued()
	if len(h.targets) > 1 {
		h.servers = make([]blockTimes, len(h.targets))
	}
	h.tails = map[uint32][]int{}
	for i := range h.prompts {
		q := &h.prompts[i]
		q.sentAt = uint32(i)
		sent, _ := slices.BinarySearchFunc(h.prompts, q.first, func(r prompt, at time.Duration) int { return cmp.Compare(r.sent, at) })
		q.sentByFirst = max(uint32(sent), q.sentAt+1)
		first, _ := slices.BinarySearchFunc(byFirst, q.sent, func(r int32, at time.Duration) int { return cmp.Compare(h.prompts[r].first, at) })
		q.firstBySent = uint32(first)
		for n, length := range h.blocks(q) {
			if length < h.blockSize {
				h.tails[n] = append(h.tails[n], i)
				continue
			}
			h.all.add(n, q)
			if h.servers != nil {
				h.servers[q.target].add(n, q)
			}
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

// add adds a block of a prompt. Prompts must be added in send order.
func (t *blockTimes) add(n uint32, q *prompt) {
	switch {
	case t.sent.At(n) == 0:
		t.sent.Set(n, q.sentAt+1)
	case t.sentAgain.At(n) == 0:
		t.sentAgain.Set(n, q.sentAt+1)
	}
	if known := t.computed.At(n); q.first != never && (known == 0 || q.firstAt+1 < known) {
		t.computed.Set(n, q.firstAt+1)
	}
}

// before reports whether a time from blockTimes precedes a rank.
func before(time, rank uint32) bool { return time != 0 && time-1 < rank }

func (h *promptHistory) times(target int32) *blockTimes {
	if target == allServers || h.servers == nil {
		return &h.all
	}
	return &h.servers[target]
}

// sharedBefore returns how many leading tokens a prompt shares with prompts sent
// earlier to a server.
func (h *promptHistory) sharedBefore(q *prompt, target int32) int {
	t := h.times(target)
	return h.prefix(q, target,
		func(n uint32) bool { return before(t.sent.At(n), q.sentAt) },
		func(r *prompt) bool { return r.sentAt < q.sentAt })
}

// computedBy returns how many leading tokens a prompt shares with prompts of its
// server that had their first token among the first ones.
func (h *promptHistory) computedBy(q *prompt, firsts uint32) int {
	t := h.times(q.target)
	return h.prefix(q, q.target,
		func(n uint32) bool { return before(t.computed.At(n), firsts) },
		func(r *prompt) bool { return r.first != never && r.firstAt < firsts })
}

// sharedMeanwhile returns how many leading tokens a prompt shares with others sent
// to its server before its first token arrived.
func (h *promptHistory) sharedMeanwhile(q *prompt) int {
	t := h.times(q.target)
	full := func(n uint32) bool {
		if first := t.sent.At(n); first != q.sentAt+1 {
			return before(first, q.sentByFirst)
		}
		return before(t.sentAgain.At(n), q.sentByFirst)
	}
	return h.prefix(q, q.target, full, func(r *prompt) bool { return r.sentAt < q.sentByFirst })
}

// prefix returns how many leading tokens of a prompt are in blocks for which full
// returns true, or in the ends of prompts for which ending returns true.
func (h *promptHistory) prefix(q *prompt, target int32, full func(number uint32) bool, ending func(*prompt) bool) int {
	ends := func(r *prompt) bool { return ending(r) && (target == allServers || r.target == target) }
	tokens := h.prefixOfBlocks(q, full, ends)
	if k, some := h.continued[q.row]; some && ends(&h.prompts[k.index]) {
		tokens = max(tokens, int(k.shared))
	}
	return tokens
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
