package diff

import (
	"fmt"
	"time"

	"moontide/analyze/run"
	"moontide/trace"
)

// Origin divides the pairs by something that the difference may go with. What its
// bands add makes the mean difference of all pairs.
type Origin struct {
	By    string
	Bands []Band
}

// Band is a part of the pairs.
type Band struct {
	Name      string
	Pairs     int
	Latencies []Part // of TTFT, TPOT and E2EL
}

// Part is what a band has to do with the difference of a latency.
type Part struct {
	Latency  run.Latency
	Count    int                 // pairs that have the latency
	Mean     float64             // mean difference B - A in the band
	Interval trace.Opt[Interval] // of Mean
	Adds     float64             // what the band adds to the mean difference of all
}

// Significant reports whether the interval of the mean is known and leaves out 0.
func (p Part) Significant() bool { return p.Interval.Set && !p.Interval.Value.Has(0) }

// origins leaves out what does not divide the pairs.
func (p pairs) origins(draws []weights) (all []Origin) {
	for _, by := range []struct {
		name  string
		bands []string
		of    func(both *pair) (band int, ok bool)
	}{
		{"ISL", islBands, func(both *pair) (int, bool) { return islBand(both.isl), true }},
		{"cached share of the prompt in A", cachedBands, func(both *pair) (int, bool) {
			return cachedBand(both.cached[0].Value), both.cached[0].Set
		}},
		{"change of the cached share", cachedChanges, func(both *pair) (int, bool) {
			return cachedChange(both.cached[1].Value - both.cached[0].Value), both.cached[0].Set && both.cached[1].Set
		}},
		{"time", nil, nil},
	} {
		if by.bands == nil {
			by.bands, by.of = p.times()
		}
		o := Origin{By: by.name}
		for i, part := range p.divide(len(by.bands), by.of, draws) {
			if part.Pairs > 0 {
				part.Name = by.bands[i]
				o.Bands = append(o.Bands, part)
			}
		}
		if len(o.Bands) > 1 {
			all = append(all, o)
		}
	}
	return all
}

// divide makes the bands of the pairs, without their names. Each has its own
// stretches, of as many of its pairs, for one may be all in a part of the run.
func (p pairs) divide(n int, of func(both *pair) (int, bool), draws []weights) []Band {
	bands, inBand := make([]Band, n), make([][]*pair, n)
	var counts [3]int // of all bands, by latency
	for i := range p.pairs {
		both := &p.pairs[i]
		band, ok := of(both)
		if !ok {
			continue
		}
		inBand[band] = append(inBand[band], both)
		for k, d := range both.differences {
			if d.Set {
				counts[k]++
			}
		}
	}
	inParallel(n, func(i int) {
		bands[i].Pairs = len(inBand[i])
		for k, latency := range pairedLatencies {
			part := partOf(inBand[i], k, p.growth[k], draws)
			part.Latency, part.Adds = latency, part.Mean*float64(part.Count)/float64(max(1, counts[k]))
			bands[i].Latencies = append(bands[i].Latencies, part)
		}
	})
	return bands
}

// partOf is the mean difference of some pairs in one of pairedLatencies.
func partOf(some []*pair, latency int, g growth, draws []weights) (part Part) {
	var own, all sums // by their own stretches, and by those of the run
	for i, both := range some {
		if d := both.differences[latency]; d.Set {
			own.add(uint8(i*stretches/len(some)), d.Value)
			all.add(both.stretch, d.Value)
			part.Count++
		}
	}
	if part.Count == 0 {
		return part
	}
	part.Mean = own.mean(&once)
	switch {
	case !own.known():
	case g.set: // what was lost before a band is in it, too
		part.Interval = trace.Some(about(part.Mean, g.reach(all.shares())))
	default:
		part.Interval = intervalOf(part.Mean, draws, own.mean)
	}
	return part
}

// islBounds are where bands of the ISL begin, but for the first.
var islBounds = []int{1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17}

var islBands = func() []string {
	names := []string{fmt.Sprintf("below %d", islBounds[0])}
	for i, from := range islBounds {
		if i+1 < len(islBounds) {
			names = append(names, fmt.Sprintf("%d to %d", from, islBounds[i+1]-1))
		} else {
			names = append(names, fmt.Sprintf("from %d", from))
		}
	}
	return names
}()

func islBand(isl int) (band int) {
	for band < len(islBounds) && isl >= islBounds[band] {
		band++
	}
	return band
}

var cachedBands = []string{"0 %", "above 0 to 25 %", "25 to 50 %", "50 to 75 %", "75 to 100 %"}

func cachedBand(share float64) int {
	switch {
	case !(share > 0):
		return 0
	case share < 0.25:
		return 1
	case share < 0.5:
		return 2
	case share < 0.75:
		return 3
	}
	return 4
}

var cachedChanges = []string{"B cached less", "within 1 point", "B cached more"}

func cachedChange(points float64) int {
	switch {
	case points < -0.01:
		return 0
	case points > 0.01:
		return 2
	}
	return 1
}

// times divide the pairs into equal parts of the time in which they were due.
func (p pairs) times() ([]string, func(both *pair) (int, bool)) {
	const parts = 8
	if len(p.pairs) == 0 {
		return nil, nil
	}
	first, last := p.pairs[0].due, p.pairs[0].due
	for _, both := range p.pairs {
		first, last = min(first, both.due), max(last, both.due)
	}
	length := (last - first) / parts
	if length <= 0 {
		return []string{"all"}, func(*pair) (int, bool) { return 0, true }
	}
	digits := 1 // enough to tell the parts apart
	for unit := 200 * time.Millisecond; unit > length && digits < 9; unit /= 10 {
		digits++
	}
	var names []string
	for i := range parts {
		from := first + time.Duration(i)*length
		names = append(names, fmt.Sprintf("%.*f to %.*f s", digits, from.Seconds(), digits, (from+length).Seconds()))
	}
	return names, func(both *pair) (int, bool) { return min(int((both.due-first)/length), parts-1), true }
}
