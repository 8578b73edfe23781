package sessions

import (
	"math"
	"math/rand/v2"
)

// window is how far a session may move from its place in the source, in sessions: it is
// drawn only near the sessions that were near it, which share its clients, load and
// templates.
func window(n int) int { return min(max(25, n/40), n/4) }

// load is the requests and tokens of a session, relative to the means.
type load [3]float64

// loads returns those of all sessions.
func (m *Model) loads() []load {
	all, mean := make([]load, len(m.sessions)), load{}
	for i := range m.sessions {
		for k := range m.sessions[i].turns {
			t := &m.sessions[i].turns[k]
			for d, x := range []int{1, m.islOf(t), t.osl} {
				all[i][d] += float64(x)
				mean[d] += float64(x) / float64(len(all))
			}
		}
	}
	for i := range all {
		for d := range mean {
			all[i][d] /= max(1, mean[d])
		}
	}
	return all
}

// triedSessions is the number of sessions of which the one that balances the load best
// takes a place.
const triedSessions = 4

// deal reorders sessions, given by number, in place: each moves by at most a number of
// places, such that the sum of the loads up to each place stays near what it was.
func deal(sessions []int, loads []load, most int, random *rand.Rand) {
	places := append([]int(nil), sessions...)
	dealt := make([]bool, len(places))
	var pool []int // places whose sessions are not dealt yet
	ahead := load{}
	oldest, next := 0, 0
	for k := range sessions {
		for ; next < len(places) && next <= k+most; next++ {
			pool = append(pool, next)
		}
		for dealt[oldest] {
			oldest++
		}
		for d := range ahead {
			ahead[d] -= loads[places[k]][d]
		}
		at, best := 0, math.Inf(1)
		for range triedSessions {
			i := random.IntN(len(pool))
			if oldest <= k-most {
				for pool[i] != oldest {
					i = (i + 1) % len(pool)
				}
			}
			off := 0.0
			for d, x := range loads[places[pool[i]]] {
				off += (ahead[d] + x) * (ahead[d] + x)
			}
			if off < best {
				at, best = i, off
			}
		}
		place := pool[at]
		pool[at] = pool[len(pool)-1]
		pool = pool[:len(pool)-1]
		dealt[place] = true
		sessions[k] = places[place]
		for d, x := range loads[places[place]] {
			ahead[d] += x
		}
	}
}

// shuffleRuns reorders gaps in runs of about the square root of their number, each of
// which moves by at most a fortieth of all.
func shuffleRuns(gaps []float64, random *rand.Rand) {
	size := max(1, int(math.Sqrt(float64(len(gaps)))))
	runs := make([]int, (len(gaps)+size-1)/size)
	for i := range runs {
		runs[i] = i
	}
	deal(runs, make([]load, len(runs)), len(runs)/40, random)
	from := append([]float64(nil), gaps...)
	gaps = gaps[:0]
	for _, r := range runs {
		gaps = append(gaps, from[r*size:min((r+1)*size, len(from))]...)
	}
}
