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

// meanOutput returns the mean number of tokens of an answer.
func (l Load) meanOutput() float64 {
	if len(l.Requests) > 0 {
		return meanOf(l.Requests, func(r Request) int { return r.Output })
	}
	if l.MeanOutput > 0 {
		return l.MeanOutput
	}
	return float64(l.OSL)
}

// meanComputed returns the mean number of prompt tokens that are not cached.
func (l Load) meanComputed() float64 {
	if len(l.Requests) > 0 {
		return meanOf(l.Requests, func(r Request) int { return r.Input - r.CachedInput })
	}
	return float64(l.ISL)
}

func meanOf(requests []Request, of func(Request) int) float64 {
	sum := 0
	for _, r := range requests {
		sum += of(r)
	}
	return float64(sum) / float64(len(requests))
}

// closed reports whether a load is a closed loop.
func (l Load) closed() bool {
	return l.Concurrency > 0 && l.Rate == 0 && (len(l.Requests) == 0 || l.Requests[len(l.Requests)-1].Arrival == 0)
}
