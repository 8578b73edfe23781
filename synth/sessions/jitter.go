package sessions

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	lengthJitter = .03 // of lengths and of gaps between arrivals, as sigma of a lognormal
	delayJitter  = .1
	rankShare    = .02 // of all values, which a value may pass
)

// lognormal returns a factor.
func lognormal(random *rand.Rand, sigma float64) float64 {
	return math.Exp(sigma * random.NormFloat64())
}

// values are all values of a kind in order, which limit how far one of them moves.
type values []float64

// move returns the value nearest to another that a value may move to. It passes at most a
// rankShare of all values, which keeps their distribution; a value that more have does not
// move.
func (v values) move(from, to float64) float64 {
	most := max(1, int(rankShare*float64(len(v))))
	first, _ := slices.BinarySearch(v, from)
	end, _ := slices.BinarySearch(v, math.Nextafter(from, math.Inf(1)))
	if end-first > most {
		return from
	}
	return min(max(to, v[max(0, first-most)]), v[min(end-1+most, len(v)-1)])
}

// sorted returns the values of a kind of the turns that have one.
func (m *Model) sorted(of func(t *turn) (v float64, has bool)) (all values) {
	for i := range m.Sessions {
		for k := range m.Sessions[i] {
			if v, has := of(&m.Sessions[i][k]); has {
				all = append(all, v)
			}
		}
	}
	slices.Sort(all)
	return all
}

// jitter makes sessions that differ from others in their lengths and delays.
type jitter struct {
	*Model
	isl, osl, delays values
}

func newJitter(m *Model) *jitter {
	return &jitter{
		Model:  m,
		isl:    m.sorted(func(t *turn) (float64, bool) { return float64(m.islOf(t)), true }),
		osl:    m.sorted(func(t *turn) (float64, bool) { return float64(t.OSL), true }),
		delays: m.sorted(func(t *turn) (float64, bool) { return t.Delay, t.Timing != timestamp }),
	}
}

// vary returns turns with other lengths and delays. All prompts of a session have the same
// factor, so that turns still extend each other.
func (j *jitter) vary(turns []turn, random *rand.Rand) []turn {
	factor := lognormal(random, lengthJitter)
	varied := slices.Clone(turns)
	for i := range varied {
		t := &varied[i]
		osl := float64(t.OSL)
		t.OSL = int(math.Round(j.osl.move(osl, osl*lognormal(random, lengthJitter))))
		if t.Timing != timestamp {
			t.Delay = j.Clock.vary(t.Delay, j.delays, delayJitter, random)
		}
		if t.Own > 0 {
			isl, own := float64(j.islOf(t)), float64(t.Own)
			t.Own = max(1, t.Own+int(math.Round(j.isl.move(isl, isl+own*(factor-1))-isl)))
		}
		if t.Parent > 0 {
			j.extend(t, &turns[i], &turns[i-t.Parent], &varied[i-t.Parent])
		}
	}
	return varied
}

// extend has a varied turn share as much with its varied parent as the turn did with its
// parent.
func (j *jitter) extend(t, from, parent, varied *turn) {
	if extra := from.Own - parent.Own; extra >= 0 {
		t.Own = max(t.Own, varied.Own+min(extra, 1))
	}
	own := func(t *turn, blocks func(isl int) int) int { return blocks(j.islOf(t)) - j.Prefixes[t.Prefix].depth }
	full := min(own(t, j.fullBlocks), own(varied, j.fullBlocks))
	switch {
	case from.Own == parent.Own && from.Shared == own(parent, j.blocksOf):
		t.Own, t.Shared = varied.Own, own(varied, j.blocksOf)
	case from.Shared >= own(parent, j.fullBlocks):
		t.Shared = full
	default:
		t.Shared = min(from.Shared, full)
	}
	if t.Shared <= 0 {
		t.Parent, t.Shared = 0, 0
	}
}
