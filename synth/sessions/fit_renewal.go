package sessions

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"

	"moontide/trace/stats"
)

const (
	// arrivalsPerBin and maxWindowBins set the resolution of windows.
	arrivalsPerBin, maxWindowBins = 4, 512
	// surprisingSilence is the number of arrivals that a stretch without any would
	// have at the mean rate to be a window of its own: 1 in 160,000 for a Poisson
	// process.
	surprisingSilence = 12
	// minShape and maxShape bound the shape of gaps, and minGap gaps in
	// multiples of their mean.
	minShape, maxShape, minGap = .02, 100, 1e-6
)

// fitRenewal learns from sorted times in ms, at least one. The source has a
// period in ms, and its timestamps are multiples of tick, or 0.
func fitRenewal(times []float64, period, tick float64) *renewal {
	times = spreadTies(times, tick)
	period = max(period, times[len(times)-1], 1e-3)
	r := &renewal{Windows: windowsOf(times, period)}
	gaps := r.meanGaps(times)
	if len(gaps) < minRequests { // too few for a shape
		r.Distribution, r.Shape = gammaGaps, 1
		return r
	}
	gamma, gammaFit := gammaShape(gaps)
	weibull, weibullFit := weibullShape(gaps)
	r.Distribution, r.Shape = gammaGaps, rounded(gamma, 4)
	if weibullFit > gammaFit {
		r.Distribution, r.Shape = weibullGaps, rounded(weibull, 4)
	}
	return r
}

// spreadTies moves times on a grid to random places within their tick.
func spreadTies(times []float64, tick float64) []float64 {
	if tick == 0 {
		return times
	}
	random := stats.NewStream(0, "times within a tick")
	spread := make([]float64, len(times))
	for from := 0; from < len(times); {
		to := from
		for to < len(times) && times[to] == times[from] {
			to++
		}
		for i, u := range sortedUniforms(random, to-from) {
			spread[from+i] = max(0, times[from]+(u-.5)*tick)
		}
		from = to
	}
	return spread
}

// sortedUniforms returns n uniform numbers in ascending order.
func sortedUniforms(random *rand.Rand, n int) []float64 {
	u := make([]float64, n)
	sum := 0.0
	for i := range u {
		sum += random.ExpFloat64()
		u[i] = sum
	}
	sum += random.ExpFloat64()
	for i := range u {
		u[i] /= sum
	}
	return u
}

// windowsOf cuts the source into windows with a steady rate. A window has no
// arrivals, or at least minRequests.
func windowsOf(times []float64, period float64) [][2]float64 {
	if len(times) < 2*minRequests {
		return [][2]float64{{float64(len(times)), rounded(period, 6)}}
	}
	n := min(len(times)/arrivalsPerBin, maxWindowBins)
	counts := make([]float64, n)
	for _, t := range times {
		counts[min(int(t/period*float64(n)), n-1)]++
	}
	perBin := float64(len(times)) / float64(n)
	var windows [][2]float64
	add := func(arrivals float64, bins int) {
		windows = append(windows, [2]float64{arrivals, float64(bins) * period / float64(n)})
	}
	begin := 0 // of the bins that are not in windows yet
	addSteady := func(end int) {
		amounts := make([]stats.Amount, end-begin)
		for i := range amounts {
			amounts[i] = stats.Amount{Events: counts[begin+i], Of: 1}
		}
		if len(amounts) == 0 {
			return
		}
		for _, run := range stats.SteadyRuns(stats.Varying{Amounts: amounts, Noise: stats.MeanNoise(counts[begin:end], 1)}, minRequests) {
			parts := min(max(int(run.Sum.Events/windowOf(float64(len(times)))), 1), run.To-run.From)
			for k := range parts { // its rate may change slowly
				from, to := begin+run.From+(run.To-run.From)*k/parts, begin+run.From+(run.To-run.From)*(k+1)/parts
				add(sum(counts[from:to]), to-from)
			}
		}
	}
	for from := 0; from < n; {
		to := from
		for to < n && counts[to] == 0 {
			to++
		}
		if float64(to-from)*perBin >= surprisingSilence {
			addSteady(from)
			add(0, to-from)
			begin = to
		}
		from = to + 1
	}
	addSteady(n)
	return pooled(windows)
}

// pooled removes the arrivals of windows with fewer than minRequests and merges
// windows without arrivals.
func pooled(windows [][2]float64) [][2]float64 {
	var some [][2]float64
	for _, w := range windows {
		if w[0] < minRequests {
			w[0] = 0
		}
		if last := len(some) - 1; last >= 0 && some[last][0] == 0 && w[0] == 0 {
			some[last][1] = rounded(some[last][1]+w[1], 6)
			continue
		}
		some = append(some, [2]float64{w[0], rounded(w[1], 6)})
	}
	return some
}

// meanGaps returns the gaps between times in multiples of the mean gap at that time.
func (r *renewal) meanGaps(times []float64) []float64 {
	gaps := make([]float64, 0, len(times))
	window, begin, before := 0, 0.0, 0.0 // before: expected arrivals before the window
	last := math.NaN()
	for _, t := range times {
		for window < len(r.Windows)-1 && t >= begin+r.Windows[window][1] {
			begin += r.Windows[window][1]
			before += r.Windows[window][0]
			window++
		}
		w := r.Windows[window]
		at := before + min(max(0, t-begin)/w[1], 1)*w[0]
		if gap := at - last; gap >= 0 {
			gaps = append(gaps, max(gap, minGap))
		}
		last = at
	}
	return gaps
}

// gammaShape returns the shape of the gamma distribution of the values with the
// largest likelihood, and its logarithm.
func gammaShape(values []float64) (shape, logLikelihood float64) {
	mean, meanLog := means(values)
	s := math.Log(mean) - meanLog // log(shape) - digamma(shape)
	shape = bisect(func(k float64) bool { return math.Log(k)-mathext.Digamma(k) > s })
	gamma, _ := math.Lgamma(shape)
	n := float64(len(values))
	return shape, n * ((shape-1)*meanLog - shape + shape*math.Log(shape/mean) - gamma)
}

// weibullShape does the same for the Weibull distribution.
func weibullShape(values []float64) (shape, logLikelihood float64) {
	_, meanLog := means(values)
	power := func(k float64) (sum, sumLog float64) {
		for _, x := range values {
			p := math.Pow(x, k)
			sum += p
			sumLog += p * math.Log(x)
		}
		return sum, sumLog
	}
	shape = bisect(func(k float64) bool {
		sum, sumLog := power(k)
		return sumLog/sum-1/k < meanLog
	})
	n := float64(len(values))
	sum, _ := power(shape)
	logScale := math.Log(sum/n) / shape
	return shape, n * (math.Log(shape) - shape*logScale + (shape-1)*meanLog - 1)
}

func means(values []float64) (mean, meanLog float64) {
	n := float64(len(values))
	for _, x := range values {
		mean += x / n
		meanLog += math.Log(x) / n
	}
	return mean, meanLog
}

// bisect returns the shape up to which tooSmall holds.
func bisect(tooSmall func(shape float64) bool) float64 {
	low, high := minShape, float64(maxShape)
	for range 50 {
		if middle := math.Sqrt(low * high); tooSmall(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
