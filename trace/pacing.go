package trace

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Pacing selects rows of a trace and sets their arrivals, in the order of its
// fields. The zero value changes nothing.
type Pacing struct {
	// SpreadGrid spreads requests that share a coarse timestamp over one step of
	// the trace's clock, which [Pacing.FindGrid] detects.
	SpreadGrid bool
	// Start and End keep the rows from Start to before End, and make Start the
	// new time 0. An End of 0 is no end.
	Start, End time.Duration
	// Sample is the share of sessions to keep, which Sessions groups: see [Sample].
	Sample   Opt[float64]
	Sessions *Sessions
	Limit    int // keeps the first rows; 0 keeps all
	// Pruned, if set, removes the ids of rows that are not kept from After of the others,
	// and counts them: see [Prune].
	Pruned *int
	// ThinkScale and ToolScale multiply the delays of their kind, then MaxThink limits
	// think times; 0 is no limit. Delays without a kind are think times.
	ThinkScale, ToolScale Opt[float64]
	MaxThink              time.Duration
	Closed                bool      // makes all arrivals 0, for a closed loop
	Arrivals              *Arrivals // replaces the arrivals; nil keeps the trace's
	Rebase                bool      // makes the first arrival 0
	Speedup               float64   // divides all times, also those set above; 0 is 1
	// Ramp raises the rate linearly from 0 over this time. It stretches the first half of
	// that time over all of it: by t, the rows of the first t*t/(2*Ramp) have arrived.
	// Later rows keep their gaps. Poisson arrivals remain a Poisson process.
	Ramp time.Duration
	Seed uint64 // of SpreadGrid and Sample

	grid *Grid
}

// Check returns an error if p is invalid.
func (p Pacing) Check() error {
	switch {
	case p.Start < 0 || p.End < 0 || p.End > 0 && p.End <= p.Start:
		return fmt.Errorf("the window from %v to %v is empty", p.Start, p.End)
	case p.Limit < 0:
		return fmt.Errorf("the limit on rows is negative: %d", p.Limit)
	case !isScale(p.Speedup):
		return fmt.Errorf("the speedup is not a positive number: %v", p.Speedup)
	case !isScale(p.ThinkScale.Value) || !isScale(p.ToolScale.Value):
		return fmt.Errorf("the scales of think and tool times are not 0 or positive: %v, %v", p.ThinkScale.Value, p.ToolScale.Value)
	case p.MaxThink < 0:
		return fmt.Errorf("the limit on think times is negative: %v", p.MaxThink)
	case p.Ramp < 0:
		return fmt.Errorf("the ramp is negative: %v", p.Ramp)
	case p.Arrivals != nil && p.SpreadGrid:
		return fmt.Errorf("the arrivals are either replaced or spread over their grid, not both")
	case p.Closed && (p.Arrivals != nil || p.SpreadGrid || p.Ramp > 0):
		return fmt.Errorf("a closed loop has no arrivals to replace, spread or ramp")
	case p.Arrivals.AtOnce() && p.Ramp > 0:
		return fmt.Errorf("an infinite arrival rate cannot be ramped")
	case p.Arrivals != nil:
		return p.Arrivals.Check()
	}
	return nil
}

func isScale(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// or returns the value, or another if it is absent.
func (o Opt[T]) or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// FindGrid reads the trace to find the grid of its timestamps, for SpreadGrid.
// found is false if there is none.
func (p *Pacing) FindGrid(ctx context.Context, reqs Requests) (found bool, err error) {
	var d GridDetector
	for r, err := range Until(ctx, reqs) {
		if err != nil {
			return false, err
		}
		d.Add(r)
	}
	g, _, ok := d.Grid()
	if ok {
		p.grid = &g
	}
	return ok, nil
}

// Cuts reports whether rows are left out.
func (p Pacing) Cuts() bool { return p.Start > 0 || p.End > 0 || p.Sample.Set || p.Limit > 0 }

// Select spreads the grid and keeps the rows of the window, the sample and the limit.
func (p Pacing) Select(reqs Requests) Requests {
	if p.grid != nil {
		reqs = spread(reqs, *p.grid, p.Seed)
	}
	if p.Pruned != nil {
		return Prune(reqs, p.cut, p.Pruned)
	}
	return p.cut(reqs)
}

func (p Pacing) cut(reqs Requests) Requests {
	if p.Start > 0 || p.End > 0 {
		end := math.Inf(1)
		if p.End > 0 {
			end = MS(p.End)
		}
		reqs = window(reqs, MS(p.Start), end)
	}
	if p.Sample.Set {
		reqs = Sample(reqs, p.Sessions, p.Sample.Value, p.Seed)
	}
	if p.Limit > 0 {
		reqs = Take(reqs, p.Limit)
	}
	return reqs
}

// Pace sets arrivals and delays, and puts the rows in the order in which they would be
// sent: see [SendOrder].
func (p Pacing) Pace(reqs Requests) Requests {
	switch {
	case p.Arrivals != nil && p.Arrivals.Sessions:
		reqs = retimeSessions(reqs, *p.Arrivals)
	case p.Closed:
		reqs = retime(reqs, Arrivals{Rate: math.Inf(1)})
	case p.Arrivals != nil:
		reqs = retime(reqs, *p.Arrivals)
	case p.Rebase:
		reqs = rebase(reqs)
	}
	if p.Retimes() || p.Closed {
		reqs = change(reqs, p.scale)
	}
	if p.Retimes() {
		reqs = SendOrder(reqs)
	}
	return reqs
}

// scale scales the delay of a row, then all of its times, then ramps its arrival.
func (p *Pacing) scale(r *Request) {
	if r.DelayKind == Tool {
		r.Delay.Value *= p.ToolScale.or(1)
	} else if r.Delay.Value *= p.ThinkScale.or(1); p.MaxThink > 0 {
		r.Delay.Value = min(r.Delay.Value, MS(p.MaxThink))
	}
	if p.Speedup > 0 {
		r.Timestamp.Value /= p.Speedup
		r.Delay.Value /= p.Speedup
	}
	switch at, half := r.Timestamp.Value, MS(p.Ramp)/2; {
	case !r.Timestamp.Set || at <= 0 || half == 0:
	case at < half:
		r.Timestamp.Value = math.Sqrt(4 * half * at)
	default:
		r.Timestamp.Value = at + half
	}
}

// Speed divides arrivals and delays by x, which must be above 0: the trace plays
// x times as fast. The order of the rows stays.
func Speed(reqs Requests, x float64) Requests { return change(reqs, (&Pacing{Speedup: x}).scale) }

// Retimes reports whether the times of the rows change relative to each other, so
// that the order in which they are sent may change.
func (p Pacing) Retimes() bool {
	scales := p.ThinkScale.Set || p.ToolScale.Set || p.MaxThink > 0
	return !p.Closed && (p.Arrivals != nil || scales || p.Ramp > 0 || p.Speedup > 0 && p.Speedup != 1)
}

// Apply is [Pacing.Select] followed by [Pacing.Pace].
func (p Pacing) Apply(reqs Requests) Requests { return p.Pace(p.Select(reqs)) }

// The arrival processes, by the distribution of their gaps.
const (
	Constant = "constant" // equal gaps
	Poisson  = "poisson"  // exponential gaps
	Gamma    = "gamma"    // gamma-distributed gaps
)

// Processes returns all arrival processes.
func Processes() []string { return []string{Constant, Poisson, Gamma} }

// Gaps returns a function that draws the gaps of a process, which are independent and
// have a mean. They are not rescaled to hit it exactly. shape is that of Gamma, above 0: 1
// is Poisson, below 1 bursty, above 1 more even (CV = 1/sqrt(shape)).
func Gaps(process string, mean, shape float64, random *rand.Rand) func() float64 {
	switch process {
	case Poisson:
		return func() float64 { return mean * random.ExpFloat64() }
	case Gamma:
		return distuv.Gamma{Alpha: shape, Beta: shape / mean, Src: random}.Rand
	default:
		return func() float64 { return mean }
	}
}

// Arrivals are those of a process at a rate.
type Arrivals struct {
	Process    string
	Rate       float64 // requests a second, above 0; +Inf is all at once
	Burstiness float64 // shape of Gamma: see [Gaps]
	// Sessions makes these the starts of sessions, in the order of their first rows. The
	// other rows of a session are shifted with its first row; see [Graph.First] for what a
	// session is. The trace is held in memory from the first row of a session on.
	Sessions bool
	Seed     uint64
}

// Check returns an error that names the first field that is out of range.
func (a Arrivals) Check() error {
	switch {
	case !(a.Rate > 0):
		return fmt.Errorf("arrival rate must be a positive number: %v", a.Rate)
	case !slices.Contains(Processes(), a.Process):
		return fmt.Errorf("arrival process must be one of %s: %q", strings.Join(Processes(), ", "), a.Process)
	case a.Process == Gamma && (!(a.Burstiness > 0) || math.IsInf(a.Burstiness, 0)):
		return fmt.Errorf("burstiness must be a positive number: %v", a.Burstiness)
	}
	return nil
}

// AtOnce reports whether all rows arrive at 0.
func (a *Arrivals) AtOnce() bool { return a != nil && math.IsInf(a.Rate, 1) }

// times returns a function that draws one arrival after the other, in milliseconds; the
// first is 0.
func (a Arrivals) times() func() float64 {
	if a.AtOnce() {
		return func() float64 { return 0 }
	}
	random := rand.New(rand.NewPCG(a.Seed, 0x6172726976616c73)) // "arrivals"
	gap, next := Gaps(a.Process, 1000/a.Rate, a.Burstiness, random), 0.0
	return func() float64 {
		at := next
		next += gap()
		return at
	}
}

// retime replaces the arrivals of the rows, in their order. A row with only a delay still
// follows its previous turn.
func retime(reqs Requests, a Arrivals) Requests {
	return transform(reqs, func() func(*Request) bool {
		next := a.times()
		return func(r *Request) bool {
			if r.Timestamp.Set || !r.Delay.Set {
				r.Timestamp = Some(next())
			}
			return true
		}
	})
}

// retimeSessions replaces the starts of sessions.
func retimeSessions(reqs Requests, a Arrivals) Requests {
	return func(yield func(Request, error) bool) {
		next := a.times()
		var held []Request
		var builder GraphBuilder
		defer builder.Close()
		for r, err := range reqs {
			if err != nil {
				yield(Request{}, err)
				return
			}
			if held != nil || inSession(r) {
				builder.Add(r, 0)
				held = append(held, r)
				continue
			}
			if r.Timestamp = Some(next()); !yield(r, nil) {
				return
			}
		}
		graph, err := builder.Graph()
		if err != nil {
			yield(Request{}, err)
			return
		}
		shifts := map[int]float64{} // of sessions, by first row
		for row, r := range held {
			held[row] = Request{}
			switch first := graph.First(row); {
			case row == first:
				at := next()
				shifts[first] = at - r.Timestamp.Value
				r.Timestamp = Some(at)
			case r.Timestamp.Set:
				r.Timestamp.Value = max(0, r.Timestamp.Value+shifts[first])
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// rebase shifts arrivals so that the first is at 0.
func rebase(reqs Requests) Requests {
	return transform(reqs, func() func(*Request) bool {
		var origin Opt[float64]
		return func(r *Request) bool {
			if r.Timestamp.Set {
				if !origin.Set {
					origin = r.Timestamp
				}
				r.Timestamp.Value -= origin.Value
			}
			return true
		}
	})
}
