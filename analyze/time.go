package analyze

import (
	"math"
	"slices"

	"moontide/trace"
)

// Time describes how a trace changes over time, in windows of equal width. It covers
// the requests of [Arrivals].
type Time struct {
	// Step is the width of a window in milliseconds: the smallest round number, of
	// grid steps on a time grid, that gives at most a thirtieth as many windows as there
	// are requests, but not fewer than 25 or more than 72, and with 4 requests on average.
	Step float64
	// Windows are in order of time and without gaps.
	Windows []Window
	// First and Last are the first and the last third of the windows; both are empty if
	// there are fewer than three.
	First, Last Window

	start float64 // of the first window in milliseconds
}

// Window is what arrives in a stretch of time.
type Window struct {
	// From and To are the ends of the window in milliseconds, without the time
	// before the first and after the last arrival.
	From, To float64
	Requests int
	ISL, OSL Lengthwise
	// Prompt is the sum of ISL of the rows with block ids, in tokens; Hit the part
	// of it that an infinite cache has, Context the part that other requests of the
	// trace have too.
	Prompt, Hit, Context int
}

// Rate returns the requests per second; absent if From is To.
func (w Window) Rate() trace.Opt[float64] {
	return quotient(float64(w.Requests), (w.To-w.From)/1000)
}

// HitRate returns the token hit rate of an infinite cache, which starts empty with
// the trace; absent if no prompt has block ids and tokens.
func (w Window) HitRate() trace.Opt[float64] { return trace.Ratio(w.Hit, w.Prompt) }

// ContextShare returns the share of prompt tokens that other requests have too.
func (w Window) ContextShare() trace.Opt[float64] { return trace.Ratio(w.Context, w.Prompt) }

// MeanISL returns the mean ISL in tokens; absent without requests.
func (w Window) MeanISL() trace.Opt[float64] { return quotient(w.ISL.sum, float64(w.ISL.count)) }

// MeanOSL returns the mean OSL in tokens; absent without requests.
func (w Window) MeanOSL() trace.Opt[float64] { return quotient(w.OSL.sum, float64(w.OSL.count)) }

// sum returns successive windows as one.
func sum(windows []Window) Window {
	all := windows[0]
	for _, w := range windows[1:] {
		all = Window{
			all.From, w.To, all.Requests + w.Requests, all.ISL.plus(w.ISL), all.OSL.plus(w.OSL),
			all.Prompt + w.Prompt, all.Hit + w.Hit, all.Context + w.Context,
		}
	}
	return all
}

// Lengthwise describes the lengths of some requests in tokens.
type Lengthwise struct {
	count        int
	sum, squares float64
}

func (l *Lengthwise) add(tokens int32) {
	l.count++
	l.sum += float64(tokens)
	l.squares += float64(tokens) * float64(tokens)
}

func (l Lengthwise) plus(m Lengthwise) Lengthwise {
	return Lengthwise{l.count + m.count, l.sum + m.sum, l.squares + m.squares}
}

// CV is the coefficient of variation, by the population standard deviation; absent
// without tokens.
func (l Lengthwise) CV() trace.Opt[float64] {
	n := max(float64(l.count), 1)
	variance := max(0, l.squares/n-l.sum/n*l.sum/n)
	return quotient(math.Sqrt(variance), l.sum/n)
}

func quotient(a, b float64) trace.Opt[float64] {
	return trace.Opt[float64]{Value: a / b, Set: b > 0}
}

const (
	mostWindows, leastWindows = 72, 25
	perWindow                 = 30 // requests, so that means are more than noise
	leastPerWindow            = 4  // on average
)

// newTime returns windows without requests. It returns nil if there are too few requests, or
// all arrive at once.
func newTime(at *Arrivals) *Time {
	if at == nil || !at.Rate.Set || at.Requests < 2*leastPerWindow {
		return nil
	}
	t := &Time{}
	windows := float64(min(max(at.Requests/perWindow, leastWindows), mostWindows, at.Requests/leastPerWindow))
	if g := at.Grid; g != nil {
		t.Step = windowStep(at.Duration(), g.Step, windows)
		t.start = g.Tick(at.First) - g.Step/2
	} else {
		t.Step = windowStep(at.Duration(), 1, windows)
		t.start = math.Floor(at.First/t.Step) * t.Step
	}
	t.Windows = make([]Window, max(1, int(math.Ceil((at.Last-t.start)/t.Step))))
	for i := range t.Windows {
		w := &t.Windows[i]
		w.From = max(t.start+float64(i)*t.Step, at.First)
		w.To = min(t.start+float64(i+1)*t.Step, at.Last)
	}
	return t
}

// roundSteps lists human-readable window widths in ms.
var roundSteps = []float64{
	1, 2, 5, 10, 20, 50, 100, 200, 500,
	1e3, 2e3, 5e3, 10e3, 15e3, 30e3, // seconds
	60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, // minutes
	3600e3, 7200e3, 10800e3, 21600e3, 43200e3, 86400e3, // hours
}

// windowStep chooses a window width for a duration: a round number of ms that is a whole
// number of grid steps, or else a round number of these. It leaves room for one more window,
// since windows begin before the first arrival.
func windowStep(duration, grid, windows float64) float64 {
	least := duration / (windows - 1)
	for _, unit := range []float64{1, grid} {
		for _, step := range roundSteps {
			if unit*step >= least && math.Mod(unit*step, grid) == 0 {
				return unit * step
			}
		}
	}
	day := 86400e3 * grid
	return day * math.Ceil(least/day)
}

// of returns the window of a row, nil if it has none.
func (t *Time) of(r *row) *Window {
	if t == nil || !r.timed {
		return nil
	}
	return &t.Windows[min(int((r.ms-t.start)/t.Step), len(t.Windows)-1)]
}

// addLengths counts requests.
func (t *Time) addLengths(rows *rows) {
	for _, r := range rows.all {
		if w := t.of(r); w != nil {
			w.Requests++
			w.ISL.add(r.isl)
			w.OSL.add(r.osl)
		}
	}
}

// sumThirds sums up the first and the last windows.
func (t *Time) sumThirds() {
	if t == nil {
		return
	}
	if third := len(t.Windows) / 3; third > 0 {
		t.First, t.Last = sum(t.Windows[:third]), sum(t.Windows[len(t.Windows)-third:])
	}
}

// Merged returns the windows in groups of a round width, as few as possible above
// most, and the width in milliseconds.
func (t *Time) Merged(most int) (windows []Window, width float64) {
	least := (len(t.Windows) + most - 1) / most
	group := least
	for more := 2 * least; more >= least; more-- {
		if slices.Contains(roundSteps, t.Step*float64(more)) {
			group = more
		}
	}
	for i := 0; i < len(t.Windows); i += group {
		windows = append(windows, sum(t.Windows[i:min(i+group, len(t.Windows))]))
	}
	return windows, t.Step * float64(group)
}
