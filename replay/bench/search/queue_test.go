package search_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"moontide/replay/bench/search"
)

// In queues with one server that takes a second on average, the mean response time at a
// rate is 1/(1-rate) if service times are exponential (M/M/1), and 1+rate/(2*(1-rate)) if
// they are all equal (M/D/1). A search in simulated queues finds the rate at which it
// reaches a limit, about as exactly as its interval says.
func TestQueuesInTheory(t *testing.T) {
	const limit, searches, requests = 3.0, 20, 40_000
	for name, queue := range map[string]struct {
		truth   float64
		service func(random *rand.Rand) float64
	}{
		"M/M/1": {1 - 1/limit, func(random *rand.Rand) float64 { return random.ExpFloat64() }},
		"M/D/1": {2 * (limit - 1) / (2*limit - 1), func(*rand.Rand) float64 { return 1 }},
	} {
		good, inside := 0, 0
		for seed := range uint64(searches) {
			random := rand.New(rand.NewPCG(seed, 5))
			a, trials := search12(search.Config{Goal: search.Largest, Low: 0.01, High: 100, Start: 0.1}, func(rate float64) search.Trial {
				mean, spread := meanOfBatches(random, rate, requests, queue.service)
				y := math.Log(mean / limit)
				return search.Trial{Level: rate, Met: y < 0, Known: true, Excess: y, Error: spread / mean}
			})
			if math.Abs(a.Estimate/queue.truth-1) <= 0.03 {
				good++
			} else {
				t.Logf("%s, seed %d: %+v after %d trials, want %v", name, seed, a, len(trials), queue.truth)
			}
			if a.From <= queue.truth && queue.truth <= a.To {
				inside++
			}
		}
		if good < searches-1 || inside < searches-3 {
			t.Errorf("%s: %d of %d answers are within 3 %%, and %d intervals cover the truth", name, good, searches, inside)
		}
	}
}

// meanOfBatches returns the mean response time of a queue, and its standard error.
func meanOfBatches(random *rand.Rand, rate float64, requests int, service func(*rand.Rand) float64) (mean, spread float64) {
	const batches = 20
	var means [batches]float64
	response := 0.0
	for i := range requests {
		response = max(response-random.ExpFloat64()/rate, 0) + service(random)
		means[i*batches/requests] += response * batches / float64(requests)
	}
	for _, m := range means {
		mean += m / batches
	}
	for _, m := range means {
		spread += (m - mean) * (m - mean) / (batches - 1) / batches
	}
	return mean, math.Sqrt(spread)
}
