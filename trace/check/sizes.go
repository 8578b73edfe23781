package check

import (
	"slices"

	"moontide/trace"
	"moontide/trace/block"
)

// majorityShare is the share of rows that a block size has to fit for the other
// rows to be wrong.
const majorityShare = 0.5

// sizes checks the number of block ids against the prompt length. The block size
// is known only at the end, so every row is checked against all common sizes.
type sizes struct {
	found    *findings
	given    int
	detector block.SizeDetector
	rows     int // with ids
	tries    []*try
	// Rows with an empty list of ids. Their prompts are shorter than a block or
	// lack ids; which of these is known only at the end.
	empty        *findings
	longestEmpty int // their longest ISL
}

// try is one block size and the findings if it is the right one.
type try struct {
	tokens int
	found  *findings
}

// sizesTried holds the block sizes that engines use.
var sizesTried = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, block.DefaultSize, 1024, 2048, 4096, 8192, 16384}

func newSizes(found *findings, given int) *sizes {
	c := &sizes{found: found, given: given, empty: newFindings(found.examples)}
	all := sizesTried
	if given > 0 && !slices.Contains(all, given) {
		all = append(slices.Clone(all), given)
	}
	for _, tokens := range all {
		c.tries = append(c.tries, &try{tokens, newFindings(found.examples)})
	}
	return c
}

func (c *sizes) add(line int, r *trace.Request) {
	c.detector.Add(r.InputLength, r.HashIDs)
	switch {
	case r.HashIDs == nil:
		c.found.add(MissingIDs, line, "no hash_ids, input_length %d", r.InputLength)
		return
	case len(r.HashIDs) == 0 && r.InputLength > 0:
		c.longestEmpty = max(c.longestEmpty, r.InputLength)
		c.empty.add(NoTailID, line, "0 ids for input_length %d", r.InputLength)
		c.empty.add(MissingIDs, line, "hash_ids is empty, input_length %d", r.InputLength)
		return
	case len(r.HashIDs) == 0:
		return
	}
	c.rows++
	for _, t := range c.tries {
		t.add(line, r)
	}
}

func (t *try) add(line int, r *trace.Request) {
	isl, n := r.InputLength, len(r.HashIDs)
	floor := isl / t.tokens
	ceil := (isl + t.tokens - 1) / t.tokens
	kind := NoTailID
	switch {
	case n == ceil:
		return
	case n < floor:
		kind = TooFewIDs
	case n > ceil:
		kind = TooManyIDs
	}
	if f := t.found.of(kind); len(f.Examples) >= t.found.examples {
		f.Count++ // the usual case: most sizes are wrong for most rows
		return
	}
	t.found.add(kind, line, "%d ids for input_length %d, %d tokens a block", n, isl, t.tokens)
}

// misfits counts the rows with neither ceil nor floor of ISL over the size.
func (t *try) misfits() int { return t.found.count(TooFewIDs) + t.found.count(TooManyIDs) }

// finish returns the block size that an analysis or replay uses.
func (c *sizes) finish(requests int) (used block.Size) {
	used = c.detector.Size()
	if c.given > 0 {
		used = block.GivenSize(c.given)
	}
	if c.rows == 0 {
		c.found.drop(MissingIDs)
		if requests > 0 {
			c.found.whole(NoIDs, requests, "none of %d rows", requests)
		}
		return used
	}
	if c.longestEmpty < used.Tokens {
		c.empty.drop(MissingIDs)
	} else {
		c.empty.drop(NoTailID)
	}
	c.found.take(c.empty)
	if c.given == 0 && used.Low <= used.High {
		if used.How == block.Assumed {
			c.found.whole(BlockSizeAssumed, c.rows, "%s", used)
		}
		if i := slices.IndexFunc(c.tries, func(t *try) bool { return t.tokens == used.Tokens }); i >= 0 {
			c.found.take(c.tries[i].found)
		}
		return used
	}
	c.majority(used.Tokens)
	return used
}

// majority reports the rows that contradict the block size of most rows, and a
// finding if that differs from the size in use.
func (c *sizes) majority(used int) {
	i := slices.IndexFunc(c.tries, func(t *try) bool { return t.tokens == used })
	inUse := c.tries[i]
	best := inUse
	for _, t := range c.tries {
		if t.misfits() < best.misfits() {
			best = t
		}
	}
	fits := func(t *try) int { return c.rows - t.misfits() }
	switch detected := c.detector.Size(); {
	case inUse.misfits() == 0:
	case detected.How == block.Detected:
		c.found.whole(WrongBlockSize, c.rows, "%d tokens fit %d of %d rows with ids; %d fit all", used, fits(inUse), c.rows, detected.Tokens)
		return
	case float64(fits(best)) <= majorityShare*float64(c.rows):
		c.found.whole(WrongBlockSize, c.rows, "%d tokens fit %d of %d rows with ids; no size fits most of them", used, fits(inUse), c.rows)
		return
	case best != inUse:
		c.found.whole(WrongBlockSize, c.rows, "%d tokens fit %d of %d rows with ids; %d fit %d", used, fits(inUse), c.rows, best.tokens, fits(best))
	}
	c.found.take(best.found)
}
