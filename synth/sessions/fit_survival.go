package sessions

import "math"

const (
	// survivalSeeds is the number of drawings by which the odds that turns are continued
	// are calibrated, and as many by which the result is judged; survivalSteps is how
	// often they are calibrated.
	survivalSeeds, survivalSteps = 4, 3
	firstSurvivalSeed            = 1 << 20 // a seed that nobody asks for
	mostOdds                     = 4
	// leastSaved is the share of the distance to the source that calibrated odds must save.
	leastSaved = .15
)

// oddsOf returns the factor of the odds that a turn is continued, by its number: of 0,
// 1 and 2, 3 to 6, 7 to 14, and so on.
func (c *client) oddsOf(t *turn) float64 {
	if n := len(c.TurnOdds); n > 0 && t.level == 0 {
		return c.TurnOdds[min(int(math.Log2(1+float64(t.number))), n-1)]
	}
	return 1
}

// survival counts the turns of sessions by their number.
type survival [4 * maxNumber]float64

func (s *survival) add(t *turn) {
	if t.level == 0 {
		s[min(t.number, len(s)-1)]++
	}
}

// fitTurnOdds calibrates the odds that turns are continued, such that as many sessions
// reach each number of turns as in the source. A long session is the product of many
// choices. Where leaves hold sessions of several kinds, each choice forgets a little of
// the kind: long sessions then get rare. That is so if sessions have fewer turns than
// those of the source, or more, in all drawings. The odds are kept if prompts and what
// they share come much nearer to the source by them. The turns of agents depend on what they
// wait for and keep their odds.
func (f *clientFitter) fitTurnOdds() {
	if f.Sessions < minRequests || f.file.Agents {
		return
	}
	rows := f.rows[:min(len(f.rows), lawRequests)]
	of := traitsOf(rows)
	var source survival
	for i := range rows {
		source.add(&rows[i].turn)
	}
	before, shorter := 0.0, 0 // those whose sessions have fewer turns
	for seed := range survivalSeeds {
		drawn, distance := f.drawSurvival(rows, &of, survivalSeeds+seed)
		before += distance
		shorter += indicator(sum(drawn[:])*source[0] < sum(source[:])*drawn[0])
		if shorter != 0 && shorter != seed+1 {
			return
		}
	}
	f.TurnOdds = source.evenOdds()
	for range survivalSteps {
		var all survival
		for seed := range survivalSeeds {
			drawn, _ := f.drawSurvival(rows, &of, seed)
			for i, n := range drawn {
				all[i] += n
			}
		}
		source.calibrate(f.TurnOdds, &all)
	}
	after := 0.0
	for seed := range survivalSeeds {
		_, distance := f.drawSurvival(rows, &of, survivalSeeds+seed)
		after += distance
	}
	if after >= (1-leastSaved)*before {
		f.TurnOdds = nil
	}
}

// drawSurvival counts the turns that are drawn in the time of some rows, and returns the
// larger KS distance of ISL and of shared blocks between these rows and as many drawn ones.
func (f *clientFitter) drawSurvival(rows []row, of *traits, seed int) (drawn survival, distance float64) {
	all := drawing{shared: f.shared, speed: 1, used: make([]bool, len(f.templates))}
	c := all.newClient(f.client, uint64(firstSurvivalSeed+seed))
	var isl, shared []float64
	for within := true; len(isl) < len(rows) || within && len(isl) < 2*len(rows); {
		t := c.next()
		isl, shared = append(isl, float64(t.isl)), append(shared, float64(t.shared))
		if within = within && c.course.repetition == 0 && t.at <= rows[len(rows)-1].at; within {
			drawn.add(t.turn)
		}
	}
	return drawn, max(ksOrMost(of.isl, isl[:len(rows)]), ksOrMost(of.context, shared[:len(rows)]))
}

// evenOdds returns a factor of 1 for each band of numbers from which on there are enough
// turns. The last is that of all numbers that follow.
func (s *survival) evenOdds() (odds []float64) {
	for from := 0; from < len(s) && sum(s[from:]) >= minLeafSize; from = 2*from + 1 {
		odds = append(odds, 1)
	}
	return odds
}

// calibrate changes the odds by which turns were drawn to those of the source.
func (s *survival) calibrate(odds []float64, drawn *survival) {
	for i := range odds {
		from, to := 1<<i-1, 1<<(i+1)-1
		if i == len(odds)-1 {
			to = len(s) - 1
		}
		by := s.odds(from, to) / drawn.odds(from, to)
		odds[i] = rounded(min(max(1./mostOdds, odds[i]*by), mostOdds), 4)
	}
}

// odds returns those that turns with numbers of a range are continued. Some are continued
// more than once.
func (s *survival) odds(from, to int) float64 {
	turns, next := sum(s[from:to]), sum(s[from+1:to+1])
	return (next + .5) / max(turns-next+.5, .5)
}
