package sessions

import "math"

// mixtureTolerance is how much further from the source a mixture of clients may be
// than one client: no more than by chance.
const mixtureTolerance = .01

// learnClients learns the clients. Those that the rows do not name, clusters and long
// sessions, are learned only if what they draw is as near to the source as what one
// client draws.
func (f *fitter) learnClients(clients int) {
	long := f.findLongSessions()
	named := f.parts
	best := f.fitClients()
	divided := false
	switch {
	case len(named) > 1:
	case clients > 1:
		divided = f.divideByClusters(clients)
	case clients == 0 && long.sessions > 0:
		divided = f.divideByLength(long)
	}
	if divided {
		one := best
		best = f.fitClients()
		far, usual := f.distance(best), f.distance(one)
		if far > usual+mixtureTolerance {
			f.note("%d clients draw requests further from the source than one (largest distance of lengths, contexts and gaps: %.3f, of one client %.3f): one was learned", len(f.parts), far, usual)
			f.parts, best, divided = named, one, false
		}
	}
	if clients <= 1 {
		f.noteLongSessions(long, divided)
	}
	f.notes = append(f.notes, best.notes...)
	f.file.Clients = best.clients
	f.prepare()
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

func (x *traits) add(t *turn, context int, last float64) {
	x.isl, x.osl = append(x.isl, float64(t.isl)), append(x.osl, float64(t.osl))
	x.context, x.gaps = append(x.context, float64(context)), append(x.gaps, t.at-last)
	if t.number > 0 {
		x.turnGaps = append(x.turnGaps, t.gap)
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
	n := min(len(f.rows), lawRequests)
	var source traits
	last := 0.0
	for i := range f.rows[:n] {
		r := &f.rows[i]
		source.add(&r.turn, r.shared, last)
		last = r.at
	}
	for seed := range uint64(lawSeeds) {
		var drawn traits
		d := f.newDrawing(seed)
		last := 0.0
		for range n {
			t := d.next()
			drawn.add(t.turn, t.shared, last)
			last = t.at
		}
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
