package spec

import "moontide/trace/stats"

// How many turns are simulated for their mean number. A higher precision would not
// be visible in a trace.
const (
	simulatedTurns    = 1 << 17 // of all clients
	minSimulated      = 1 << 10 // turns of a client
	simulatedSessions = 10_000  // of a client, at most
)

// setMeanTurns computes the mean number of turns of each client's sessions.
func (s *Spec) setMeanTurns() {
	for _, c := range s.clients {
		c.sessions.meanTurns = s.meanTurns(c, max(simulatedTurns/len(s.clients), minSimulated))
	}
}

// meanTurns returns the mean number of turns that happen. Sessions are simulated
// until max_isl ends them, because the length of a prompt is a long sum; for each,
// the expected loss under the distribution of turns is known exactly.
func (s *Spec) meanTurns(c *client, tries int) float64 {
	highest := c.sessions.maxTurns()
	upTo := make([]float64, highest+1) // mean turns if at most this many fit
	upTo[1] = 1
	for k := 1; k < highest; k++ {
		upTo[k+1] = upTo[k] + (1 - c.sessions.turns.CDF(float64(k)))
	}
	if c.longest+(highest-1)*c.maxAdded() <= c.sessions.maxISL {
		return upTo[highest]
	}
	live := s.start(c, "tried ")
	var one session
	var lost float64
	number := 0
	for turns := 0; turns < tries && number < simulatedSessions; number++ {
		one.begin(live, number)
		for one.turn = 1; one.turn < highest && one.drawNext(); one.turn++ {
		}
		lost += upTo[highest] - upTo[one.turn]
		turns += one.turn
	}
	return upTo[highest] - lost/float64(number)
}

// maxAdded returns the largest number of tokens that a turn adds to the next
// prompt.
func (c *client) maxAdded() int {
	newTokens := c.longest
	if c.sessions.newTokens != nil {
		newTokens = int(stats.Highest(c.sessions.newTokens))
	}
	return newTokens + int(stats.Highest(c.osl))
}
