package sessions

import (
	"fmt"
	"math"

	"moontide/trace/stats"
)

const (
	// lawSeeds is the number of drawings by which the arrivals are chosen, and
	// lawRequests the most requests of each.
	lawSeeds    = 2
	lawRequests = 20_000
	// lawTolerance is how much further from the source, as a KS distance, the arrivals
	// of sessions may be than those of all requests and still be preferred.
	lawTolerance = .003
)

// chooseArrivals learns two laws: of the arrivals of sessions, whose later turns come
// after their own waits, and of all arrivals, which turns that are due take. It keeps the
// one that draws gaps between arrivals and between turns closer to the source's.
func (f *clientFitter) chooseArrivals(law func(times, grid []float64, period float64) arrivals) {
	var all, starts []float64
	later := 0
	for i := range f.rows {
		r := &f.rows[i]
		all = append(all, r.at)
		if r.starts() {
			starts = append(starts, r.at)
		} else {
			later++
		}
	}
	f.noteFewTimes(all)
	period := f.period
	ofSessions := law(starts, all, period)
	ofSessions.OfSessions = true
	if f.file.Delays {
		f.useArrivals(ofSessions)
		return
	}
	f.useArrivals(law(all, all, period))
	if times, _ := distinct(all, nil); later < minRequests || len(times) < minTimes {
		return
	}
	ofAll := f.Arrivals
	gapsAll, turnsAll := f.arrivalDistances()
	f.useArrivals(ofSessions)
	gaps, turns := f.arrivalDistances()
	if max(gaps, turns) <= max(gapsAll, turnsAll)+lawTolerance {
		f.noteArrivals("session starts are drawn, later turns follow their waits", gaps, turns, "drawing all requests", gapsAll, turnsAll)
		return
	}
	f.useArrivals(ofAll)
	f.noteArrivals("all requests are drawn, turns that are due take the next", gapsAll, turnsAll, "drawing session starts", gaps, turns)
}

func (f *clientFitter) noteArrivals(chosen string, gaps, turns float64, instead string, otherGaps, otherTurns float64) {
	f.notes = append(f.notes, fmt.Sprintf("arrivals: %s (KS of gaps %.3f, of turn gaps %.3f; %s instead: %.3f and %.3f)", chosen, gaps, turns, instead, otherGaps, otherTurns))
}

// noteFewTimes notes what can be learned from few timestamps.
func (f *clientFitter) noteFewTimes(all []float64) {
	times, _ := distinct(all, nil)
	switch n := len(times); {
	case n == 1:
		f.notes = append(f.notes, "one timestamp: all sessions start at once")
	case n <= minGaps:
		f.notes = append(f.notes, fmt.Sprintf("%d timestamps: their mean gap and the mean number of requests at each are kept", n))
	case n < minTimes:
		f.notes = append(f.notes, fmt.Sprintf("%d timestamps: gaps and requests at each are drawn from these, with no time grid", n))
	}
}

// useTimetable keeps the timestamps of a source with few of them.
func (f *clientFitter) useTimetable(t timetable) {
	note := "one timestamp: it is kept, and waits follow the order of the requests"
	if len(t) > 1 {
		note = fmt.Sprintf("%d timestamps with at least %d requests each: these are kept, and waits follow the order of the requests", len(t), minRequests)
	}
	f.notes = append(f.notes, note)
	a := f.Arrivals
	a.Timetable = t
	f.useArrivals(a)
}

func (f *clientFitter) useArrivals(a arrivals) {
	a.GapMs, a.LastMs = f.Arrivals.GapMs, f.Arrivals.LastMs
	f.Arrivals = a
	f.client.prepare()
}

// arrivalDistances returns the KS distances of the gaps between arrivals and between
// turns to those of the source.
func (f *clientFitter) arrivalDistances() (gaps, turns float64) {
	source := traitsOf(f.rows)
	var drawn traits
	for seed := range uint64(lawSeeds) {
		all := drawing{shared: f.shared, speed: 1, used: make([]bool, len(f.templates))}
		drawn.draw(len(source.isl), all.newClient(f.client, seed).next)
	}
	return ksOrMost(source.gaps, drawn.gaps), ksOrMost(source.turnGaps, drawn.turnGaps)
}

// ksOrMost returns the KS distance, the largest possible if nothing was drawn.
func ksOrMost(source, drawn []float64) float64 {
	if ks := stats.KS(stats.Of(source), stats.Of(drawn)); !math.IsNaN(ks) {
		return ks
	}
	return 1
}
