package stats

import (
	"math"
	"slices"

	"github.com/montanaflynn/stats"
)

// Amount is a number of events and what they took: milliseconds or windows of
// arrivals, requests of tokens.
type Amount struct{ Events, Of float64 }

// Rate returns the events per unit of what they took.
func (a Amount) Rate() float64 { return a.Events / a.Of }

// logLikelihood returns the log-likelihood of the events at their mean rate, up
// to a constant. It is the same for Poisson counts and exponential gaps.
func (a Amount) logLikelihood() float64 {
	if a.Events == 0 {
		return 0
	}
	return a.Events * math.Log(a.Events/a.Of)
}

func (a Amount) plus(b Amount) Amount  { return Amount{a.Events + b.Events, a.Of + b.Of} }
func (a Amount) minus(b Amount) Amount { return Amount{a.Events - b.Events, a.Of - b.Of} }

// Varying is a quantity over time. Noise, above 0, is the variance of its amounts
// over their mean within a stretch of steady rate, 1 for Poisson counts; for gaps
// see [MeanNoise].
type Varying struct {
	Amounts []Amount
	Noise   float64
}

// Run is the stretch of amounts From to To, To excluded, and their sum.
type Run struct {
	From, To int
	Sum      Amount
}

// SteadyRuns cuts a quantity where its rate changes; see [Changes].
func SteadyRuns(v Varying, least int) []Run {
	cuts := Changes(least, v)
	runs := make([]Run, len(cuts)-1)
	for i := range runs {
		r := Run{From: cuts[i], To: cuts[i+1]}
		for _, a := range v.Amounts[r.From:r.To] {
			r.Sum = r.Sum.plus(a)
		}
		runs[i] = r
	}
	return runs
}

const (
	// minChangeGain is the minimum gain in log-likelihood for a cut of one quantity,
	// in multiples of the logarithm of the number of amounts; each further quantity
	// adds 1. That is stricter than the Bayesian information criterion, because real
	// traffic is never quite steady.
	minChangeGain = 3
	// maxCutDepth limits the recursion, to bound the running time.
	maxCutDepth = 512
)

// Changes returns the indexes at which the rate of any of the quantities changes,
// between 0 and the number of amounts, which all have in common. It is binary
// segmentation (Scott and Knott 1974) with a penalised likelihood, Poisson's
// scaled by the noise: a stretch is cut at the best place as long as the gain
// exceeds the penalty. Every stretch has at least least amounts and, of every
// quantity, least events.
func Changes(least int, of ...Varying) []int {
	n := len(of[0].Amounts)
	upTo := make([][]Amount, len(of)) // cumulative sums
	for k, v := range of {
		upTo[k] = make([]Amount, n+1)
		for i, a := range v.Amounts {
			upTo[k][i+1] = upTo[k][i].plus(a)
		}
	}
	gain := func(from, at, to int) float64 {
		sum := 0.0
		for k := range of {
			all := upTo[k][to].minus(upTo[k][from])
			before := upTo[k][at].minus(upTo[k][from])
			after := all.minus(before)
			if before.Events < float64(least) || after.Events < float64(least) {
				return 0
			}
			sum += (before.logLikelihood() + after.logLikelihood() - all.logLikelihood()) / of[k].Noise
		}
		return sum
	}
	minGain := float64(minChangeGain-1+len(of)) * math.Log(float64(n))
	cuts := []int{0}
	var cut func(from, to, depth int)
	cut = func(from, to, depth int) {
		best, at := minGain, -1
		for i := from + least; i <= to-least && depth < maxCutDepth; i++ {
			if g := gain(from, i, to); g > best {
				best, at = g, i
			}
		}
		if at < 0 {
			cuts = append(cuts, to)
			return
		}
		cut(from, at, depth+1)
		cut(at, to, depth+1)
	}
	cut(0, n, 0)
	return cuts
}

// noiseWindow is the number of neighbours over which noise is measured.
const noiseWindow = 16

// MeanNoise returns the mean variance / mean^power of neighbouring values, at least
// 0.05. It is 1 for a Poisson process, for counts with a power of 1 and gaps with a
// power of 2. Slow changes do not add to it.
func MeanNoise(values []float64, power float64) float64 {
	sum, n := 0.0, 0.0
	for window := range slices.Chunk(values, noiseWindow) {
		if len(window) < noiseWindow {
			break
		}
		n++
		mean, _ := stats.Mean(window)
		if mean == 0 {
			sum++
			continue
		}
		variance, _ := stats.SampleVariance(window)
		sum += variance / math.Pow(mean, power)
	}
	return max(sum/max(n, 1), .05)
}

// NeighbourNoise returns the [Varying].Noise of amounts: the median squared
// difference between the rates of neighbouring stretches of a width, relative to
// that of Poisson counts. Few changes of the rate do not add to it. It is 0 if there
// is no such pair with events.
func NeighbourNoise(amounts []Amount, width int) float64 {
	var noise []float64
	for i := width; i+width <= len(amounts); i++ {
		var before, after Amount
		for k := range width {
			before, after = before.plus(amounts[i-1-k]), after.plus(amounts[i+k])
		}
		both := before.plus(after)
		if before.Of == 0 || after.Of == 0 || both.Events == 0 {
			continue
		}
		gap := after.Rate() - before.Rate()
		noise = append(noise, gap*gap/both.Rate()/(1/before.Of+1/after.Of))
	}
	if len(noise) == 0 {
		return 0
	}
	const medianOfChiSquared = 0.4549 // with one degree of freedom
	median, _ := stats.Median(noise)
	return median / medianOfChiSquared
}

// WindowNoise returns the [Varying].Noise of the amounts of windows: the larger of that
// of single windows and of pairs, at least that of independent events.
func WindowNoise(amounts []Amount, independent float64) float64 {
	return max(independent, NeighbourNoise(amounts, 1), NeighbourNoise(amounts, 2))
}

// WindowChanges returns [Changes] of the amounts of windows, at least three of them or a
// twentieth of all apart.
func WindowChanges(of ...Varying) []int { return Changes(max(3, len(of[0].Amounts)/20), of...) }
