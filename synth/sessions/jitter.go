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

// fixedLengths are lengths that many requests share, which do not vary.
type fixedLengths map[int]bool

// mover moves values at random, without changing their distribution by much.
type mover struct {
	sorted []float64
	passes int // values that a moved one may pass
	fixed  fixedLengths
}

func newMover(values []float64, fixed fixedLengths) *mover {
	slices.Sort(values)
	return &mover{values, max(1, int(rankShare*float64(len(values)))), fixed}
}

// newLengthMover returns a mover of lengths of the source, and those that are fixed.
func newLengthMover(values []float64) *mover {
	m := newMover(values, fixedLengths{})
	for i := 0; i < len(m.sorted); {
		end := m.end(i)
		if end-i > m.passes {
			m.fixed[int(m.sorted[i])] = true
		}
		i = end
	}
	return m
}

// end returns the index after the last value that equals that at an index.
func (m *mover) end(i int) int {
	end, _ := slices.BinarySearch(m.sorted, math.Nextafter(m.sorted[i], math.Inf(1)))
	return end
}

// bounds returns the range in which a value may move. If lengths are fixed, others that
// more values share than a value may pass were rounded, and move as far as the next.
func (m *mover) bounds(v float64) (low, high float64) {
	n := len(m.sorted)
	i, found := slices.BinarySearch(m.sorted, v)
	switch {
	case !found || m.fixed[int(v)]:
		return v, v
	}
	end := m.end(i)
	if m.fixed == nil && end-i > m.passes {
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
	for i := range m.sessions {
		for k := range m.sessions[i].turns {
			t := &m.sessions[i].turns[k]
			isl, osl = append(isl, float64(m.islOf(t))), append(osl, float64(t.osl))
			if k > 0 && !t.untimed {
				gaps = append(gaps, t.gap)
			}
			if t.delay.Set {
				delays = append(delays, t.delay.Value)
			}
		}
	}
	j := &jitter{model: m, rounds: ofSource}
	if ofSource {
		j.isl, j.osl = newLengthMover(isl), newLengthMover(osl)
		m.isl, m.osl = j.isl.fixed, j.osl.fixed
	} else {
		j.isl, j.osl = newMover(isl, m.isl), newMover(osl, m.osl)
	}
	if !m.clock.exact {
		j.gaps, j.delays = newMover(gaps, nil), newMover(delays, nil)
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
	for i := range varied {
		t := &varied[i]
		if j.gaps != nil {
			if i > 0 && !t.untimed {
				t.gap = j.gaps.move(t.gap, lognormal(random, gapJitter))
			}
			if t.delay.Set {
				t.delay.Value = j.delays.move(t.delay.Value, lognormal(random, gapJitter))
			}
		}
		t.osl = int(math.Round(j.osl.move(float64(t.osl), factor)))
		if j.rounds {
			t.osl = int(j.osl.rounded(float64(turns[i].osl), float64(t.osl)))
		}
		j.varyPrompt(turns, varied, i, factor)
	}
	return varied
}

// varyPrompt sets the own tokens of a turn and the blocks that it shares, which are as
// many of its parent as they were.
func (j *jitter) varyPrompt(turns, varied []turn, i int, factor float64) {
	m, t, to := j.model, &turns[i], &varied[i]
	if t.own > 0 {
		prefix, isl := float64(m.tokensOf(t.prefix)), float64(m.islOf(t))
		low, high := j.isl.bounds(isl)
		moved := math.Round(min(max(low, prefix+float64(t.own)*factor), high))
		if j.rounds {
			moved = j.isl.rounded(isl, moved)
		}
		to.own = max(1, int(moved-prefix))
	}
	if t.parent == none {
		return
	}
	p, q := &turns[t.parent], &varied[t.parent]
	depth := m.prefixes[t.prefix].depth
	was, is := m.blocksOf(m.islOf(p))-depth, m.blocksOf(m.islOf(q))-depth
	wasFull, isFull := m.fullBlocks(m.islOf(p))-depth, m.fullBlocks(m.islOf(q))-depth
	switch {
	case t.shared >= was && m.islOf(t) == m.islOf(p):
		to.shared, to.own = is, q.own
		return
	case t.shared >= wasFull:
		to.shared = isFull
	default:
		to.shared = min(max(1, int(math.Round(float64(t.shared)*float64(q.own)/float64(max(1, p.own))))), isFull)
	}
	if to.shared <= 0 {
		to.parent, to.shared = none, 0
	}
	least := to.shared * m.size.Tokens
	if t.own > t.shared*m.size.Tokens {
		least++
	}
	if m.islOf(t) >= m.islOf(p) {
		least = max(least, q.own)
	}
	to.own = max(to.own, least)
}
