package analyze

import (
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/stats"
)

// Variation is how a quantity differs between the windows of [Time].
type Variation struct {
	// CV is the coefficient of variation of the windows' values; absent with fewer
	// than two windows. ByChance is what it would be without any change over time:
	// for Poisson arrivals, and for lengths in another order. It is absent for shares.
	CV, ByChance trace.Opt[float64]
	// Autocorrelation of the windows' values at lags of 1, 2, ... windows, up to a
	// quarter of the windows and at most 12; nil with fewer than 8 windows or if all
	// values are equal. Without autocorrelation, 95 % of them are within 2 / sqrt(windows).
	Autocorrelation []float64
	// First and Last are the values of the first and the last third of the windows.
	First, Last trace.Opt[float64]
	// Trend is that of the windows' values; its Slope is per window. Median is the
	// median of the values.
	Trend  stats.Trend
	Median float64
	// Drifts is set if the quantity grows or falls over the whole trace: the last third
	// differs from the first by 15 % or more, and so do the first and the last regime, or
	// the trend is significant at 1 %.
	Drifts bool
}

// The smallest changes that are named, and the largest probability of chance.
const (
	minDrift    = 0.15 // of a quantity over the whole trace
	minChange   = 0.10 // from regime to regime
	maxTrendP   = 0.01
	minForTrend = 10 // windows
)

// drifts takes the values of the first and the last regime.
func (v Variation) drifts(first, last trace.Opt[float64]) bool {
	if !v.Ratio().Set || !differ(v.First.Value, v.Last.Value, minDrift) {
		return false
	}
	grows := v.Last.Value > v.First.Value
	return v.Trend.P <= maxTrendP && grows == (v.Trend.Tau > 0) ||
		first.Set && last.Set && grows == (last.Value > first.Value) && differ(first.Value, last.Value, minDrift)
}

// Ratio returns Last / First.
func (v Variation) Ratio() trace.Opt[float64] {
	if !v.Last.Set || !v.First.Set {
		return trace.Opt[float64]{}
	}
	return quotient(v.Last.Value, v.First.Value)
}

// differ reports whether two values differ by a share or more of the smaller.
func differ(a, b, share float64) bool { return max(a, b) >= (1+share)*min(a, b) && a != b }

// Regime is a stretch of steady rate and lengths.
type Regime struct {
	Window
	from, to int // windows
}

// vary finds how rate and lengths change over time.
func (t *Time) vary() {
	t.Regimes = t.regimes()
	t.Rate = t.variation(Window.Rate)
	t.ISL = t.variation(func(w Window) trace.Opt[float64] { return w.ISL.Mean() })
	t.OSL = t.variation(func(w Window) trace.Opt[float64] { return w.OSL.Mean() })
	whole := t.sum(0, len(t.Windows))
	if whole.Requests > 0 {
		perWindow := float64(whole.Requests) / float64(len(t.Windows))
		t.Rate.ByChance = trace.Some(1 / math.Sqrt(perWindow))
		t.ISL.ByChance = t.byChance(whole.ISL)
		t.OSL.ByChance = t.byChance(whole.OSL)
	}
}

// byChance returns the CV of the mean of the lengths of a window.
func (t *Time) byChance(l Lengthwise) trace.Opt[float64] {
	cv := l.CV()
	sum, windows := 0.0, 0.0
	for _, w := range t.Windows {
		if w.Requests > 0 {
			sum += 1 / float64(w.Requests)
			windows++
		}
	}
	cv.Value *= math.Sqrt(sum / windows)
	return cv
}

func (t *Time) variation(of func(Window) trace.Opt[float64]) (v Variation) {
	values := t.values(of)
	n := len(values)
	// A short first or last window has a rate of few requests.
	for _, i := range []int{0, n - 1} {
		if w := t.Windows[i]; n > 2 && w.To-w.From < t.Step/2 {
			values[i] = math.NaN()
		}
	}
	sum, squares, known := 0.0, 0.0, 0.0
	for _, x := range values {
		if !math.IsNaN(x) {
			sum, squares, known = sum+x, squares+x*x, known+1
		}
	}
	if known >= 2 {
		mean := sum / known
		v.CV = quotient(math.Sqrt(max(0, squares/known-mean*mean)), mean)
	}
	if n >= 3 {
		v.First, v.Last = of(t.sum(0, n/3)), of(t.sum(n-n/3, n))
	}
	const leastForLags, mostLags = 8, 12
	for lag := 1; n >= leastForLags && lag <= min(n/4, mostLags); lag++ {
		r := stats.Autocorrelation(values, lag)
		if math.IsNaN(r) {
			break
		}
		v.Autocorrelation = append(v.Autocorrelation, r)
	}
	v.Trend = stats.Trend{P: 1}
	v.Median = stats.Of(slices.DeleteFunc(slices.Clone(values), math.IsNaN)).Quantile(0.5)
	if known >= minForTrend {
		v.Trend = stats.TrendOf(values)
	}
	if last := len(t.Regimes) - 1; last >= 0 {
		v.Drifts = v.drifts(of(t.Regimes[0].Window), of(t.Regimes[last].Window))
	}
	return v
}

func (t *Time) sum(from, to int) Window {
	all := t.Windows[from]
	for _, w := range t.Windows[from+1 : to] {
		all = all.plus(w)
	}
	return all
}

// regimes cuts the windows where rate or lengths change, and joins neighbours that
// differ by less than a tenth.
func (t *Time) regimes() (all []Regime) {
	n := len(t.Windows)
	if n < minForTrend {
		return nil
	}
	rate, isl, osl := make([]stats.Amount, n), make([]stats.Amount, n), make([]stats.Amount, n)
	for i, w := range t.Windows {
		rate[i] = stats.Amount{Events: float64(w.Requests), Of: w.To - w.From}
		isl[i], osl[i] = amountOf(w.ISL), amountOf(w.OSL)
	}
	of := []stats.Varying{{Amounts: rate, Noise: stats.WindowNoise(rate, 1)}}
	whole := t.sum(0, n)
	for _, l := range []struct {
		amounts []stats.Amount
		all     Lengthwise
	}{{isl, whole.ISL}, {osl, whole.OSL}} {
		if l.all.sum > 0 && l.all.variance() > 0 {
			independent := l.all.variance() / l.all.Mean().Value
			of = append(of, stats.Varying{Amounts: l.amounts, Noise: stats.WindowNoise(l.amounts, independent)})
		}
	}
	cuts := stats.WindowChanges(of...)
	for i, to := range cuts[1:] {
		r := Regime{t.sum(cuts[i], to), cuts[i], to}
		if last := len(all) - 1; last >= 0 && all[last].like(r) {
			all[last] = Regime{all[last].plus(r.Window), all[last].from, to}
			continue
		}
		all = append(all, r)
	}
	return all
}

// like reports whether neither rate nor lengths differ by a tenth.
func (r Regime) like(other Regime) bool {
	same := func(a, b trace.Opt[float64]) bool { return a.Set == b.Set && !differ(a.Value, b.Value, minChange) }
	return same(r.Rate(), other.Rate()) && same(r.ISL.Mean(), other.ISL.Mean()) && same(r.OSL.Mean(), other.OSL.Mean())
}
