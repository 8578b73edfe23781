package spec

import (
	"moontide/trace"
	"moontide/trace/stats"
)

const year = 366 * 24 * 3600.0

// The allowed rates, in requests per second, and periods, in seconds.
var (
	rates   = span{1e-6, 1e6}
	periods = span{0.01, 100 * year}
)

// arrivals is an arrival process: independent gaps in the operational time of a
// rate.
type arrivals struct {
	process string
	cv      float64 // of gamma gaps
	rate    rate
	bursts  *onOff
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
	a := &arrivals{cv: f.number("cv", 0, span{0.01, 100})}
	otherwise := trace.Poisson
	if a.cv > 0 {
		otherwise = trace.Gamma
	}
	a.process = f.choice("process", otherwise, trace.Processes()...)
	switch {
	case a.process == trace.Gamma && a.cv == 0:
		f.fail(f.place("process"), "%s is gamma and needs cv", f.label("process"))
	case a.process != trace.Gamma && a.cv > 0:
		f.fail(f.place("cv"), "arrival.cv applies to gamma arrivals, not to %s", a.process)
	}
	a.rate = r.rate(rate)
	if n := f.node.at("cycle"); n != nil {
		a.rate = r.cycle(n, a.rate)
	}
	if n := f.node.at("bursts"); n != nil {
		a.bursts = r.bursts(n, a.rate)
	}
	return a
}

// rate reads a rate: a number or phases.
func (r *reader) rate(n *node) rate {
	if n == nil {
		return steady(1)
	}
	if n.kind == list {
		return r.phases(n)
	}
	return steady(r.parse(n, "rate", rates, number))
}

func (r *reader) phases(n *node) rate {
	if len(n.items) == 0 || len(n.items) > 1000 {
		r.fail(n.place, "rate has %d phases, want 1 to 1000", len(n.items))
	}
	allowed := span{0, rates.high}
	var parts []phase
	last := 0.0
	for i, item := range n.items {
		f := r.fields(item, "rate")
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
	p := newPhases(parts)
	if p.peak() < rates.low {
		r.fail(n.place, "the rate is 0 in every phase")
	}
	return p
}

// cycle reads how a constant rate varies.
func (r *reader) cycle(n *node, around rate) rate {
	f := r.fields(n, "arrival.cycle")
	mean, isSteady := around.(steady)
	if !isSteady {
		f.fail(n.place, "arrival.cycle needs a constant rate (its mean)")
	}
	return cycle{
		mean: float64(mean), amplitude: f.number("amplitude", 0.5, span{0, 1}),
		period: f.seconds("period", 24*3600, periods), peakTime: f.seconds("peak", 0, span{0, periods.high}),
	}
}

// bursts reads the states between which a rate switches.
func (r *reader) bursts(n *node, of rate) *onOff {
	f := r.fields(n, "arrival.bursts")
	if !f.has("on") || !f.has("off") {
		f.fail(n.place, "arrival.bursts needs on and off: their mean times")
	}
	b := &onOff{f.seconds("on", 1, periods), f.seconds("off", 1, periods), f.number("ratio", 0, span{0, 1})}
	// Each switch takes time to simulate, even when nothing arrives.
	if switches := 1 / ((b.on + b.off) * of.peak()); switches > 1e4 {
		f.fail(n.place, "arrival.bursts switch %.3g times per request: want fewer than 10000", switches)
	}
	return b
}

// endsAtZero reports whether the process stops for good.
func (a *arrivals) endsAtZero() bool {
	p, ok := a.rate.(*phases)
	return ok && p.final() == 0
}

// start starts the process. Each call of the result returns the time of the
// next arrival in seconds, or +Inf after the last. The rate is multiplied by
// scale. Constant arrivals begin at 0, others after a random gap.
func (a *arrivals) start(seed uint64, aspect string, scale float64) func() float64 {
	after := a.rate.after
	if b := a.bursts; b != nil {
		after = newBursts(a.rate, b.on, b.off, b.ratio, stats.NewStream(seed, aspect+" bursts")).after
	}
	gap := trace.Gaps(a.process, 1, 1/(a.cv*a.cv), stats.NewStream(seed, aspect))
	now, begun := 0.0, a.process != trace.Constant
	return func() float64 {
		step := 0.0
		if begun {
			step = gap() / scale
		}
		now, begun = after(now, step), true
		return now
	}
}
