package sessions

import (
	"math"
	"math/rand/v2"
	"slices"
)

// window is how far a session may move from its place in the source, in sessions: it is
// drawn only near the sessions that were near it, which share its clients, load and
// templates.
func window(n int) int { return min(max(25, n/40), n/4) }

// load is the requests and tokens of a session, relative to the means.
type load [3]float64

// loads returns those of all sessions.
func (m *Model) loads() []load {
	all, mean := make([]load, len(m.Sessions)), load{}
	for i := range m.Sessions {
		for k := range m.Sessions[i].Turns {
			t := &m.Sessions[i].Turns[k]
			for d, x := range []int{1, m.islOf(t), t.OSL} {
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

// maxTried limits the sessions that are compared for a place, at random. It is otherwise a
// quarter of the candidates.
const maxTried = 64

// largeLoad is the size of a load, as the length of a vector, from which it is large.
const largeLoad = 5

// deal reorders sessions in place: each moves by at most a number of places, and to none
// after its last one, to one with a similar load, such that the sum of the loads up to each
// place stays near what it was.
func deal(sessions []int, loads []load, most int, last []int, random *rand.Rand) {
	own := make([]load, len(sessions)) // of the places
	due := make([][]int, len(own))     // sessions to deal at the latest then, by their places
	for place, session := range sessions {
		own[place] = loads[session]
		k := min(place+most, len(own)-1, max(place, last[place]))
		due[k] = append(due[k], place)
	}
	from := slices.Clone(sessions)
	var late, pool []int        // places whose sessions are not dealt yet; those in late are due
	in := make([]int, len(own)) // the pool
	ahead := load{}
	for k, next := 0, 0; k < len(own); k++ {
		for ; next < len(own) && next <= k+most; next++ {
			in[next] = len(pool)
			pool = append(pool, next)
		}
		late = append(late, due[k]...)
		for len(late) > 0 && in[late[0]] == none {
			late = late[1:]
		}
		var best int
		if len(late) > 0 {
			best = late[0]
		} else {
			best = choose(pool, own, own[k], ahead, random)
		}
		end := len(pool) - 1
		pool[in[best]], in[pool[end]] = pool[end], in[best]
		pool, in[best] = pool[:end], none
		sessions[k] = from[best]
		for d := range ahead {
			ahead[d] += own[best][d] - own[k][d]
		}
	}
}

// choose returns a place of the pool for a load, given by how much the sessions before were
// ahead of theirs. A large load goes to any session with one like it, which are rare.
func choose(pool []int, loads []load, want, ahead load, random *rand.Rand) (best int) {
	tries, first := min(maxTried, 1+len(pool)/4), 0
	large := want.distance(load{}) > largeLoad*largeLoad
	if large {
		tries, first = len(pool), random.IntN(len(pool))
	}
	least := math.Inf(1)
	for i := range tries {
		place := pool[random.IntN(len(pool))]
		if large {
			place = pool[(first+i)%len(pool)]
		}
		x := loads[place]
		other := x.distance(want)
		if large && 16*other < want.distance(load{}) {
			return place
		}
		sum := load{ahead[0] + x[0], ahead[1] + x[1], ahead[2] + x[2]}
		if off := other + sum.distance(want)/4; off < least {
			best, least = place, off
		}
	}
	return best
}

// distance returns the square of the distance of two loads.
func (l load) distance(to load) (d float64) {
	for i := range l {
		d += (l[i] - to[i]) * (l[i] - to[i])
	}
	return d
}
