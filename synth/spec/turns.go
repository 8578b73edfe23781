package spec

import (
	"slices"

	"moontide/trace/stats"
)

// How closely the mean number of turns is looked at: sessions are tried out
// until a client has had its part of the turns. More would not be seen in a
// trace, and the first ones of a hundred clients are enough, too.
const (
	triedTurns    = 1 << 17 // of all clients of a description
	leastTried    = 1 << 10 // of a client
	triedSessions = 10_000  // of a client, at most
)

// countTurns finds out how many turns the sessions of each client have on
// average.
func (d *Spec) countTurns() {
	clients := slices.Collect(d.clients())
	for _, c := range clients {
		c.sessions.meanTurns = d.meanTurns(c, max(triedTurns/len(clients), leastTried))
	}
}

// meanTurns is the mean number of turns that happen. The law of turns says
// when a session is over, and max_isl may end it before. How long prompts are
// by then is the law of a long sum, so sessions without another end are tried
// out, as the seed would draw them; of each it is known exactly what the law
// of turns would have given and how much of it is lost.
func (d *Spec) meanTurns(c *client, tries int) float64 {
	most := c.sessions.mostTurns()
	upTo := make([]float64, most+1) // mean turns where only so many fit
	upTo[1] = 1
	for k := 1; k < most; k++ {
		upTo[k+1] = upTo[k] + (1 - c.sessions.turns.CDF(float64(k)))
	}
	if c.longest+(most-1)*c.mostAdded() <= c.sessions.maxISL {
		return upTo[most]
	}
	client := d.live(c, "tried ")
	var s session
	var lost float64
	number := 0
	for turns := 0; turns < tries && number < triedSessions; number++ {
		fit := s.try(client, number, most)
		lost += upTo[most] - upTo[fit]
		turns += fit
	}
	return upTo[most] - lost/float64(number)
}

// mostAdded is the number of tokens that a turn can add to the next prompt.
func (c *client) mostAdded() int {
	fresh, osl := c.longest, 0
	if c.sessions.grows != nil {
		fresh = int(stats.Highest(c.sessions.grows))
	}
	if c.pairs == nil {
		osl = int(stats.Highest(c.osl))
	}
	for _, p := range c.pairs {
		osl = max(osl, int(p.osl))
	}
	return fresh + osl
}

// try returns how many of so many turns fit.
func (s *session) try(c *liveClient, number, most int) int {
	s.begin(c, number)
	for s.turn = 1; s.turn < most && s.goOn(); s.turn++ {
	}
	return s.turn
}
