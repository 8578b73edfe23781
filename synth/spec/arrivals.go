package spec

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"moontide/trace/stats"
)

// The arrival processes.
const (
	constantGaps = "constant" // equal gaps
	poissonGaps  = "poisson"  // exponential gaps
	gammaGaps    = "gamma"    // gamma gaps of a given CV
	weibullGaps  = "weibull"  // Weibull gaps of a given CV
	replayed     = "replay"   // the arrivals of a trace
)

const year = 366 * 24 * 3600.0

// rates and periods that are allowed. Rates are requests a second.
var (
	rates   = span{1e-6, 1e6}
	periods = span{0.01, 100 * year}
)

// arrivals is a process of arrivals: gaps of one law in the operational time
// of a rate, or the times of another trace.
type arrivals struct {
	process string
	cv      float64 // of gamma and weibull gaps
	rate    profile // nil for replayed times that keep their own
	bursts  *onOff
	times   []float64 // replayed, in seconds, the first 0
}

type onOff struct{ on, off, ratio float64 }

// arrivals reads a process and its rate. rate may be nil where the description
// gives none.
func (r *reading) arrivals(n, rate *node) *arrivals {
	if n == nil {
		n = &node{kind: mapping}
	}
	if n.kind == scalar {
		n = n.inFull("process")
	}
	f := r.fields(n, "arrival", "process", "cv", "burstiness", "file", "bursts", "cycle")
	a := &arrivals{cv: f.variation()}
	otherwise := poissonGaps
	switch {
	case a.cv > 0:
		otherwise = gammaGaps
	case f.has("file"):
		otherwise = replayed
	}
	a.process = f.choice("process", otherwise, constantGaps, poissonGaps, gammaGaps, weibullGaps, replayed)
	f.consistent(a)
	if a.process == replayed {
		a.times = f.arrivals("file")
	}
	if a.process != replayed || rate != nil {
		a.rate = r.rate(rate)
	}
	a.modulate(f, rate)
	return a
}

// variation reads the coefficient of variation of the gaps, 0 where none is
// given.
func (f fields) variation() float64 {
	f.onlyOne("cv", "burstiness")
	if b := f.number("burstiness", 0, span{1e-4, 1e4}); b > 0 {
		return 1 / math.Sqrt(b)
	}
	return f.number("cv", 0, span{0.01, 20})
}

// consistent refuses keys that the process does not know.
func (f fields) consistent(a *arrivals) {
	varies := a.process == gammaGaps || a.process == weibullGaps
	switch {
	case varies && a.cv == 0:
		f.fail(f.place("process"), "%s is %s and needs cv", f.label("process"), a.process)
	case f.has("burstiness") && a.process != gammaGaps:
		f.fail(f.place("burstiness"), "arrival.burstiness goes with gamma arrivals, not with %s", a.process)
	case !varies && a.cv > 0:
		f.fail(f.place("cv"), "arrival.cv goes with gamma and weibull arrivals, not with %s", a.process)
	case a.process == replayed && !f.has("file"):
		f.fail(f.place("process"), "%s is replay and needs file: a trace", f.label("process"))
	case a.process != replayed && f.has("file"):
		f.fail(f.place("file"), "arrival.file goes with replay, not with %s", a.process)
	case a.process == replayed && (f.has("bursts") || f.has("cycle")):
		f.fail(f.node.place, "replayed arrivals have the bursts and cycles of their file: want none here")
	}
}

// rate reads a rate: a number, or phases.
func (r *reading) rate(n *node) profile {
	if n == nil {
		return steady(1)
	}
	switch n.kind {
	case list:
		return r.phases(n, false)
	case mapping:
		f := r.fields(n, "rate", "phases", "repeat")
		repeat := f.choice("repeat", "false", "true", "false") == "true"
		parts := n.at("phases")
		if parts == nil || parts.kind != list {
			r.fail(n.place, "rate needs phases: a list")
			return steady(1)
		}
		return r.phases(parts, repeat)
	}
	return steady(r.number(n, "rate", rates))
}

func (r *reading) phases(n *node, repeat bool) profile {
	if len(n.items) == 0 || len(n.items) > 1000 {
		r.fail(n.place, "rate has %d phases, want 1 to 1000", len(n.items))
		return steady(1)
	}
	allowed := span{0, rates.high}
	var parts []phase
	last := 0.0
	for i, item := range n.items {
		f := r.fields(item, "rate", "for", "at", "from", "to")
		f.onlyOne("at", "from")
		f.onlyOne("at", "to")
		if !f.has("for") || !f.has("at") && !f.has("to") {
			f.fail(item.place, "a phase needs for and at, or for and to")
		}
		if i == 0 && f.has("to") && !f.has("from") {
			f.fail(item.place, "the first phase has nothing to go on from: want from and to, or at")
		}
		p := phase{length: f.seconds("for", 0, periods)}
		p.from = f.number("at", f.number("from", last, allowed), allowed)
		p.to = f.number("at", f.number("to", 0, allowed), allowed)
		parts = append(parts, p)
		last = p.to
	}
	p := newPhases(parts, repeat)
	if !r.failed() && p.peak() < rates.low {
		r.fail(n.place, "the rate is 0 in every phase")
	}
	return p
}

// modulate reads what makes the rate swing or burst.
func (a *arrivals) modulate(f fields, rate *node) {
	if n := f.node.at("cycle"); n != nil {
		c := f.reading.fields(n, "arrival.cycle", "period", "amplitude", "peak")
		mean, isSteady := a.rate.(steady)
		if !isSteady {
			f.fail(n.place, "arrival.cycle needs a rate that is one number: its mean")
		}
		a.rate = cycle{
			mean:      float64(mean),
			amplitude: c.number("amplitude", 0.5, span{0, 1}),
			period:    c.seconds("period", 24*3600, periods),
			peak:      c.seconds("peak", 0, span{0, periods.high}),
		}
	}
	if n := f.node.at("bursts"); n != nil {
		b := f.reading.fields(n, "arrival.bursts", "on", "off", "ratio")
		if !b.has("on") || !b.has("off") {
			f.fail(n.place, "arrival.bursts needs on and off: their mean times")
		}
		a.bursts = &onOff{b.seconds("on", 1, periods), b.seconds("off", 1, periods), b.number("ratio", 0, span{0, 1})}
		// Each turn from on to off costs time, also where nothing arrives.
		if turns := 1 / ((a.bursts.on + a.bursts.off) * a.peak()); !f.failed() && turns > 1e4 {
			f.fail(n.place, "arrival.bursts come %.3g times for each request: want fewer than 10000", turns)
		}
	}
}

func (a *arrivals) peak() float64 {
	switch p := a.rate.(type) {
	case *phases:
		return p.peak()
	case cycle:
		return p.mean
	case steady:
		return float64(p)
	}
	return math.Inf(1)
}

// length is how long the process goes on before it says nothing new; 0 where
// it never does.
func (a *arrivals) length(scale float64) float64 {
	if p, ok := a.rate.(*phases); ok && !p.repeat {
		return p.length
	}
	if a.times != nil {
		return a.passLength() * a.stretch(scale)
	}
	return 0
}

// runsDry reports that no more requests come from some time on.
func (a *arrivals) runsDry() bool {
	p, ok := a.rate.(*phases)
	return ok && !p.repeat && p.final() == 0
}

// passLength is the time from one pass through the file to the next: the last
// request of a pass is followed by a gap of mean length.
func (a *arrivals) passLength() float64 {
	last := a.times[len(a.times)-1]
	return last + last/float64(len(a.times)-1)
}

// stretch is by how much replayed times are stretched so that the rate is the
// one that is asked for.
func (a *arrivals) stretch(scale float64) float64 {
	mean, ok := a.rate.(steady)
	if !ok {
		return 1
	}
	return float64(len(a.times)) / a.passLength() / (float64(mean) * scale)
}

// start begins the process: each call returns the time of the next arrival in
// seconds, or +Inf where there is none. Its rate is scaled by scale.
func (a *arrivals) start(seed uint64, aspect string, scale float64) func() float64 {
	if a.process == replayed {
		return a.replay(a.stretch(scale))
	}
	var when clock = a.rate
	if b := a.bursts; b != nil {
		when = newBursts(a.rate, b.on, b.off, b.ratio, stats.NewStream(seed, aspect+" bursts"))
	}
	gap := a.gaps(seed, aspect)
	now := 0.0
	return func() float64 {
		now = when.after(now, gap()/scale)
		return now
	}
}

func (a *arrivals) replay(stretch float64) func() float64 {
	next, pass := 0, 0.0
	return func() float64 {
		if next == len(a.times) {
			next, pass = 0, pass+1
		}
		at := (pass*a.passLength() + a.times[next]) * stretch
		next++
		return at
	}
}

// gaps returns the gaps in operational time, whose mean is 1. Nothing rescales
// them to hit a rate exactly, so that they vary as their law does. Constant
// arrivals begin with a gap of 0, the others with a gap like any other.
func (a *arrivals) gaps(seed uint64, aspect string) func() float64 {
	random := stats.NewStream(seed, aspect)
	switch a.process {
	case gammaGaps:
		shape := 1 / (a.cv * a.cv)
		return distuv.Gamma{Alpha: shape, Beta: shape, Src: random}.Rand
	case weibullGaps:
		w := stats.NewWeibull(1, a.cv)
		return func() float64 { return w.Scale * math.Pow(random.ExpFloat64(), 1/w.Shape) }
	case poissonGaps:
		return random.ExpFloat64
	}
	gap := 0.0
	return func() float64 {
		now := gap
		gap = 1
		return now
	}
}
