package sessions

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

const (
	lengthJitter = .03 // of lengths and of gaps between sessions, as sigma of a lognormal
	gapJitter    = .1  // of gaps between turns
	// A value moves past at most rankShare of all values, which keeps their
	// distribution; one that more of them share does not move.
	rankShare = .02
)

// mover moves values at random, without changing their distribution by much.
type mover struct {
	sorted []float64
	passes int  // values that a moved one may pass
	round  bool // values may have been rounded, except for fixed ones
	fixed  []int
}

func newMover(values []float64) *mover {
	slices.Sort(values)
	return &mover{sorted: values, passes: max(1, int(rankShare*float64(len(values))))}
}

// common returns the values that more share than a value may pass.
func (m *mover) common() (values []int) {
	for i := 0; i < len(m.sorted); {
		end := m.end(i)
		if end-i > m.passes {
			values = append(values, int(m.sorted[i]))
		}
		i = end
	}
	return values
}

// end returns the index after the last value that equals that at an index.
func (m *mover) end(i int) int {
	end, _ := slices.BinarySearch(m.sorted, math.Nextafter(m.sorted[i], math.Inf(1)))
	return end
}

// bounds returns the range in which a value may move. One that more share than it may pass
// does not move, unless it was rounded: then it may move as far as the next.
func (m *mover) bounds(v float64) (low, high float64) {
	n := len(m.sorted)
	i, found := slices.BinarySearch(m.sorted, v)
	if !found {
		return v, v
	}
	end := m.end(i)
	if _, fixed := slices.BinarySearch(m.fixed, int(v)); fixed || !m.round && end-i > m.passes {
		return v, v
	}
	middle := (i + end - 1) / 2
	low = min(m.sorted[max(0, middle-m.passes)], m.sorted[max(0, i-1)])
	high = max(m.sorted[min(n-1, middle+m.passes)], m.sorted[min(n-1, end)])
	return low, high
}

// move returns a value times a factor, within its bounds.
func (m *mover) move(v, factor float64) float64 {
	low, high := m.bounds(v)
	return min(max(low, v*factor), high)
}

// rounded rounds a moved value to two significant digits beyond 100, or to more where
// other values are that near.
func (m *mover) rounded(from, moved float64) float64 {
	low, high := m.bounds(from)
	if moved < 100 || low == high {
		return math.Round(moved)
	}
	for digits := 2; digits < 9; digits++ {
		r, _ := strconv.ParseFloat(strconv.FormatFloat(moved, 'g', digits, 64), 64)
		if low <= r && r <= high {
			return r
		}
	}
	return math.Round(moved)
}

// jitter makes sessions that differ from others in their lengths and gaps.
type jitter struct {
	model    *Model
	isl, osl *mover
	gaps     *mover // nil if they do not vary
	delays   *mover
	rounds   bool // lengths, for a file
}

// newJitter returns the jitter of a model whose fixed lengths are not known yet if it is
// one of the source.
func newJitter(m *Model, ofSource bool) *jitter {
	var isl, osl, gaps, delays []float64
	for i := range m.Sessions {
		for k := range m.Sessions[i].Turns {
			t := &m.Sessions[i].Turns[k]
			isl, osl = append(isl, float64(m.islOf(t))), append(osl, float64(t.OSL))
			if k > 0 && t.Timing != delayOnly {
				gaps = append(gaps, t.Gap)
			}
			if t.Timing != timestamp {
				delays = append(delays, t.Delay)
			}
		}
	}
	j := &jitter{model: m, rounds: ofSource, isl: newMover(isl), osl: newMover(osl)}
	if ofSource {
		m.FixedISL, m.FixedOSL = j.isl.common(), j.osl.common()
	}
	for i, by := range []*mover{j.isl, j.osl} {
		by.round, by.fixed = true, [][]int{m.FixedISL, m.FixedOSL}[i]
	}
	if !m.Clock.Exact {
		j.gaps, j.delays = newMover(gaps), newMover(delays)
	}
	return j
}

// lognormal returns a factor.
func lognormal(random *rand.Rand, sigma float64) float64 {
	return math.Exp(sigma * random.NormFloat64())
}

// vary returns turns with other lengths and gaps. All lengths of a session have the same
// factor, so that turns still extend each other.
func (j *jitter) vary(turns []turn, random *rand.Rand) []turn {
	factor := lognormal(random, lengthJitter)
	varied := slices.Clone(turns)
	if j.gaps != nil {
		j.varyGaps(varied, random)
	}
	for i := range varied {
		t := &varied[i]
		t.OSL = int(math.Round(j.osl.move(float64(t.OSL), factor)))
		if j.rounds {
			t.OSL = int(j.osl.rounded(float64(turns[i].OSL), float64(t.OSL)))
		}
		j.varyPrompt(turns, varied, i, factor)
	}
	return varied
}

// longSession is the duration from which sessions keep it, in periods of the clock: it may
// be that of the trace.
const longSession = .1

// varyGaps varies the gaps and delays of turns.
func (j *jitter) varyGaps(turns []turn, random *rand.Rand) {
	var moved []*float64
	total, before, after := 0.0, 0.0, 0.0
	vary := func(x *float64, by *mover) {
		was := *x
		*x = by.move(was, lognormal(random, gapJitter))
		if total += was; *x != was {
			moved, before, after = append(moved, x), before+was, after+*x
		}
	}
	for i := range turns {
		if t := &turns[i]; i > 0 && t.Timing != delayOnly {
			vary(&t.Gap, j.gaps)
		}
		if t := &turns[i]; t.Timing != timestamp {
			vary(&t.Delay, j.delays)
		}
	}
	if total <= longSession*j.model.Clock.Period {
		before, after = 1, 1
	}
	for _, x := range moved {
		*x = math.Round(*x*before/after*microseconds) / microseconds
	}
}

// varyPrompt sets the own tokens of a turn and the blocks that it shares, which are as
// many of its parent as they were.
func (j *jitter) varyPrompt(turns, varied []turn, i int, factor float64) {
	m, t, to := j.model, &turns[i], &varied[i]
	if t.Own > 0 {
		prefix, isl := float64(m.tokensOf(t.Prefix)), float64(m.islOf(t))
		low, high := j.isl.bounds(isl)
		moved := math.Round(min(max(low, prefix+float64(t.Own)*factor), high))
		if j.rounds {
			moved = j.isl.rounded(isl, moved)
		}
		to.Own = max(1, int(moved-prefix))
	}
	if t.Parent == 0 {
		return
	}
	p, q := &turns[i-t.Parent], &varied[i-t.Parent]
	depth := m.Prefixes[t.Prefix].depth
	was, is := m.blocksOf(m.islOf(p))-depth, m.blocksOf(m.islOf(q))-depth
	wasFull, isFull := m.fullBlocks(m.islOf(p))-depth, m.fullBlocks(m.islOf(q))-depth
	switch {
	case t.Shared >= was && m.islOf(t) == m.islOf(p):
		to.Shared, to.Own = is, q.Own
		return
	case t.Shared >= wasFull:
		to.Shared = isFull
	default:
		to.Shared = min(max(1, int(math.Round(float64(t.Shared)*float64(q.Own)/float64(max(1, p.Own))))), isFull)
	}
	if to.Shared <= 0 {
		to.Parent, to.Shared = 0, 0
	}
	least := to.Shared * m.Tokens
	if t.Own > t.Shared*m.Tokens {
		least++
	}
	if m.islOf(t) >= m.islOf(p) {
		least = max(least, q.Own)
	}
	to.Own = max(to.Own, least)
}
