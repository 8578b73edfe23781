package spec

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"moontide/trace/stats"
)

// The arrival processes.
const (
	constant = "constant" // equal gaps
	poisson  = "poisson"  // exponential gaps
	gamma    = "gamma"    // gamma gaps with a given CV
	weibull  = "weibull"  // Weibull gaps with a given CV
	replay   = "replay"   // the arrivals of a trace
)

// Processes returns the arrival processes, the replay of a file last.
func Processes() []string { return []string{constant, poisson, gamma, weibull, replay} }

const year = 366 * 24 * 3600.0

// The allowed rates, in requests per second, and periods, in seconds.
var (
	rates   = span{1e-6, 1e6}
	periods = span{0.01, 100 * year}
)

// arrivals is an arrival process: independent gaps in the operational time of a
// rate, or the timestamps of another trace.
type arrivals struct {
	process string
	cv      float64 // of gamma and weibull gaps
	rate    rate    // nil for replayed times at their original rate
	bursts  *onOff
	times   []float64 // replayed, in seconds; the first is 0
}

type onOff struct{ on, off, ratio float64 }

// arrivals reads a process and its rate; rate is nil if the spec has none.
func (r *reader) arrivals(n, rate *node) *arrivals {
	if n == nil {
		n = &node{kind: mapping}
	}
	if n.kind == scalar {
		n = n.asMapping("process")
	}
	f := r.fields(n, "arrival")
	a := &arrivals{cv: f.gapCV()}
	otherwise := poisson
	switch {
	case a.cv > 0:
		otherwise = gamma
	case f.has("file"):
		otherwise = replay
	}
	a.process = f.choice("process", otherwise, Processes()...)
	f.checkProcess(a)
	if a.process == replay {
		a.times = f.timestamps("file")
	}
	if a.process != replay || rate != nil {
		a.rate = r.rate(rate)
	}
	a.readCycle(f)
	a.readBursts(f)
	return a
}

// gapCV reads the coefficient of variation of the gaps, 0 if it is not set.
func (f fields) gapCV() float64 {
	f.onlyOne("cv", "burstiness")
	if b := f.number("burstiness", 0, span{1e-4, 1e4}); b > 0 {
		return 1 / math.Sqrt(b)
	}
	return f.number("cv", 0, span{0.01, 20})
}

// checkProcess refuses keys that do not apply to the process.
func (f fields) checkProcess(a *arrivals) {
	hasCV := a.process == gamma || a.process == weibull
	switch {
	case hasCV && a.cv == 0:
		f.fail(f.place("process"), "%s is %s and needs cv", f.label("process"), a.process)
	case f.has("burstiness") && a.process != gamma:
		f.fail(f.place("burstiness"), "arrival.burstiness applies to gamma arrivals, not to %s", a.process)
	case !hasCV && a.cv > 0:
		f.fail(f.place("cv"), "arrival.cv applies to gamma and weibull arrivals, not to %s", a.process)
	case a.process == replay && !f.has("file"):
		f.fail(f.place("process"), "%s is replay and needs file: a trace", f.label("process"))
	case a.process != replay && f.has("file"):
		f.fail(f.place("file"), "arrival.file applies to replay, not to %s", a.process)
	case a.process == replay && (f.has("bursts") || f.has("cycle")):
		f.fail(f.node.place, "bursts and cycle do not apply to replayed arrivals")
	}
}

// rate reads a rate: a number or phases.
func (r *reader) rate(n *node) rate {
	if n == nil {
		return steady(1)
	}
	switch n.kind {
	case list:
		return r.phases(n, false)
	case mapping:
		f := r.fields(n, "rate")
		repeat := f.choice("repeat", "false", "true", "false") == "true"
		parts := n.at("phases")
		if parts == nil || parts.kind != list {
			r.fail(n.place, "rate.phases is missing or not a list")
		}
		return r.phases(parts, repeat)
	}
	return steady(r.parse(n, "rate", rates, number))
}

func (r *reader) phases(n *node, repeat bool) rate {
	if len(n.items) == 0 || len(n.items) > 1000 {
		r.fail(n.place, "rate has %d phases, want 1 to 1000", len(n.items))
	}
	allowed := span{0, rates.high}
	var parts []phase
	last := 0.0
	for i, item := range n.items {
		f := r.fields(item, "rate.phases")
		f.onlyOne("at", "from")
		f.onlyOne("at", "to")
		if !f.has("for") || !f.has("at") && !f.has("to") {
			f.fail(item.place, "a phase needs for and at, or for and to")
		}
		if i == 0 && f.has("to") && !f.has("from") {
			f.fail(item.place, "the first phase has no previous rate: want from and to, or at")
		}
		p := phase{length: f.seconds("for", 0, periods)}
		p.from = f.number("at", f.number("from", last, allowed), allowed)
		p.to = f.number("at", f.number("to", 0, allowed), allowed)
		parts = append(parts, p)
		last = p.to
	}
	p := newPhases(parts, repeat)
	if p.peak() < rates.low {
		r.fail(n.place, "the rate is 0 in every phase")
	}
	return p
}

func (a *arrivals) readCycle(f fields) {
	n := f.node.at("cycle")
	if n == nil {
		return
	}
	c := f.reader.fields(n, "arrival.cycle")
	mean, isSteady := a.rate.(steady)
	if !isSteady {
		f.fail(n.place, "arrival.cycle needs a constant rate (its mean)")
	}
	a.rate = cycle{
		mean:      float64(mean),
		amplitude: c.number("amplitude", 0.5, span{0, 1}),
		period:    c.seconds("period", 24*3600, periods),
		peakTime:  c.seconds("peak", 0, span{0, periods.high}),
	}
}

func (a *arrivals) readBursts(f fields) {
	n := f.node.at("bursts")
	if n == nil {
		return
	}
	b := f.reader.fields(n, "arrival.bursts")
	if !b.has("on") || !b.has("off") {
		f.fail(n.place, "arrival.bursts needs on and off: their mean times")
	}
	a.bursts = &onOff{b.seconds("on", 1, periods), b.seconds("off", 1, periods), b.number("ratio", 0, span{0, 1})}
	// Each switch takes time to simulate, even when nothing arrives.
	if switches := 1 / ((a.bursts.on + a.bursts.off) * a.rate.peak()); switches > 1e4 {
		f.fail(n.place, "arrival.bursts switch %.3g times per request: want fewer than 10000", switches)
	}
}

// length returns the time after which the process repeats or stays constant, or
// 0 if there is none.
func (a *arrivals) length(scale float64) float64 {
	if p, ok := a.rate.(*phases); ok && !p.repeat {
		return p.length
	}
	if a.times != nil {
		return a.passLength() * a.stretch(scale)
	}
	return 0
}

// endsAtZero reports whether the process stops for good.
func (a *arrivals) endsAtZero() bool {
	p, ok := a.rate.(*phases)
	return ok && !p.repeat && p.final() == 0
}

// passLength returns the time between two passes through the file. The last
// request of a pass is followed by a gap of mean length.
func (a *arrivals) passLength() float64 {
	last := a.times[len(a.times)-1]
	return last + last/float64(len(a.times)-1)
}

// stretch returns the factor that gives replayed times the rate of the spec.
func (a *arrivals) stretch(scale float64) float64 {
	mean, ok := a.rate.(steady)
	if !ok {
		return 1
	}
	return float64(len(a.times)) / a.passLength() / (float64(mean) * scale)
}

// start starts the process. Each call of the result returns the time of the
// next arrival in seconds, or +Inf after the last. The rate is multiplied by
// scale.
func (a *arrivals) start(seed uint64, aspect string, scale float64) func() float64 {
	if a.process == replay {
		return a.replayTimes(a.stretch(scale))
	}
	after := a.rate.after
	if b := a.bursts; b != nil {
		after = newBursts(a.rate, b.on, b.off, b.ratio, stats.NewStream(seed, aspect+" bursts")).after
	}
	gap := a.gaps(seed, aspect)
	now := 0.0
	return func() float64 {
		now = after(now, gap()/scale)
		return now
	}
}

func (a *arrivals) replayTimes(stretch float64) func() float64 {
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

// gaps returns gaps in operational time with a mean of 1. They are not rescaled
// to hit a rate exactly. Constant arrivals start with a gap of 0, others with a
// random one.
func (a *arrivals) gaps(seed uint64, aspect string) func() float64 {
	random := stats.NewStream(seed, aspect)
	switch a.process {
	case gamma:
		shape := 1 / (a.cv * a.cv)
		return distuv.Gamma{Alpha: shape, Beta: shape, Src: random}.Rand
	case weibull:
		w := stats.NewWeibull(1, a.cv)
		return func() float64 { return w.Scale * math.Pow(random.ExpFloat64(), 1/w.Shape) }
	case poisson:
		return random.ExpFloat64
	}
	gap := 0.0
	return func() float64 {
		now := gap
		gap = 1
		return now
	}
}
