package sessions

import (
	"fmt"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/stats"
)

// These laws are for first turns, later turns or sub-agents that are too few for a part of
// a model. They are derived from all requests, so they are coarse.

// firstTurnsOfAll learns the first prompts of sessions, or of sub-agents, from all of
// their turns, less the mean growth of the prompts until then. Each session counts as
// much as any other, however many turns it has.
func (f *clientFitter) firstTurnsOfAll(subAgents bool) joint {
	f.noteFewLengths(subAgents)
	of := func(r *row) bool { return r.level > 0 == subAgents }
	rows := 0
	first, turns := make([]int, len(f.rows)), make([]int, len(f.rows)) // of the session of each row
	for i := range f.rows {
		r := &f.rows[i]
		rows += indicator(of(r))
		first[i] = i
		if r.parent != none && r.relation != joins {
			first[i] = first[r.parent]
		}
		turns[first[i]]++
	}
	if rows < minRequests {
		of = func(*row) bool { return true }
	}
	growth := f.meanGrowth(of)
	var samples []sample
	for i := range f.rows {
		if r := &f.rows[i]; of(r) {
			isl := math.Round(max(1, float64(r.isl)-growth*float64(r.number)))
			samples = append(samples, sample{append(make([]float64, startKnown), isl, float64(r.osl)), rounded(1/float64(turns[first[i]]), 6)})
		}
	}
	return fitJoint(samples, startKnown)
}

// meanGrowth returns by how much later turns of some rows are longer than those before
// them or, if these are few, those of all rows.
func (f *clientFitter) meanGrowth(of func(*row) bool) float64 {
	var own, all stats.Amount
	for i := range f.rows {
		r := &f.rows[i]
		if r.parent == none || r.relation == joins {
			continue
		}
		grown := float64(max(0, r.isl-f.rows[r.parent].isl))
		all.Events, all.Of = all.Events+grown, all.Of+1
		if of(r) {
			own.Events, own.Of = own.Events+grown, own.Of+1
		}
	}
	if own.Of >= minRequests {
		all = own
	}
	return rounded(all.Events/max(all.Of, 1), 2)
}

func (f *clientFitter) noteFewLengths(subAgents bool) {
	whose := "sessions"
	if subAgents {
		whose = "sub-agents"
	}
	f.notes = append(f.notes, fmt.Sprintf("few %s: their first prompts are estimated from all turns, less the mean growth of prompts", whose))
}

// fitFewTurns learns whether and how turns are continued if there are later turns, but
// too few of each kind.
func (f *clientFitter) fitFewTurns() {
	kinds := make([]int, len(delayKinds))
	var waits, tokens, kept []float64
	var osls []sample
	for i := range f.rows {
		r := &f.rows[i]
		osls = append(osls, sample{append(make([]float64, lengthKnown), float64(r.osl)), 1})
		if r.parent == none || r.relation == joins {
			continue
		}
		_, lengths := f.turnSamples(observation{row: r.parent, next: int32(i), gap: r.gap}, 1)
		v := lengths.values[turnKnown:]
		kept, waits, tokens = append(kept, v[0]), append(waits, v[1]), append(tokens, v[4])
		kinds[r.kind]++
	}
	if len(f.LaterTurns) > 0 || len(waits) == 0 {
		return
	}
	f.notes = append(f.notes, fmt.Sprintf("%d later turns: waits and new tokens have lognormal distributions with about the source's medians and means", len(waits)))
	_, rel := f.continuations()
	n := float64(len(f.rows))
	f.Continues = choice{Leaves: []shares{continued(n, rel, float64(len(waits))/n)}}
	// Few sessions do not show how long prompts get: the longest must not end all others.
	f.ISL[1] = min(2*f.ISL[1]-.5, lengthRange.high)
	given := joint{f.fewShare(kept), f.fewTimes(waits)}
	if f.file.DelayKinds {
		kind := float64(slices.Index(kinds, slices.Max(kinds)))
		given = append(joint{{Leaves: [][]bin{{{n, n, kind}}}}}, given...)
	}
	f.LaterTurns[relationNames[rel]] = given
	answers := fitJoint(osls, lengthKnown)
	f.LaterLengths[relationNames[rel]] = append(joint{f.fewLengths(tokens)}, answers...)
	if len(f.rows) >= 2*minLeafSize {
		return
	}
	for _, first := range []joint{f.FirstTurn, f.FirstTurnTemplated} { // the mean of all turns stays that of the source
		if len(first) > 0 {
			first[1] = answers[0]
		}
	}
}

// continuations returns how often turns are continued in each way within their session,
// and the most common way.
func (f *clientFitter) continuations() (times [relations]int, most relation) {
	for i := range f.rows {
		if r := &f.rows[i]; r.parent != none && r.relation != joins {
			times[r.relation]++
		}
	}
	return times, relation(slices.Index(times[:], slices.Max(times[:])))
}

// continued returns the shares of a leaf whose turns are continued in one way.
func continued(requests float64, rel relation, share float64) shares {
	leaf := append(shares{requests}, make([]float64, relations)...)
	leaf[1+rel] = math.Floor(share*1e6) / 1e6
	return leaf
}

// evenSessions gives sessions the mean number of turns, rounded up or down: fewer than
// five do not tell how their numbers vary. How turns are continued does not depend on
// anything else then, and usually is the most common way.
func (f *clientFitter) evenSessions() {
	followed, rel := f.continuations()
	later, rare := 0, 0 // rare turns continue in a way that is too rare to be kept: they start sessions
	for _, times := range followed {
		later += times
		if times < minRequests && times < followed[rel] {
			rare += times
		}
	}
	n := float64(len(f.rows))
	turns := n / (n - float64(later-rare))
	if f.Sessions+rare >= minRequests || later == 0 || turns >= maxNumber {
		return
	}
	f.Sessions += rare
	whole, part := math.Modf(turns)
	f.Continues = choice{
		decisionTree: decisionTree{[]split{{turnNumber, whole - 1.5, -1, 1}, {turnNumber, whole - .5, -2, -3}}},
		Leaves:       []shares{continued(n, rel, 1), continued(n, rel, part), continued(n, rel, 0)},
	}
	f.notes = append(f.notes, fmt.Sprintf("%d sessions: each has the mean number of turns, %.1f", f.Sessions, turns))
}

// fewShare returns the mean of some shares, to one digit.
func (f *clientFitter) fewShare(values []float64) conditional {
	n := float64(len(f.rows))
	return conditional{Leaves: [][]bin{{{n, n, rounded(sum(values)/float64(len(values)), 1)}}}}
}

// fewTimes returns a lognormal distribution with the median and the deviation of the
// logarithms of some times, to two digits: the mean would be that of the longest.
func (f *clientFitter) fewTimes(values []float64) conditional {
	logs := make([]float64, len(values))
	for i, x := range values {
		logs[i] = math.Log(max(x, 1))
	}
	of := stats.Of(logs)
	return f.lognormal(stats.Lognormal{Mu: rounded(of.Quantile(.5), 2), Sigma: rounded(of.Std, 2)})
}

// fewLengths returns one with the mean and the coefficient of variation of some lengths,
// to two digits: sums of them are lengths of prompts.
func (f *clientFitter) fewLengths(values []float64) conditional {
	of := stats.Of(values)
	mean := max(of.Mean, 1)
	return f.lognormal(stats.NewLognormal(rounded(mean, 2), rounded(of.Std/mean, 2)))
}

// lognormal returns values at even shares of a distribution.
func (f *clientFitter) lognormal(law stats.Lognormal) conditional {
	const parts = 16
	n := float64(len(f.rows))
	bins := make([]bin, parts)
	for i := range bins {
		bins[i] = bin{n, 1, math.Round(min(law.Quantile((float64(i)+.5)/parts), trace.MaxLength))}
	}
	return conditional{Leaves: [][]bin{bins}}
}
