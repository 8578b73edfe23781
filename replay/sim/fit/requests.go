package fit

import (
	"math"
	"math/rand/v2"
	"time"
)

// requests returns the requests of a load. The same seed gives the same requests.
func (l Load) requests(seed uint64) []Request {
	if len(l.Requests) > 0 {
		return l.Requests
	}
	all := make([]Request, l.prompts())
	random := rand.New(rand.NewPCG(seed, 0x666974)) // "fit"
	lengths := answerLengths(len(all), l.OSL, l.MeanOutput)
	random.Shuffle(len(lengths), func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	at := 0.0
	for i := range all {
		all[i] = Request{Input: l.ISL, Output: lengths[i]}
		if l.Rate > 0 {
			all[i].Arrival = time.Duration(at * float64(time.Second))
			at += random.ExpFloat64() / l.Rate
		}
	}
	return all
}

func (l Load) prompts() int {
	switch {
	case len(l.Requests) > 0:
		return len(l.Requests)
	case l.Prompts > 0:
		return l.Prompts
	}
	return PromptsPerSlot * max(l.Concurrency, 1)
}

// answerLengths returns n lengths with a mean, evenly spread over [2*mean-limit, limit].
func answerLengths(n, limit int, mean float64) []int {
	lengths := make([]int, n)
	if mean <= 0 || mean > float64(limit) {
		mean = float64(limit)
	}
	half := min(float64(limit)-mean, mean-1)
	sum := 0.0
	for i := range lengths {
		at := mean
		if n > 1 {
			at = mean - half + 2*half*float64(i)/float64(n-1)
		}
		// Rounding must not shift the sum.
		length := math.Round(at + sum)
		sum += at - length
		lengths[i] = int(length)
	}
	return lengths
}
