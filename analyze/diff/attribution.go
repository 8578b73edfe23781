package diff

import (
	"fmt"
	"math"
	"slices"
	"time"

	"moontide/analyze/run"
	"moontide/trace"
)

// Attribution divides the pairs into bands by a property. The contributions of the
// bands add up to the mean difference of all pairs.
type Attribution struct {
	By    string
	Bands []Band
}

// Band is a group of pairs with similar values of a property.
type Band struct {
	Name      string
	Pairs     int
	Latencies []BandLatency // TTFT, TPOT and E2EL
	// Share is the band's share in the absolute differences of TTFT and decode time,
	// summed over all pairs.
	Share float64
}

// BandLatency is the difference of a latency within a band.
type BandLatency struct {
	Latency  run.Latency
	Count    int                 // pairs that have the latency
	A, B     float64             // means in the band
	Mean     float64             // mean difference B - A in the band
	Interval trace.Opt[Interval] // of Mean
	Adds     float64             // contribution to the mean difference of all pairs
}

// Significant reports whether the interval is known and excludes 0.
func (l BandLatency) Significant() bool { return l.Interval.Set && !l.Interval.Value.Has(0) }

// property divides pairs into bands; bounds are the lower limits of all but the
// first.
type property struct {
	name   string
	bands  []string
	bounds []float64
	of     func(p *pair) trace.Opt[float64]
	limits []float64 // upper limits of all bands but the last, if they are quantiles
}

// band returns the band of a pair, -1 if the property is unknown.
func (by property) band(p *pair) int {
	value := by.of(p)
	if !value.Set {
		return -1
	}
	band := 0
	for band < len(by.bounds) && value.Value >= by.bounds[band] {
		band++
	}
	return band
}

func (p pairs) properties() []property {
	return []property{
		promptLengths(),
		turns(),
		{
			name: "cached share of the prompt in A", bands: []string{"0 %", "above 0 to 25 %", "25 to 50 %", "50 to 75 %", "75 to 100 %"},
			bounds: []float64{math.SmallestNonzeroFloat64, 0.25, 0.5, 0.75}, of: func(p *pair) trace.Opt[float64] { return p.a.cached.value() },
		},
		{
			name: "change of the cached share", bands: []string{"B cached less", "within 1 point", "B cached more"},
			bounds: []float64{-0.01, math.Nextafter(0.01, 1)}, of: (*pair).cachedChange,
		},
		p.times(),
	}
}

// attributions omits properties with a single band.
func (p pairs) attributions(properties []property, draws []weights) (all []Attribution) {
	for _, by := range properties {
		a := Attribution{By: by.name}
		for _, band := range p.divide(by, draws) {
			if band.Pairs > 0 {
				a.Bands = append(a.Bands, band)
			}
		}
		if len(a.Bands) > 1 {
			all = append(all, a)
		}
	}
	return all
}

// divide cuts each band into its own stretches of equal numbers of pairs, because a
// band may cover only part of the run.
func (p pairs) divide(by property, draws []weights) []Band {
	bands, inBand := make([]Band, len(by.bands)), make([][]*pair, len(by.bands))
	total := 0.0
	for i := range p.pairs {
		both := &p.pairs[i]
		if band := by.band(both); band >= 0 {
			inBand[band] = append(inBand[band], both)
			size := both.phaseErrors()
			bands[band].Share += size[UntilFirstToken] + size[Decode]
			total += size[UntilFirstToken] + size[Decode]
		}
	}
	inParallel(len(bands), func(i int) {
		bands[i].Name, bands[i].Pairs, bands[i].Share = by.bands[i], len(inBand[i]), share(bands[i].Share, total)
		for k := range pairedLatencies {
			bands[i].Latencies = append(bands[i].Latencies, p.bandLatency(inBand[i], k, draws))
		}
	})
	for k := range pairedLatencies {
		total := 0
		for _, band := range bands {
			total += band.Latencies[k].Count
		}
		for _, band := range bands {
			l := &band.Latencies[k]
			l.Adds = l.Mean * float64(l.Count) / float64(max(1, total))
		}
	}
	return bands
}

// bandLatency returns the mean difference of pairedLatencies[k] for some pairs.
func (p pairs) bandLatency(some []*pair, k int, draws []weights) BandLatency {
	l := BandLatency{Latency: pairedLatencies[k]}
	var own, ofRun sums // stretches of the band, and of the run
	for i, both := range some {
		if d := both.difference(k); d.Set {
			l.A += both.a.latencies[k].value().Value
			l.B += both.b.latencies[k].value().Value
			own.add(uint8(i*stretches/len(some)), d.Value)
			ofRun.add(both.stretch, d.Value)
			l.Count++
		}
	}
	if l.Count > 0 {
		l.A, l.B = l.A/float64(l.Count), l.B/float64(l.Count)
		l.Mean = own.mean(&once)
		// In a growing queue, a band also includes delays accumulated before it.
		s := statistic{of: own.mean, known: own.known(), knownRising: own.known(), parts: ofRun.meanParts}
		l.Interval = s.interval(l.Mean, 0, p.steps[k], draws)
	}
	return l
}

func promptLengths() property {
	by := property{name: "ISL", bands: []string{"below 1024"}, of: func(p *pair) trace.Opt[float64] { return trace.Some(float64(p.isl)) }}
	const last = 1 << 17
	for from := 1024; from <= last; from *= 2 {
		by.bounds = append(by.bounds, float64(from))
		by.bands = append(by.bands, fmt.Sprintf("%d to %d", from, 2*from-1))
	}
	by.bands[len(by.bands)-1] = fmt.Sprintf("from %d", last)
	return by
}

func turns() property {
	by := property{name: "turn of the session", of: func(p *pair) trace.Opt[float64] {
		return trace.Opt[float64]{Value: float64(p.turn.Value), Set: p.turn.Set}
	}}
	by.bands, by.bounds = run.TurnBands()
	return by
}

func (p *pair) cachedChange() trace.Opt[float64] {
	a, b := p.a.cached.value(), p.b.cached.value()
	return trace.Opt[float64]{Value: b.Value - a.Value, Set: a.Set && b.Set}
}

func (p pairs) times() property {
	const parts = 8
	by := property{name: "time", of: func(p *pair) trace.Opt[float64] { return trace.Some(float64(p.due)) }}
	if len(p.pairs) == 0 {
		return by
	}
	byDue := func(a, b pair) int { return int(a.due - b.due) }
	first := slices.MinFunc(p.pairs, byDue).due
	length := (slices.MaxFunc(p.pairs, byDue).due - first) / parts
	if length <= 0 {
		by.bands = []string{"all"}
		return by
	}
	digits := 1 // enough to distinguish the periods
	for unit := 200 * time.Millisecond; unit > length && digits < 9; unit /= 10 {
		digits++
	}
	for i := range parts {
		from := first + time.Duration(i)*length
		by.bands = append(by.bands, fmt.Sprintf("%.*f to %.*f s", digits, from.Seconds(), digits, (from+length).Seconds()))
		if i > 0 {
			by.bounds = append(by.bounds, float64(from))
		}
	}
	return by
}
