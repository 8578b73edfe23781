package analyze

import (
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/stats"
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
	// Rate varies from window to window, as do the means of ISL and OSL, and Context,
	// the share of prompt tokens that other requests have too.
	Rate, ISL, OSL, Context Variation
	// Dispersions are those of counts at several widths, in ascending order.
	Dispersions []Dispersion
	// Regimes are stretches of steady rate and mean lengths; one if neither changes.
	// They are nil if there are fewer than 10 windows.
	Regimes []Regime
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

func (w Window) plus(v Window) Window {
	return Window{
		w.From, v.To, w.Requests + v.Requests, w.ISL.plus(v.ISL), w.OSL.plus(v.OSL),
		w.Prompt + v.Prompt, w.Hit + v.Hit, w.Context + v.Context,
	}
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

// Mean is absent without requests.
func (l Lengthwise) Mean() trace.Opt[float64] { return quotient(l.sum, float64(l.count)) }

// CV is the coefficient of variation, by the population standard deviation; absent
// without tokens.
func (l Lengthwise) CV() trace.Opt[float64] {
	return quotient(math.Sqrt(l.variance()), l.sum/max(float64(l.count), 1))
}

func (l Lengthwise) variance() float64 {
	n := max(float64(l.count), 1)
	return max(0, l.squares/n-l.sum/n*l.sum/n)
}

func quotient(a, b float64) trace.Opt[float64] {
	return trace.Opt[float64]{Value: a / b, Set: b > 0}
}

// Dispersion is the index of dispersion for counts of windows of a width in ms: their
// population variance over their mean.
type Dispersion struct {
	Width   float64
	Windows int
	Index   float64
}

// timeline places windows on the arrivals of a trace.
type timeline struct {
	start, step, first, last float64
	windows                  int // 0 if there are too few requests, or all arrive at once
}

const (
	mostWindows, leastWindows = 72, 25
	perWindow                 = 30 // requests, so that means are more than noise
	leastPerWindow            = 4  // on average
)

func timelineOf(at *Arrivals) timeline {
	if at == nil || !at.Rate.Set || at.Requests < 2*leastPerWindow {
		return timeline{}
	}
	t := timeline{start: at.First, first: at.First, last: at.Last}
	windows := float64(min(max(at.Requests/perWindow, leastWindows), mostWindows, at.Requests/leastPerWindow))
	if at.Grid != nil {
		t.step = timeStep(at.Duration(), at.Grid.Step, windows)
		t.start = at.Grid.Tick(at.First) - at.Grid.Step/2
	} else {
		t.step = seriesStep(at.Duration(), 1, windows)
		t.start = math.Floor(at.First/t.step) * t.step
	}
	t.windows = max(1, int(math.Ceil((t.last-t.start)/t.step)))
	return t
}

// timeStep prefers a round width that is a whole number of grid steps.
func timeStep(duration, grid, windows float64) float64 {
	for _, step := range roundSteps {
		if step >= duration/(windows-1) && math.Mod(step, grid) == 0 {
			return step
		}
	}
	return seriesStep(duration, grid, windows)
}

// index returns the window of a time from first to last, which belongs to the last.
func (t timeline) index(at float64) int { return min(int((at-t.start)/t.step), t.windows-1) }

// shared is the part of the prompts of a window that is reused.
type shared struct{ prompt, hit, context int }

// timeOf returns nil without windows.
func timeOf(rows *rows, t timeline, at *Arrivals) *Time {
	if t.windows == 0 {
		return nil
	}
	over := &Time{Step: t.step, Windows: make([]Window, t.windows), Dispersions: dispersions(at)}
	over.Context.Trend.P = 1
	for i := range over.Windows {
		w := &over.Windows[i]
		w.From = max(t.start+float64(i)*t.step, t.first)
		w.To = min(t.start+float64(i+1)*t.step, t.last)
	}
	for _, r := range rows.all {
		if r.timed() {
			w := &over.Windows[t.index(r.ms)]
			w.Requests++
			w.ISL.add(r.isl)
			w.OSL.add(r.osl())
		}
	}
	over.vary()
	return over
}

// addShared adds what is known of prompts with block ids, by window.
func (t *Time) addShared(all []shared) {
	if t == nil || all == nil {
		return
	}
	for i, s := range all {
		w := &t.Windows[i]
		w.Prompt, w.Hit, w.Context = s.prompt, s.hit, s.context
	}
	for i := range t.Regimes {
		r := &t.Regimes[i]
		r.Window = t.sum(r.from, r.to)
	}
	t.Context = t.variation(Window.ContextShare)
}

// dispersionWidths lists the widths in ms.
var dispersionWidths = []float64{100, 1000, 10_000, 60_000, 600_000, 3600_000, 6 * 3600_000, 24 * 3600_000}

// dispersions leaves out widths of which fewer than 4 windows fit, and those below
// the time grid.
func dispersions(at *Arrivals) (all []Dispersion) {
	const least = 4
	for _, width := range dispersionWidths {
		windows := math.Floor(at.Duration() / width)
		if windows < least || at.Grid != nil && width < at.Grid.Step {
			continue
		}
		if index := at.sorted.dispersion(width); index.Set {
			all = append(all, Dispersion{width, int(windows), index.Value})
		}
	}
	return all
}

// Merged returns the windows in groups of a round width, as few as possible above
// most, and the width in milliseconds.
func (t *Time) Merged(most int) (windows []Window, width float64) {
	group := t.group(most)
	return t.grouped(group), t.Step * float64(group)
}

// Widened returns the windows in groups of a width in milliseconds, or the whole number
// of them that is closest to it.
func (t *Time) Widened(width float64) []Window {
	return t.grouped(max(1, int(math.Round(width/t.Step))))
}

// CommonWidth returns the width in milliseconds of the widest windows, or the least
// multiple of it, up to 4, that is a whole number of windows of each.
func CommonWidth(all []*Time) float64 {
	widest := 0.0
	for _, t := range all {
		widest = max(widest, t.Step)
	}
	for n := 1.0; n <= 4; n++ {
		if !slices.ContainsFunc(all, func(t *Time) bool { return math.Mod(n*widest, t.Step) != 0 }) {
			return n * widest
		}
	}
	return widest
}

func (t *Time) grouped(group int) (windows []Window) {
	for i := 0; i < len(t.Windows); i += group {
		w := t.Windows[i]
		for _, next := range t.Windows[i+1 : min(i+group, len(t.Windows))] {
			w = w.plus(next)
		}
		windows = append(windows, w)
	}
	return windows
}

// group returns how many windows make at most most groups of a round width.
func (t *Time) group(most int) int {
	least := (len(t.Windows) + most - 1) / most
	for _, step := range roundSteps {
		if group := step / t.Step; group >= float64(least) && group == math.Floor(group) && group <= float64(2*least) {
			return int(group)
		}
	}
	return least
}

// values returns a value of each window, NaN where it is absent.
func (t *Time) values(of func(Window) trace.Opt[float64]) []float64 {
	all := make([]float64, len(t.Windows))
	for i, w := range t.Windows {
		if all[i] = math.NaN(); of(w).Set {
			all[i] = of(w).Value
		}
	}
	return all
}

// amountOf returns tokens per request.
func amountOf(l Lengthwise) stats.Amount { return stats.Amount{Events: l.sum, Of: float64(l.count)} }
