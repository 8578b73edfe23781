package sessions

import (
	"fmt"
	"math"
	"slices"

	mstats "github.com/montanaflynn/stats"

	"moontide/trace"
)

// These laws are for fewer first turns, later turns or sub-agents than a part of a model
// must be derived from: they are derived from all requests, and so are coarse.

// firstTurnsOfAll learns the first prompts of sessions, or of sub-agents, from all of
// their turns, less the mean growth of the prompts until then.
func (f *clientFitter) firstTurnsOfAll(subAgents bool) joint {
	of := func(r *row) bool { return r.level > 0 == subAgents }
	n, grown, later := 0, 0, 0
	f.noteFewLengths(subAgents)
	for i := range f.rows {
		r := &f.rows[i]
		n += indicator(of(r))
		if r.parent != none && r.relation != joins {
			grown += max(0, r.isl-f.rows[r.parent].isl)
			later++
		}
	}
	growth := rounded(float64(grown)/float64(max(later, 1)), 2)
	var samples []sample
	for i := range f.rows {
		if r := &f.rows[i]; n < minRequests || of(r) {
			isl := math.Round(max(1, float64(r.isl)-growth*float64(r.number)))
			samples = append(samples, sample{append(make([]float64, startKnown), isl, float64(r.osl)), 1})
		}
	}
	return fitJoint(samples, startKnown)
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
	var followed [relations]int
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
		followed[r.relation]++
		kinds[r.kind]++
	}
	if len(f.LaterTurns) > 0 || len(waits) == 0 {
		return
	}
	f.notes = append(f.notes, fmt.Sprintf("%d later turns: waits and new tokens have a lognormal distribution with the source's median and deviation", len(waits)))
	rel := slices.Index(followed[:], slices.Max(followed[:]))
	n := float64(len(f.rows))
	f.Continues = choice{Leaves: []shares{continued(n, relation(rel), float64(len(waits))/n)}}
	// Few sessions do not show how long prompts get: the longest must not end all others.
	f.ISL[1] = min(2*f.ISL[1]-.5, lengthRange.high)
	given := joint{f.fewShare(kept), f.fewTimes(waits)}
	if f.file.DelayKinds {
		kind := float64(slices.Index(kinds, slices.Max(kinds)))
		given = append(joint{{Leaves: [][]bin{{{n, n, kind}}}}}, given...)
	}
	f.LaterTurns[relationNames[rel]] = given
	f.LaterLengths[relationNames[rel]] = append(joint{f.fewTimes(tokens)}, fitJoint(osls, lengthKnown)...)
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
	var followed [relations]int
	later := 0
	for i := range f.rows {
		if r := &f.rows[i]; r.parent != none && r.relation != joins {
			followed[r.relation]++
			later++
		}
	}
	n := float64(len(f.rows))
	turns := n / (n - float64(later))
	if f.Sessions >= minRequests || later == 0 || turns >= maxNumber {
		return
	}
	rel := relation(slices.Index(followed[:], slices.Max(followed[:])))
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
// logarithms of some times or lengths, to two digits.
func (f *clientFitter) fewTimes(values []float64) conditional {
	logs := make([]float64, len(values))
	for i, x := range values {
		logs[i] = math.Log(max(x, 1))
	}
	median, _ := mstats.Median(logs)
	deviation, _ := mstats.StandardDeviation(logs)
	median, deviation = rounded(median, 2), rounded(deviation, 2)
	const parts = 16
	quantile := func(p float64) float64 {
		return math.Round(math.Exp(min(median+deviation*math.Sqrt2*math.Erfinv(2*p-1), math.Log(trace.MaxLength))))
	}
	n := float64(len(f.rows))
	bins := make([]bin, parts)
	for i := range bins {
		bins[i] = bin{n, 1, quantile((float64(i) + .5) / parts)}
	}
	return conditional{Leaves: [][]bin{bins}}
}
