package spec

import (
	"math"
	"math/rand/v2"

	"moontide/trace"
	"moontide/trace/stats"
	"moontide/trace/yaml"
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
func (r *reader) arrivals(n, rate *yaml.Node) *arrivals {
	if n == nil {
		n = &yaml.Node{Kind: yaml.Mapping}
	}
	if n.Kind == yaml.Scalar {
		n = n.AsMapping("process")
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
	if n := f.node.At("cycle"); n != nil {
		a.rate = r.cycle(n, a.rate)
	}
	if n := f.node.At("bursts"); n != nil {
		a.bursts = r.bursts(n, a.rate)
	}
	return a
}

// rate reads a rate: a number or phases.
func (r *reader) rate(n *yaml.Node) rate {
	if n == nil {
		return steady(1)
	}
	if n.Kind == yaml.List {
		return r.phases(n)
	}
	return steady(r.parse(n, "rate", rates, number))
}

func (r *reader) phases(n *yaml.Node) rate {
	if len(n.Items) == 0 || len(n.Items) > 1000 {
		r.fail(n.Place, "rate has %d phases, want 1 to 1000", len(n.Items))
	}
	allowed := span{0, rates.high}
	var parts []phase
	last := 0.0
	for i, item := range n.Items {
		f := r.fields(item, "rate")
		f.onlyOne("at", "from")
		f.onlyOne("at", "to")
		if !f.has("for") || !f.has("at") && !f.has("to") {
			f.fail(item.Place, "a phase needs for and at, or for and to")
		}
		if i == 0 && f.has("to") && !f.has("from") {
			f.fail(item.Place, "the first phase has no previous rate: want from and to, or at")
		}
		p := phase{length: f.seconds("for", 0, periods)}
		p.from = f.number("at", f.number("from", last, allowed), allowed)
		p.to = f.number("at", f.number("to", 0, allowed), allowed)
		parts = append(parts, p)
		last = p.to
	}
	p := newPhases(parts)
	if p.peak() < rates.low {
		r.fail(n.Place, "the rate is 0 in every phase")
	}
	return p
}

// cycle reads how a constant rate varies.
func (r *reader) cycle(n *yaml.Node, around rate) rate {
	f := r.fields(n, "arrival.cycle")
	mean, isSteady := around.(steady)
	if !isSteady {
		f.fail(n.Place, "arrival.cycle needs a constant rate (its mean)")
	}
	return cycle{
		mean: float64(mean), amplitude: f.number("amplitude", 0.5, span{0, 1}),
		period: f.seconds("period", 24*3600, periods), peakTime: f.seconds("peak", 0, span{0, periods.high}),
	}
}

// bursts reads the states between which a rate switches.
func (r *reader) bursts(n *yaml.Node, of rate) *onOff {
	f := r.fields(n, "arrival.bursts")
	if !f.has("on") || !f.has("off") {
		f.fail(n.Place, "arrival.bursts needs on and off: their mean times")
	}
	b := &onOff{f.seconds("on", 1, periods), f.seconds("off", 1, periods), f.number("ratio", 0, span{0, 1})}
	// Each switch takes time to simulate, even when nothing arrives.
	if switches := 1 / ((b.on + b.off) * of.peak()); switches > 1e4 {
		f.fail(n.Place, "arrival.bursts switch %.3g times per request: want fewer than 10000", switches)
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

// A varying rate is followed by time rescaling: arrivals are drawn at unit rate
// in operational time, which runs in proportion to the rate, and mapped to real
// time (Brown et al., "The time-rescaling theorem and its application to neural
// spike train data analysis", 2002). Times are in seconds.

// rate is a request rate, in requests per second, over time.
type rate interface {
	// after returns the time at which the integral of the rate from a reaches
	// amount >= 0, or +Inf if it never does.
	after(a, amount float64) float64
	// integral returns the integral of the rate from a to b >= a.
	integral(a, b float64) float64
	// peak returns the highest rate or, for a cycle, the mean.
	peak() float64
}

// steady is a constant rate.
type steady float64

func (s steady) integral(a, b float64) float64   { return float64(s) * (b - a) }
func (s steady) after(a, amount float64) float64 { return a + amount/float64(s) }
func (s steady) peak() float64                   { return float64(s) }

// phase is a part of [phases] with a linear rate.
type phase struct {
	start, length float64
	from, to      float64
	before        float64 // integral up to start
}

// upTo returns the integral over the first s seconds.
func (p phase) upTo(s float64) float64 {
	return s * (p.from + (p.to-p.from)*s/(2*p.length))
}

// reach returns the number of seconds after which the integral is amount.
func (p phase) reach(amount float64) float64 {
	if amount == 0 {
		return 0
	}
	slope := (p.to - p.from) / p.length
	// The root of slope/2 s^2 + from s - amount, in the form that loses no
	// digits if slope is small.
	root := math.Sqrt(max(p.from*p.from+2*slope*amount, 0))
	return min(2*amount/(p.from+root), p.length)
}

// phases is a sequence of rates. The last one stays.
type phases struct {
	parts  []phase
	length float64
	total  float64 // integral over all parts
}

// newPhases takes the lengths and rates of the parts and fills in the rest.
func newPhases(parts []phase) *phases {
	p := &phases{parts: parts}
	for i := range parts {
		parts[i].start, parts[i].before = p.length, p.total
		p.length += parts[i].length
		p.total += parts[i].upTo(parts[i].length)
	}
	return p
}

func (p *phases) final() float64 { return p.parts[len(p.parts)-1].to }

func (p *phases) peak() (rate float64) {
	for _, part := range p.parts {
		rate = max(rate, part.from, part.to)
	}
	return rate
}

// cumulative returns the integral from 0 to t.
func (p *phases) cumulative(t float64) float64 {
	for _, part := range p.parts {
		if t < part.start+part.length {
			return part.before + part.upTo(max(t-part.start, 0))
		}
	}
	return p.total + p.final()*max(t-p.length, 0)
}

func (p *phases) integral(a, b float64) float64 { return p.cumulative(b) - p.cumulative(a) }

func (p *phases) after(a, amount float64) float64 {
	target := p.cumulative(a) + amount
	switch {
	case target == p.total:
		return max(a, p.length)
	case target > p.total:
		return max(a, p.length+(target-p.total)/p.final()) // +Inf if the last rate is 0
	}
	for _, part := range p.parts {
		if here := part.upTo(part.length); here > 0 && target < part.before+here {
			return max(a, part.start+part.reach(max(target-part.before, 0)))
		}
	}
	return max(a, p.length)
}

// cycle is a rate that follows a cosine around its mean.
type cycle struct {
	mean      float64
	amplitude float64 // as a share of the mean: 0 to 1
	period    float64
	peakTime  float64 // a time of the highest rate
}

func (c cycle) peak() float64 { return c.mean }

func (c cycle) integral(a, b float64) float64 {
	turn := 2 * math.Pi / c.period
	swing := math.Sin(turn*(b-c.peakTime)) - math.Sin(turn*(a-c.peakTime))
	return c.mean * ((b - a) + c.amplitude/turn*swing)
}

// after uses Newton's method within a bracket, because the rate may reach 0.
func (c cycle) after(a, amount float64) float64 {
	turn := 2 * math.Pi / c.period
	// The integral differs from its mean slope by at most this much.
	slack := 2 * c.amplitude / turn
	low, high := max(a, a+amount/c.mean-slack), a+amount/c.mean+slack
	for at := low + (high-low)/2; ; {
		over := c.integral(a, at) - amount
		if over < 0 {
			low = at
		} else {
			high = at
		}
		next := at - over/(c.mean*(1+c.amplitude*math.Cos(turn*(at-c.peakTime))))
		if math.Abs(next-at) <= 1e-9 && next >= a {
			return next // accurate to a nanosecond
		}
		if !(next > low && next < high) {
			if next = low + (high-low)/2; next <= low || next >= high {
				return high
			}
		}
		at = next
	}
}

// bursts multiply a rate by one of two factors in periods of exponential length:
// a Markov-modulated process. The times passed to after must not decrease.
type bursts struct {
	under   rate
	states  [2]burstState // off, on
	random  *rand.Rand
	current int
	until   float64
}

type burstState struct {
	mean   float64 // length in seconds
	factor float64 // of the underlying rate
}

// newBursts starts in a state drawn by its share of the time. The factors
// preserve the mean rate; ratio is the rate when off over the rate when on.
func newBursts(under rate, on, off, ratio float64, random *rand.Rand) *bursts {
	share := on / (on + off)
	high := 1 / (share + ratio*(1-share))
	b := &bursts{under: under, random: random, states: [2]burstState{{off, ratio * high}, {on, high}}}
	if random.Float64() < share {
		b.current = 1
	}
	b.until = b.states[b.current].mean * random.ExpFloat64()
	return b
}

func (b *bursts) after(a, amount float64) float64 {
	highest := b.states[1].factor
	if math.IsInf(b.under.after(a, amount/highest), 1) {
		return math.Inf(1) // not reached even without off periods
	}
	for {
		if a < b.until {
			factor := b.states[b.current].factor
			here := factor * b.under.integral(a, b.until)
			if amount <= here && here > 0 {
				return min(b.under.after(a, amount/factor), b.until)
			}
			amount -= here
			a = b.until
		}
		b.current = 1 - b.current
		b.until += b.states[b.current].mean * b.random.ExpFloat64()
	}
}
