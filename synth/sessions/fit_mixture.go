package sessions

import (
	"fmt"
	"math"
	"slices"
)

// mixtureTolerance is how much further from the source a mixture of clients may be
// than one client: no more than by chance.
const mixtureTolerance = .01

// Two clusters are tried unasked if one client is further than farFromSource from a source
// of at least minToDivide requests: with fewer, that happens by chance. They are kept if
// their distance is at most closer times that of one client.
const farFromSource, minToDivide, closer = .05, 2000, 2. / 3

// learnClients learns the clients. Those that the rows do not name, clusters and long
// sessions, are learned only if what they draw is as near to the source as what one
// client draws.
func (f *fitter) learnClients(clients int) {
	f.noteSingleTurns()
	f.noteUnchained()
	long := f.findLongSessions()
	named := f.parts
	best := f.fitClients()
	divided, limit := false, func(usual float64) float64 { return usual + mixtureTolerance }
	switch {
	case len(named) > 1 && clients == 0:
		best = f.nearer(best)
	case len(named) > 1:
	case clients > 1:
		divided = f.divideByClusters(clients)
	case clients == 1 || f.timetable != nil: // several clients do not keep a timetable
	case long.sessions > 0:
		divided = f.divideByLength(long)
	case len(f.rows) >= minToDivide && f.distance(best) > farFromSource:
		noted := len(f.notes)
		divided, limit = f.divideByClusters(2), func(usual float64) float64 { return usual * closer }
		f.notes = f.notes[:noted]
	}
	if divided {
		one := best
		best = f.fitClients()
		far, usual := f.distance(best), f.distance(one)
		distances := fmt.Sprintf("(largest distance of lengths, contexts and gaps: %.3f, of one client %.3f)", far, usual)
		switch n := len(f.parts); {
		case far > limit(usual):
			if clients > 1 || long.sessions > 0 {
				f.note("%d clients draw requests further from the source than one %s: one was learned", n, distances)
			}
			f.parts, best, divided = named, one, false
		case clients == 0 && long.sessions == 0:
			f.note("sessions are divided into %d clusters, which draw requests nearer to the source than one client %s", n, distances)
		}
	}
	if clients <= 1 {
		f.noteLongSessions(long, divided)
	}
	f.notes = append(f.notes, best.notes...)
	f.file.Clients = best.clients
	f.prepare()
}

// noteUnchained notes that block ids do not stand for their prefixes.
func (f *fitter) noteUnchained() {
	if n := f.prompts.Len() - f.prompts.DistinctIDs(); n >= minRequests {
		f.note("%d of %d prefixes end with a block id that also follows others, as content hashes of single blocks do: sharing is learned of whole prefixes, and drawn ids stand for these; chain the ids of the source (moontide check) to compare the two", n, f.prompts.Len())
	}
}

// noteSingleTurns notes that no conversations can be found in a source of many rows.
func (f *fitter) noteSingleTurns() {
	continued := func(r row) bool { return r.parent != none }
	if f.hasBlocks && !f.file.SessionIDs && len(f.rows) >= minLeafSize && !slices.ContainsFunc(f.rows, continued) {
		f.note("no prompt extends an earlier one: each request is a session of its own; conversations whose beginning is cut off by a sliding window need session ids")
	}
}

// nearer returns one client instead of those that the rows name, if these are far from
// the source and it is much nearer: clients that arrive each by themselves lose bursts
// that all of them have at once.
func (f *fitter) nearer(named fitted) fitted {
	if len(f.rows) < minToDivide {
		return named
	}
	far := f.distance(named)
	if far <= farFromSource {
		return named
	}
	parts, keys := f.parts, f.file.ClientKeys
	f.parts, f.file.ClientKeys = nil, nil
	one := f.fitClients()
	if usual := f.distance(one); usual <= far*closer {
		f.note("%d clients that the rows name draw requests further from the source than one, which was learned (largest distance of lengths, contexts and gaps: %.3f, of one client %.3f)", len(parts), far, usual)
		return one
	}
	f.parts, f.file.ClientKeys = parts, keys
	return named
}

// divideInto makes clients of the rows, which all have the same values of client keys.
func (f *fitter) divideInto(names ...string) {
	var values []string
	for _, p := range f.parts {
		values = p.values
	}
	f.parts = nil
	for _, name := range names {
		f.parts = append(f.parts, part{name, values})
	}
}

// traits are values of requests by which what is drawn is compared with the source.
type traits struct{ isl, osl, context, gaps, turnGaps []float64 }

// traitsOf returns those of the source's rows, or of as many as are compared.
func traitsOf(rows []row) (x traits) {
	i := 0
	x.draw(min(len(rows), lawRequests), func() drawnTurn {
		r := &rows[i]
		i++
		return drawnTurn{turn: &r.turn}
	})
	return x
}

// draw adds those of n turns, in order of time.
func (x *traits) draw(n int, next func() drawnTurn) {
	last := math.NaN()
	for range n {
		t := next()
		x.isl, x.osl, x.context = append(x.isl, float64(t.isl)), append(x.osl, float64(t.osl)), append(x.context, float64(t.shared))
		if gap := microseconds(t.at - last); gap >= 0 {
			x.gaps = append(x.gaps, gap)
		}
		last = t.at
		if t.number > 0 {
			x.turnGaps = append(x.turnGaps, microseconds(t.gap))
		}
	}
}

func (x *traits) all() [][]float64 {
	return [][]float64{x.isl, x.osl, x.context, x.gaps, x.turnGaps}
}

// distance returns the largest of the KS distances of lengths, shared blocks and gaps
// and of the relative gaps of the mean lengths between some clients and the source.
func (f *fitter) distance(of fitted) (most float64) {
	f.file.Clients = of.clients
	f.prepare()
	source := traitsOf(f.rows)
	for seed := range uint64(lawSeeds) {
		var drawn traits
		drawn.draw(len(source.isl), f.newDrawing(seed).next)
		for i, values := range source.all() {
			if len(values) > 0 {
				most = max(most, ksOrMost(values, drawn.all()[i]))
			}
		}
		most = max(most, meanGap(source.isl, drawn.isl), meanGap(source.osl, drawn.osl))
	}
	return most
}

// meanGap returns the difference of the means relative to the first.
func meanGap(source, drawn []float64) float64 {
	mean := sum(source) / float64(len(source))
	return math.Abs(sum(drawn)/float64(len(drawn))-mean) / max(mean, 1)
}
