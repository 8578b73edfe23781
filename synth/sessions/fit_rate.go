package sessions

import (
	"math"
	"slices"

	mstats "github.com/montanaflynn/stats"
)

// amount is a number of events and the time or ticks that they took.
type amount struct{ events, of float64 }

func (a amount) rate() float64 { return a.events / a.of }

// logLikelihood returns the log-likelihood of the events at their mean rate, up
// to a constant. It is the same for Poisson counts and exponential gaps.
func (a amount) logLikelihood() float64 {
	if a.events == 0 {
		return 0
	}
	return a.events * math.Log(a.events/a.of)
}

func (a amount) minus(b amount) amount { return amount{a.events - b.events, a.of - b.of} }

// steadyRun is a run of amounts with a steady rate.
type steadyRun struct {
	from, to int
	sum      amount
}

const (
	// minRateGain is the minimum gain in log-likelihood for a cut, in multiples
	// of the logarithm of the number of amounts and their noise.
	minRateGain = 3
	// maxCutDepth limits the recursion, to bound the running time.
	maxCutDepth = 512
	// noiseWindow is the number of neighbours over which noise is measured.
	noiseWindow = 16
)

// steadyRuns cuts a source where its rate changes, by binary segmentation, as
// long as the gain exceeds chance. Every run has at least minRequests amounts and
// events. Noise is that of [meanNoise].
func steadyRuns(amounts []amount, noise float64) (runs []steadyRun) {
	upTo := make([]amount, len(amounts)+1) // cumulative sums
	for i, a := range amounts {
		upTo[i+1] = amount{upTo[i].events + a.events, upTo[i].of + a.of}
	}
	minGain := minRateGain * math.Log(float64(len(amounts))) * noise
	var cut func(from, to, depth int)
	cut = func(from, to, depth int) {
		all := upTo[to].minus(upTo[from])
		best, at := minGain, none
		for i := from + minRequests; i <= to-minRequests && depth < maxCutDepth; i++ {
			before := upTo[i].minus(upTo[from])
			after := all.minus(before)
			if before.events < minRequests || after.events < minRequests {
				continue
			}
			if gain := before.logLikelihood() + after.logLikelihood() - all.logLikelihood(); gain > best {
				best, at = gain, i
			}
		}
		if at == none {
			runs = append(runs, steadyRun{from, to, all})
			return
		}
		cut(from, at, depth+1)
		cut(at, to, depth+1)
	}
	cut(0, len(amounts), 0)
	return runs
}

// meanNoise returns the mean variance / mean^power of neighbouring values. It
// is 1 for a Poisson process, for counts with a power of 1 and gaps with a
// power of 2. Slow changes do not add to it.
func meanNoise(values []float64, power float64) float64 {
	sum, n := 0.0, 0.0
	for window := range slices.Chunk(values, noiseWindow) {
		if len(window) < noiseWindow {
			break
		}
		n++
		mean, _ := mstats.Mean(window)
		if mean == 0 {
			sum++
			continue
		}
		variance, _ := mstats.SampleVariance(window)
		sum += variance / math.Pow(mean, power)
	}
	return max(sum/max(n, 1), .05)
}
