package sessions

import (
	"cmp"
	"math"
	"slices"

	"moontide/trace"
)

// fitSettleTime finds the time after which most turns have their previous turn
// in the trace. Until then, sessions that began before the trace look new.
func (f *clientFitter) fitSettleTime() {
	var gaps []float64
	for i := range f.rows {
		if r := &f.rows[i]; r.parent != none {
			gaps = append(gaps, r.gap)
		}
	}
	if len(gaps) < minLeafSize {
		return
	}
	slices.Sort(gaps)
	f.SettledMs = rounded(min(gaps[len(gaps)*99/100], f.period/3), 2)
}

// fitFirstTurns learns how sessions start. Sessions with a template are learned
// separately because their lengths are unrelated to the others.
func (f *clientFitter) fitFirstTurns() {
	var lengths [2][]sample
	var templated []sample
	for i := range f.rows {
		r := &f.rows[i]
		if r.starts() {
			f.Sessions++
		}
		if r.parent != none || r.level > 0 {
			continue
		}
		known := f.startContext(r.template, r.at)
		private := max(0, r.isl-f.tokensOf(r.template))
		has := indicator(r.template > 0)
		lengths[has] = append(lengths[has], sample{append(known[:], float64(private), float64(r.osl)), 1})
		templated = append(templated, sample{[]float64{r.at, float64(has)}, 1})
	}
	f.SessionsAhead = f.maxSessionsAhead()
	if len(lengths[0])+len(lengths[1]) < minRequests { // too few to keep private
		f.FirstTurn = f.firstTurnsOfAll(false)
	}
	few := indicator(len(lengths[1]) < len(lengths[0]))
	if len(lengths[few]) < minRequests { // their lengths count among those of the others
		lengths[1-few], lengths[few] = append(lengths[1-few], lengths[few]...), nil
	}
	for i, first := range []*joint{&f.FirstTurn, &f.FirstTurnTemplated} {
		if len(lengths[i]) >= minRequests {
			*first = fitJoint(lengths[i], startKnown)
		}
	}
	if len(f.templates) > 1 && len(templated) >= minRequests {
		f.Templated = fitChoice(templated, 1)
		f.Templated.fitShares(templated, 1)
	}
}

// maxSessionsAhead returns the maximum number of sessions ahead of their share
// of the requests so far.
func (f *clientFitter) maxSessionsAhead() float64 {
	share := float64(f.Sessions) / float64(len(f.rows))
	started, ahead := 0.0, 0.0
	for i := range f.rows {
		if f.rows[i].starts() {
			started++
			ahead = max(ahead, started-share*float64(i))
		}
	}
	return rounded(ahead, 2)
}

// observation records whether a turn was continued for the order-th time.
type observation struct {
	row, next int32 // next is none if it was not
	order     int
	last      relation // of the continuation before, if there is one
	gap, left float64  // ms until the next turn, and until the end of the trace
}

// fitLaterTurns learns whether, how and when turns are continued.
func (f *clientFitter) fitLaterTurns() {
	end := f.period
	continues := []*choice{&f.Continues, &f.ContinuesAgain}
	all := make([][]observation, len(continues))
	for i := range f.rows {
		r := &f.rows[i]
		since := r.at
		for order := 0; order <= len(r.next); order++ {
			o := observation{row: int32(i), next: none, order: order, gap: math.Inf(1), left: end - since}
			if order > 0 {
				o.last = f.rows[r.next[order-1]].relation
			}
			if r.level > 0 { // what waits for a sub-agent shows that it ended
				o.left = math.Inf(1)
			}
			if order < len(r.next) {
				o.next = r.next[order]
				o.gap = max(0, f.rows[o.next].at-since)
				since = f.rows[o.next].at
			}
			k := min(order, len(all)-1)
			all[k] = append(all[k], o)
		}
	}
	f.LaterTurns, f.LaterLengths = make(map[string]joint), make(map[string]joint)
	var turns, lengths [relations][]sample
	for k, observations := range all {
		continued := 0
		for _, o := range observations {
			if o.next != none {
				continued++
			}
		}
		if continued < minRequests {
			continue
		}
		weights := f.fitContinues(continues[k], observations)
		for i, o := range observations {
			if o.next != none {
				rel := f.rows[o.next].relation
				turn, length := f.turnSamples(o, weights[i])
				turns[rel], lengths[rel] = append(turns[rel], turn), append(lengths[rel], length)
			}
		}
	}
	for rel, name := range relationNames {
		if len(turns[rel]) >= minRequests {
			f.LaterTurns[name] = f.fitTurns(turns[rel])
			f.LaterLengths[name] = fitJoint(lengths[rel], lengthKnown)
		}
	}
	if f.Sessions < minRequests && len(f.LaterTurns) > 0 { // too few to show how long prompts get
		f.ISL[1] = min(2*f.ISL[1]-.5, lengthRange.high)
	}
	f.fitFewTurns()
	f.evenSessions()
}

// turnSamples returns an observed continuation: the known values of the turn, then
// the kind of delay if rows have one, kept share and wait; and these, the time of the next turn, its tokens and OSL.
func (f *clientFitter) turnSamples(o observation, weight float64) (turn, lengths sample) {
	p, r := &f.rows[o.row], &f.rows[o.next]
	known := f.turnContext(&p.turn, o.order, o.last)
	depth := f.templates[p.template].depth
	kept, tokens := 0.0, 0
	switch r.relation {
	case extends:
		kept = float64(indicator(r.shared > f.fullBlocks(p.isl))) // the id of a partial block
		tokens = r.isl - p.isl
	case returns, edits, joins:
		if own := f.fullBlocks(p.isl) - depth; own > 0 && r.relation != returns {
			kept = rounded(min(max(0, float64(r.shared-depth)/float64(own)), 1), 4)
		}
		tokens = max(0, r.isl-r.shared*f.size.Tokens)
	}
	wait := o.gap
	switch {
	case r.relation == joins:
	case r.untimed:
		wait = r.delay
	case f.file.Delays:
		wait = max(0, o.gap-trace.AnswerTime(p.osl))
	}
	wait = rounded(wait, 9)
	values := known[:]
	if f.file.DelayKinds {
		values = append(values, float64(r.kind))
	}
	turn = sample{append(values, kept, wait), weight}
	return turn, sample{append(known[:], kept, wait, r.phase, float64(r.kind), float64(tokens), float64(r.osl)), weight}
}

// fitTurns learns how turns are continued. Think times and those of tools are kept
// apart.
func (f *clientFitter) fitTurns(samples []sample) joint {
	if f.file.DelayKinds {
		return fitJoint(samples, turnKnown, betweenKinds(turnKnown)...)
	}
	return fitJoint(samples, turnKnown)
}

// betweenKinds divides samples by the kind of their delay, a dimension: means of unlike
// things would fit none.
func betweenKinds(dim int) (between []threshold) {
	for kind := range len(delayKinds) - 1 {
		between = append(between, threshold{dim, float64(kind) + .5, minRequests})
	}
	return between
}

// maxWeight limits the weight of an observed continuation, so that a few late
// ones have little influence.
const maxWeight = 3

// fitContinues learns whether turns are continued, and returns the weight of
// each observed continuation. The Kaplan-Meier estimator corrects, within each
// leaf, for continuations after the end of the trace ("Nonparametric Estimation
// from Incomplete Observations", JASA 53, 1958).
//
// A long session is the product of many choices, which small errors at its turns would
// make rare: turns are divided by their number even where that gains little.
func (f *clientFitter) fitContinues(c *choice, observations []observation) (weights []float64) {
	samples := make([]sample, len(observations))
	outcome := func(i int) *float64 {
		return &samples[i].values[turnKnown+int(f.rows[observations[i].next].relation)]
	}
	for i, o := range observations {
		known := f.turnContext(&f.rows[o.row].turn, o.order, o.last)
		samples[i] = sample{append(known[:], make([]float64, relations)...), 1}
		if o.next != none {
			*outcome(i) = 1
		}
	}
	*c = fitChoice(samples, turnKnown, turnNumber)
	leaves := make([][]int, len(c.Leaves))
	for i := range samples {
		k := c.leaf(samples[i].values)
		leaves[k] = append(leaves[k], i)
	}
	weights = make([]float64, len(observations))
	for _, leaf := range leaves {
		kaplanMeier(observations, leaf, weights)
	}
	for i, o := range observations {
		if o.next != none {
			*outcome(i) = weights[i]
		}
	}
	c.fitShares(samples, turnKnown)
	return weights
}

func kaplanMeier(observations []observation, leaf []int, weights []float64) {
	slices.SortStableFunc(leaf, func(i, j int) int {
		a, b := observations[i], observations[j]
		return cmp.Or(cmp.Compare(min(a.gap, a.left), min(b.gap, b.left)), cmp.Compare(a.gap, b.gap))
	})
	survival, n := 1.0, float64(len(leaf))
	for k, i := range leaf {
		if observations[i].next == none {
			continue
		}
		drop := survival / (n - float64(k))
		survival -= drop
		weights[i] = rounded(min(drop*n, maxWeight), 6)
	}
}
