package check

import (
	"slices"

	"moontide/trace"
)

// mostRows is the share of rows that a block size has to fit for the others to
// be the ones that are wrong.
const mostRows = 0.5

// sizes checks the number of ids against the length of the prompt. The block
// size is known only at the end, so rows are checked against each size that it
// may turn out to be where no size fits all rows.
type sizes struct {
	found    *ledger
	given    int
	detector trace.BlockDetector
	rows     int // with ids
	tries    []*try
	// Rows whose list of ids is empty: it is known at the end whether their
	// prompts are shorter than a block, or lack ids.
	empty       *ledger
	longestBare int // ISL of one of them
}

// try is one block size and what is wrong with rows if it is right.
type try struct {
	tokens int
	found  *ledger
}

// sizesTried are those that engines use.
var sizesTried = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, trace.DefaultBlockSize, 1024, 2048, 4096, 8192, 16384}

func newSizes(found *ledger, given int) *sizes {
	c := &sizes{found: found, given: given, empty: newLedger(found.examples)}
	all := sizesTried
	if given > 0 && !slices.Contains(all, given) {
		all = append(slices.Clone(all), given)
	}
	for _, tokens := range all {
		c.tries = append(c.tries, &try{tokens, newLedger(found.examples)})
	}
	return c
}

func (c *sizes) add(line int, r *trace.Request) {
	c.detector.Add(*r)
	switch {
	case r.HashIDs == nil:
		c.found.add(MissingIDs, line, "no hash_ids, input_length %d", r.InputLength)
		return
	case len(r.HashIDs) == 0 && r.InputLength > 0:
		c.longestBare = max(c.longestBare, r.InputLength)
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
	if !t.found.more(kind) {
		return // nearly always: most sizes are wrong for most rows
	}
	t.found.keep(kind, line, "%d ids for input_length %d, %d tokens a block", n, isl, t.tokens)
}

// misfits is how many rows have neither ceil nor floor of ISL over the size.
func (t *try) misfits() int { return t.found.count(TooFewIDs) + t.found.count(TooManyIDs) }

// finish returns the size that an analysis or a replay goes by and the tokens
// that a block has at least, by what most rows agree to; 0 where they do not.
func (c *sizes) finish(requests int) (used trace.BlockSize, tokens int) {
	used = c.detector.BlockSize()
	if c.given > 0 {
		used = trace.GivenBlockSize(c.given)
	}
	if c.rows == 0 {
		c.found.drop(MissingIDs)
		if requests > 0 {
			c.found.whole(NoIDs, requests, "none of %d rows", requests)
		}
		return used, 0
	}
	if c.longestBare < used.Tokens {
		c.empty.drop(MissingIDs)
	} else {
		c.empty.drop(NoTailID)
	}
	c.found.take(c.empty)
	if c.given == 0 && used.Low <= used.High {
		if used.How == trace.Assumed {
			c.found.whole(BlockSizeAssumed, c.rows, "%s", used)
		}
		if i := slices.IndexFunc(c.tries, func(t *try) bool { return t.tokens == used.Tokens }); i >= 0 {
			c.found.take(c.tries[i].found)
		}
		return used, used.Low
	}
	return used, c.majority(used.Tokens)
}

// majority names the rows that break the size that most others have, and says
// so where this is not the size in use.
func (c *sizes) majority(used int) int {
	i := slices.IndexFunc(c.tries, func(t *try) bool { return t.tokens == used })
	inUse := c.tries[i]
	best := inUse
	for _, t := range c.tries {
		if t.misfits() < best.misfits() {
			best = t
		}
	}
	fits := func(t *try) int { return c.rows - t.misfits() }
	switch detected := c.detector.BlockSize(); {
	case inUse.misfits() == 0:
	case detected.How == trace.Detected:
		c.found.whole(WrongBlockSize, c.rows, "%d tokens fit %d of %d rows with ids; %d fit all", used, fits(inUse), c.rows, detected.Tokens)
		return detected.Tokens
	case float64(fits(best)) <= mostRows*float64(c.rows):
		c.found.whole(WrongBlockSize, c.rows, "%d tokens fit %d of %d rows with ids; no size fits most of them", used, fits(inUse), c.rows)
		return 0
	case best != inUse:
		c.found.whole(WrongBlockSize, c.rows, "%d tokens fit %d of %d rows with ids; %d fit %d", used, fits(inUse), c.rows, best.tokens, fits(best))
	}
	c.found.take(best.found)
	return best.tokens
}
