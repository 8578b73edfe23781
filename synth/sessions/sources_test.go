package sessions_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"moontide/trace"
)

// workload generates traces by other means than the model: users arrive by a
// Poisson process, use one of several system prompts and continue after a pause.
type workload struct {
	seed      uint64
	requests  int
	blockSize int
	rate      float64 // sessions a second
	burst     float64 // share of the time that sessions arrive; 0: always
	gridMs    float64
	apart     bool // requests of one time are 0.3 to 2 ms apart

	systems  int     // system prompts
	zipf     float64 // of their popularity
	system   [2]int  // tokens of one, least and most
	tools    int     // longer variants of each system prompt
	tool     [2]int  // tokens that a variant adds
	proceed  float64 // probability of a next turn
	pause    float64 // seconds, mean
	question float64 // tokens, median of a lognormal distribution
	spread   float64 // its sigma
	answer   float64
	sessions bool // rows say their session
	delays   bool // later turns have a delay and no timestamp
}

func (w workload) rows() []trace.Request {
	random := rand.New(rand.NewPCG(w.seed, 7))
	type row struct {
		at  float64
		req trace.Request
	}
	var rows []row
	var id uint64
	tokens := func(n int) []uint64 { // fresh ids of full blocks
		ids := make([]uint64, n/w.blockSize)
		for i := range ids {
			id++
			ids[i] = id * 977
		}
		return ids
	}
	between := func(r [2]int) int { return r[0] + random.IntN(r[1]-r[0]+1) }
	var prompts [][][]uint64
	var popular []float64
	sum := 0.0
	for s := range w.systems {
		system := tokens(between(w.system))
		variants := [][]uint64{system}
		for range w.tools {
			variants = append(variants, slices.Concat(system, tokens(between(w.tool))))
		}
		prompts = append(prompts, variants)
		sum += math.Pow(float64(s+1), -w.zipf)
		popular = append(popular, sum)
	}
	now := 0.0
	for session := 0; len(rows) < 3*w.requests; session++ {
		now += random.ExpFloat64() / w.rate
		if w.burst > 0 && random.Float64() < .05 {
			now += random.ExpFloat64() * 20 * (1 - w.burst) / w.burst / w.rate
		}
		var ids []uint64
		if w.systems > 0 {
			s, _ := slices.BinarySearch(popular, random.Float64()*sum)
			v := 0
			if w.tools > 0 {
				v = int(float64(w.tools+1) * random.Float64() * random.Float64())
			}
			ids = slices.Clone(prompts[s][v])
		}
		isl, at := len(ids)*w.blockSize, now
		for turn := 0; ; turn++ {
			isl += 1 + int(w.question*math.Exp(w.spread*random.NormFloat64()))
			osl := 1 + int(w.answer*random.ExpFloat64())
			full := ids
			if n := isl - len(ids)*w.blockSize; n > 0 {
				full = append(full, tokens(n)...)
			}
			ids = full
			all := slices.Clone(full)
			if isl%w.blockSize != 0 {
				id++
				all = append(all, id*977)
			}
			t := math.Round(at * 1000)
			if w.gridMs > 0 {
				t = math.Round(t/w.gridMs) * w.gridMs
			}
			r := trace.Request{Timestamp: trace.Some(t), InputLength: isl, OutputLength: osl, HashIDs: all}
			pause := w.pause * random.ExpFloat64()
			if w.sessions {
				r.SessionID = "user-" + string(rune('A'+session%26)) + "-" + string(rune('0'+session/26%10)) + string(rune('0'+session/260%10)) + string(rune('0'+session/2600%10))
			}
			if w.delays && turn > 0 {
				r.Timestamp, r.Delay = trace.Opt[float64]{}, trace.Some(math.Round(pause*1000))
			}
			rows = append(rows, row{at, r})
			if random.Float64() >= w.proceed || isl > 120_000 {
				break
			}
			isl += osl
			at += pause + 1
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	var out []trace.Request
	last := 0.0
	for _, r := range rows[:w.requests] {
		if last += .3 + 1.7*random.Float64(); w.apart {
			last = max(last, r.req.Timestamp.Value)
			r.req.Timestamp.Value = math.Round(last*1000) / 1000
		}
		out = append(out, r.req)
	}
	return out
}

// workloads differ from each other and from any trace with which the method was
// developed.
var workloads = map[string]workload{
	"toolagent": {seed: 1, requests: 12000, blockSize: 512, rate: 4, gridMs: 3000, systems: 60, zipf: 1.1, system: [2]int{1500, 9000},
		tools: 4, tool: [2]int{1000, 12000}, proceed: .4, pause: 20, question: 1200, spread: 1, answer: 180},
	"captured": {seed: 9, requests: 8000, blockSize: 64, rate: 5, gridMs: 3000, apart: true, systems: 20, zipf: 1, system: [2]int{1500, 9000},
		proceed: .5, pause: 5, question: 600, spread: 1, answer: 180},
	"many prompts": {seed: 2, requests: 12000, blockSize: 512, rate: 5, systems: 2000, zipf: .8, system: [2]int{1000, 20000},
		proceed: .1, pause: 20, question: 800, spread: .7, answer: 120},
	"bursts":     {seed: 3, requests: 8000, blockSize: 64, rate: 3, burst: .3, systems: 3, zipf: 1, system: [2]int{200, 2000}, proceed: .6, pause: 60, question: 300, spread: 1.2, answer: 300},
	"small":      {seed: 4, requests: 8000, blockSize: 16, rate: .7, systems: 1, zipf: 1, system: [2]int{400, 400}, proceed: .8, pause: 100, question: 100, spread: 1, answer: 200},
	"unshared":   {seed: 5, requests: 6000, blockSize: 512, rate: 2, proceed: 0, question: 3000, spread: 1.5, answer: 300},
	"one prompt": {seed: 6, requests: 6000, blockSize: 512, rate: 20, gridMs: 1000, systems: 1, zipf: 1, system: [2]int{3000, 3000}, proceed: 0, question: 900, spread: 1, answer: 50},
	"documents":  {seed: 8, requests: 4000, blockSize: 512, rate: .2, systems: 200, zipf: .9, system: [2]int{20_000, 90_000}, proceed: .6, pause: 30, question: 300, spread: .8, answer: 200},
	"agents":     {seed: 7, requests: 6000, blockSize: 64, rate: .02, systems: 2, zipf: 1, system: [2]int{6000, 9000}, proceed: .97, pause: 8, question: 400, spread: 1.2, answer: 150},
}
