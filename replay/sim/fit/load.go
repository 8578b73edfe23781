package fit

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Load describes the requests of a measurement: of a fixed shape in a closed loop
// (Concurrency) or at a rate (Rate, with or without Concurrency), or those of a
// recorded run (Requests, with or without Concurrency).
type Load struct {
	// ISL and OSL are the tokens of a prompt and the most of an answer. MeanOutput
	// is the mean of the answers' tokens if some stop before OSL, at any length; 0 is
	// OSL.
	ISL, OSL   int
	MeanOutput float64
	// Concurrency limits the requests in flight; 0 is no limit. Without Rate and
	// Requests all prompts wait for a slot from the start: a closed loop.
	Concurrency int
	// Rate is the number of requests sent per second, with exponential gaps.
	Rate float64
	// Prompts is the number of requests; 0 is ten per slot.
	Prompts int
	// Requests are those of a recorded run, in order of arrival.
	Requests []Request
}

// promptsPerSlot is the assumed number of prompts per slot of a closed loop whose
// number of prompts is unknown.
const promptsPerSlot = 10

// Request is a request of a load.
type Request struct {
	Arrival     time.Duration // since the start; 0 for all in a closed loop
	Input       int           // prompt tokens
	Output      int           // tokens of the answer
	CachedInput int           // prompt tokens that the server found in its prefix cache
}

// String returns the shape and its intensity, such as "3000:150 at 16".
func (l Load) String() string {
	switch {
	case len(l.Requests) > 0:
		return fmt.Sprintf("%d recorded requests", len(l.Requests))
	case l.Rate > 0:
		return fmt.Sprintf("%d:%d at %g/s", l.ISL, l.OSL, l.Rate)
	}
	return fmt.Sprintf("%d:%d at %d", l.ISL, l.OSL, l.Concurrency)
}

// closed reports whether a load is a closed loop.
func (l Load) closed() bool {
	return l.Concurrency > 0 && l.Rate == 0 && (len(l.Requests) == 0 || l.Requests[len(l.Requests)-1].Arrival == 0)
}

// requests returns the requests of a load. The same seed gives the same requests.
func (l Load) requests(seed uint64) []Request {
	if len(l.Requests) > 0 {
		return l.Requests
	}
	all := make([]Request, cmp.Or(l.Prompts, promptsPerSlot*max(l.Concurrency, 1)))
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

// answerLengths returns n lengths with a mean: some reach the limit, the others stop
// anywhere before it, evenly spread. So few answers stop early where the mean is close
// to the limit, and most requests of a closed loop stay in step.
func answerLengths(n, limit int, mean float64) []int {
	top, count := float64(limit), float64(n)
	if mean <= 0 || mean > top {
		mean = top
	}
	if mean < top/2 {
		top = max(2*mean-1, 1) // no answer reaches the limit
	}
	early := min(math.Ceil(2*(1-mean/top)*count-1e-9), count)
	least := 2*(mean*count-top*(count-early))/early - top // makes up for rounding early
	lengths, rest := make([]int, n), 0.0
	for i := range lengths {
		length := top
		if float64(i) < early {
			length = least + (top-least)*(float64(i)+0.5)/early
		}
		length += rest
		lengths[i] = int(min(max(math.Round(length), 1), float64(limit)))
		rest = length - float64(lengths[i])
	}
	return lengths
}

// means returns the mean numbers of prompt tokens that are computed and of the tokens of
// an answer.
func (l Load) means() (computed, output float64) {
	all := l.requests(0)
	for _, r := range all {
		computed, output = computed+float64(r.Input-r.CachedInput), output+float64(r.Output)
	}
	return computed / float64(len(all)), output / float64(len(all))
}
