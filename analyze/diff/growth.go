package diff

import (
	"math"

	"moontide/trace/stats"
)

// growth is what is known of how a latency differs between sides on both of
// which it rises through the run. The zero value is of one that does not.
//
// Where requests arrive faster than they are answered, each waits for all before
// it: what a request loses or gains, all later ones do. Their difference is a
// random walk, from 0 at the start, whose steps are independent where its values
// are not. So the spread of the steps from stretch to stretch says how sure the
// difference is, and how far it got in the run does not count as chance.
type growth struct {
	step float64 // half of a step's interval
	set  bool
}

const (
	// risesFrom is the correlation of a latency with time from which on it rises
	// through the run. In a queue that does not grow it is that by chance in one
	// run of a hundred.
	risesFrom = 0.7
	// addsUpFrom is the correlation of a step with the one before from which on
	// what is lost or gained adds up. It is 1/4 for means of a random walk, and
	// -1/2 where each stretch is late for reasons of its own, as where prompts
	// get longer through the run.
	addsUpFrom = -0.25
)

// growthOf looks at the values of a latency on both sides. Where a window cuts a
// run, the stretches outside have none; those inside must have some.
func growthOf(a, b *sample) growth {
	if a == nil || b == nil {
		return growth{}
	}
	var level, apart, time []float64
	for i := range stretches {
		if a.sums.counts[i] == 0 || b.sums.counts[i] == 0 {
			continue
		}
		one, other := a.sums.of(i), b.sums.of(i)
		level, apart, time = append(level, one+other), append(apart, other-one), append(time, float64(i))
	}
	n := len(time)
	if n < fewestStretches || time[n-1]-time[0] != float64(n-1) || !(stats.Pearson(level, time) > risesFrom) {
		return growth{}
	}
	steps := make([]float64, n-1)
	for i := range steps {
		steps[i] = apart[i+1] - apart[i]
	}
	squares, alike := likeness(steps)
	if squares > 0 && alike < addsUpFrom {
		return growth{}
	}
	free := float64(len(steps) - 1)
	return growth{step: studentsT(free) * math.Sqrt(squares/free) * widerBy(alike+1/(free+1)), set: true}
}

// reach is half the interval of something that is moved by a part of each
// stretch's difference. Every step moves all stretches from its own on, also one
// before the window that is measured.
func (g growth) reach(parts *[stretches]float64) float64 {
	squares, behind := 0., 0.
	for i := stretches - 1; i >= 0; i-- {
		behind += parts[i]
		squares += behind * behind
	}
	return g.step * math.Sqrt(squares)
}

func average(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// likeness is the correlation of values with the ones before, and the squares of
// what they are from their mean.
func likeness(values []float64) (squares, alike float64) {
	mean, products := average(values), 0.
	for i, v := range values {
		squares += (v - mean) * (v - mean)
		if i > 0 {
			products += (v - mean) * (values[i-1] - mean)
		}
	}
	if !(squares > 0) {
		return 0, 0
	}
	return squares, products / squares
}
