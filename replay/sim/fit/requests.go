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

// answerLengths returns n lengths with a mean: some reach the limit, the others stop
// anywhere before it, evenly spread. So few answers stop early where the mean is close
// to the limit, and most requests of a closed loop stay in step.
func answerLengths(n, limit int, mean float64) []int {
	top := float64(limit)
	if mean <= 0 || mean > top {
		mean = top
	}
	if mean < top/2 {
		top = max(2*mean-1, 1) // no answer reaches the limit
	}
	lengths := make([]int, n)
	early := min(int(math.Ceil(2*(1-mean/top)*float64(n)-1e-9)), n)
	// The mean of the early ones makes up for rounding their number.
	least := 0.0
	if early > 0 {
		least = 2*(mean*float64(n)-top*float64(n-early))/float64(early) - top
	}
	rest := 0.0
	for i := range lengths {
		length := top
		if i < early {
			length = least + (top-least)*(float64(i)+0.5)/float64(early)
		}
		length += rest
		lengths[i] = int(min(max(math.Round(length), 1), float64(limit)))
		rest = length - float64(lengths[i])
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
