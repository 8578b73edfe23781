package sessions

import (
	"fmt"
	"slices"

	"moontide/trace/stats"
)

// clientFitter learns the model of a client.
type clientFitter struct {
	*client
	rows   []row   // whole sessions, in order of time
	period float64 // duration of the source in ms
	notes  []string
}

// fitted is what is learned about the clients.
type fitted struct {
	clients []clientFile
	notes   []string
}

// fitClients learns the model of each client.
func (f *fitter) fitClients() fitted {
	if len(f.parts) < 2 {
		c := f.newClient(f.rows)
		for _, p := range f.parts {
			c.Name, c.Values = p.name, p.values
		}
		c.fit()
		if f.timetable != nil {
			c.useTimetable(f.timetable)
		} else {
			c.chooseArrivals(fitArrivals)
		}
		c.fitTurnOdds()
		return fitted{[]clientFile{*c.clientFile}, c.notes}
	}
	grid := f.grid()
	var all fitted
	lost := 0
	for i, p := range f.parts {
		rows, n := f.rowsOf(int32(i))
		lost += n
		c := f.newClient(rows)
		c.Name, c.Values = p.name, p.values
		c.fit()
		c.chooseArrivals(func(times, all []float64, period float64) arrivals {
			if at, _ := distinct(times, nil); len(at) <= minGaps { // they tell no rate
				return fitArrivals(times, all, period)
			}
			a := grid
			a.PeriodMs = rounded(period, 4)
			a.Renewal = fitRenewal(times, period, a.TickMs)
			return a
		})
		c.fitTurnOdds()
		for _, note := range c.notes {
			all.notes = append(all.notes, fmt.Sprintf("client %s: %s", p.name, note))
		}
		all.clients = append(all.clients, *c.clientFile)
	}
	if lost >= minRequests {
		all.notes = append(all.notes, fmt.Sprintf("%d of %d requests share blocks with those of another client that are no template: drawn clients share templates only", lost, len(f.rows)))
	}
	return all
}

// grid returns arrivals with the grid of the source's timestamps.
func (f *fitter) grid() arrivals {
	var a arrivals
	at, requests := distinct(f.times(), nil)
	if len(at) < minTimes {
		return a
	}
	if a.TickMs = tickOf(at); a.TickMs > 0 {
		a.fitJitter(at, requests)
	}
	return a
}

func (f *fitter) newClient(rows []row) *clientFitter {
	c := &clientFitter{client: &client{shared: f.shared, clientFile: &clientFile{}}, rows: rows, period: f.rows[len(f.rows)-1].at}
	c.Arrivals.PeriodMs, c.Arrivals.GapMs = rounded(c.period, 4), rounded(gapBetween(f.times()), 4)
	c.Arrivals.LastMs = rounded(lastRegime(rows, c.period), 4)
	return c
}

// lastRegime returns when the last regime of a source with a period in ms begins: where
// its rate or its lengths change for the last time. It takes at least minLastRegime of
// the source.
func lastRegime(rows []row, period float64) float64 {
	const most, perWindow, fewest = 100, 20, 10 // windows, and their requests
	latest := (1 - minLastRegime) * period
	n := min(most, len(rows)/perWindow)
	if n < fewest || period <= 0 {
		return latest
	}
	rate, isl, osl := make([]stats.Amount, n), make([]stats.Amount, n), make([]stats.Amount, n)
	for i := range rows {
		r := &rows[i]
		w := min(int(r.at/period*float64(n)), n-1)
		rate[w].Events++
		isl[w] = stats.Amount{Events: isl[w].Events + float64(r.isl), Of: isl[w].Of + 1}
		osl[w] = stats.Amount{Events: osl[w].Events + float64(r.osl), Of: osl[w].Of + 1}
	}
	var quantities []stats.Varying
	for _, amounts := range [][]stats.Amount{rate, isl, osl} {
		for w := range amounts {
			amounts[w].Of = max(amounts[w].Of, 1)
		}
		quantities = append(quantities, stats.Varying{Amounts: amounts, Noise: stats.WindowNoise(amounts, 1)})
	}
	cuts := stats.WindowChanges(quantities...)
	for i := len(cuts) - 2; i >= 0; i-- {
		if begin := float64(cuts[i]) / float64(n) * period; begin <= latest {
			return begin
		}
	}
	return 0
}

// fit learns all but the arrivals.
func (f *clientFitter) fit() {
	f.Requests = len(f.rows)
	f.fitLengths()
	f.fitPopularity()
	f.fitSettleTime()
	f.fitFirstTurns()
	f.fitLaterTurns()
	f.fitAgents()
	f.fitReasoning()
}

func (f *clientFitter) fitLengths() {
	isls, osls := make([]float64, len(f.rows)), make([]float64, len(f.rows))
	for i := range f.rows {
		isls[i], osls[i] = float64(f.rows[i].isl), float64(f.rows[i].osl)
	}
	f.MeanISL, f.MeanOSL = rounded(sum(isls)/float64(len(isls)), 4), rounded(sum(osls)/float64(len(osls)), 4)
	f.ISL, f.OSL = lengthEnds(isls), lengthEnds(osls)
}

func lengthEnds(values []float64) [2]float64 {
	slices.Sort(values)
	public := publicRange(values, true)
	if values[0] >= 1 { // a round number below a few lengths may be 0
		public.low = max(public.low, .5)
	}
	return [2]float64{public.low, public.high}
}
