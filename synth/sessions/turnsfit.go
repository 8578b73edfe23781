package sessions

import (
	"cmp"
	"math"
	"slices"
)

// settle finds how long it takes until most turns find the turn before them in
// the trace. Until then, sessions that began before the trace look new.
func (f *fitter) settle() {
	var gaps []float64
	for i := range f.rows {
		if r := &f.rows[i]; r.parent != none {
			gaps = append(gaps, r.gap)
		}
	}
	if len(gaps) < minLeaf {
		return
	}
	slices.Sort(gaps)
	f.settled = rounded(min(gaps[len(gaps)*99/100], f.rows[len(f.rows)-1].at/3), 2)
}

// startKnown is what a first turn's lengths depend on: its time up to when the
// trace has settled, the blocks of its template, and whether that is a whole
// prompt.
const startKnown = 3

// fitStarts learns how sessions begin. Those with a template are apart from the
// others: their lengths have nothing in common.
func (f *fitter) fitStarts() {
	var lengths [2][]sample
	var templates []sample
	for i := range f.rows {
		r := &f.rows[i]
		if r.begins() {
			f.starts++
		}
		if r.parent != none {
			continue
		}
		known := f.startOf(r.template, r.at)
		private := max(0, r.isl-f.tokensOf(r.template))
		has := 0
		if r.template > 0 {
			has = 1
		}
		lengths[has] = append(lengths[has], sample{append(known[:], float64(private), float64(r.osl)), 1})
		templates = append(templates, sample{[]float64{r.at, float64(has)}, 1})
	}
	f.startsAhead = f.aheadOfShare()
	if max(len(lengths[0]), len(lengths[1])) < minCell { // any turns are better than the very ones
		lengths[0] = nil
		for i := range f.rows {
			r := &f.rows[i]
			lengths[0] = append(lengths[0], sample{[]float64{0, 0, 0, float64(r.isl), float64(r.osl)}, 1})
		}
	}
	for i, some := range lengths {
		if len(some) >= minCell {
			f.first[i] = fitJoint(some, startKnown)
		}
	}
	if len(f.templates) > 1 {
		f.templated = fitChoice(templates, 1)
		f.templated.fill(templates, 1)
	}
}

// aheadOfShare is by how many more sessions had begun at some time than their
// share of the requests until then.
func (f *fitter) aheadOfShare() float64 {
	share := float64(f.starts) / float64(len(f.rows))
	begun, ahead := 0.0, 0.0
	for i := range f.rows {
		if f.rows[i].begins() {
			begun++
			ahead = max(ahead, begun-share*float64(i))
		}
	}
	return rounded(ahead, 2)
}

// asked is whether and how a turn was gone on from, for one more time.
type asked struct {
	row, next int32 // next is none if it was not
	order     int
	gap, left float64 // time until then, and until the end of the trace
}

// fitTurns learns whether turns are gone on from, how, and when.
func (f *fitter) fitTurns() {
	end := f.rows[len(f.rows)-1].at
	var all [len(f.goesOn)][]asked
	for i := range f.rows {
		r := &f.rows[i]
		since := r.at
		for order := 0; order <= len(r.next); order++ {
			a := asked{int32(i), none, order, math.Inf(1), end - since}
			if order < len(r.next) {
				a.next = r.next[order]
				a.gap = max(0, f.rows[a.next].at-since)
				since = f.rows[a.next].at
			}
			k := min(order, len(all)-1)
			all[k] = append(all[k], a)
		}
	}
	var samples [relations][]sample
	for k, questions := range all {
		happened := 0
		for _, a := range questions {
			if a.next != none {
				happened++
			}
		}
		if happened < minCell {
			continue
		}
		weights := f.fitGoesOn(&f.goesOn[k], questions)
		for i, a := range questions {
			if a.next != none {
				rel := f.rows[a.next].relation
				samples[rel] = append(samples[rel], f.sampleOf(a, weights[i]))
			}
		}
	}
	for rel, s := range samples {
		if len(s) >= minCell {
			f.turns[rel] = fitJoint(s, turnKnown)
		}
	}
}

// sampleOf is what became of a turn.
func (f *fitter) sampleOf(a asked, weight float64) sample {
	p, r := &f.rows[a.row], &f.rows[a.next]
	known := f.knownOf(&p.turn, a.order)
	depth := f.templates[p.template].depth
	kept, tokens := 0.0, 0
	switch r.relation {
	case extends:
		tokens = r.isl - p.isl
	case returns:
		tokens = max(0, r.isl-r.shared*f.size.Tokens)
	case edits, joins:
		if own := f.fullBlocks(p.isl) - depth; own > 0 {
			kept = rounded(min(max(0, float64(r.shared-depth)/float64(own)), 1), 4)
		}
		tokens = max(0, r.isl-r.shared*f.size.Tokens)
	}
	wait := a.gap
	switch {
	case r.relation == joins:
	case r.untimed:
		wait = r.delay
	case f.delays:
		wait = max(0, a.gap-answerTime(p.osl))
	}
	return sample{append(known[:], kept, rounded(wait, 9), float64(tokens), float64(r.osl)), weight}
}

// maxWeight bounds what an observed turn stands for. More would leave much to a
// few late ones.
const maxWeight = 3

// fitGoesOn learns whether turns are gone on from, and returns what each
// observation that is one stands for. Turns near the end of the trace are gone
// on from after it, unseen, so that counting alone would end sessions too
// early: within each leaf, what was seen is weighted by the estimator of Kaplan
// and Meier ("Nonparametric Estimation from Incomplete Observations", JASA 53,
// 1958).
func (f *fitter) fitGoesOn(c *choice, questions []asked) (weights []float64) {
	samples := make([]sample, len(questions))
	for i, a := range questions {
		known := f.knownOf(&f.rows[a.row].turn, a.order)
		samples[i] = sample{append(known[:], make([]float64, relations)...), 1}
		if a.next != none {
			samples[i].at[turnKnown+int(f.rows[a.next].relation)] = 1
		}
	}
	*c = fitChoice(samples, turnKnown)
	leaves := make([][]int, len(c.leaves))
	for i := range samples {
		k := c.leaf(samples[i].at)
		leaves[k] = append(leaves[k], i)
	}
	weights = make([]float64, len(questions))
	for _, some := range leaves {
		kaplanMeier(questions, some, weights)
	}
	for i, a := range questions {
		if a.next != none {
			samples[i].at[turnKnown+int(f.rows[a.next].relation)] = weights[i]
		}
	}
	c.fill(samples, turnKnown)
	return weights
}

func kaplanMeier(questions []asked, some []int, weights []float64) {
	slices.SortStableFunc(some, func(i, j int) int {
		a, b := questions[i], questions[j]
		return cmp.Or(cmp.Compare(min(a.gap, a.left), min(b.gap, b.left)), cmp.Compare(a.gap, b.gap))
	})
	survive, n := 1.0, float64(len(some))
	for k, i := range some {
		if questions[i].next == none {
			continue
		}
		drop := survive / (n - float64(k))
		survive -= drop
		weights[i] = rounded(min(drop*n, maxWeight), 6)
	}
}

// fitPace learns when requests come or, if later turns follow the turn before,
// when sessions begin.
func (f *fitter) fitPace() {
	var times []float64
	for i := range f.rows {
		if r := &f.rows[i]; !f.delays || r.begins() {
			times = append(times, r.at)
		}
	}
	f.arrivals = fitArrivals(times)
}
