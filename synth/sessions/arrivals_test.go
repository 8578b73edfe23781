package sessions_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"moontide/analyze"
	"moontide/synth/sessions"
	"moontide/trace"
	"moontide/trace/stats"
)

// Arrivals keep the grid, the jitter and the burstiness of the source.
func TestArrivalsOfConversation(t *testing.T) {
	t.Parallel()
	rows := conversation(t)
	m := conversationModel(t)
	early := func(rows []trace.Request) float64 {
		n := 0.0
		for _, r := range rows {
			switch off := math.Mod(r.Timestamp.Value, 3000); {
			case off >= 2990:
				n++
			case off > 10:
				t.Fatalf("timestamp %v is not on the grid", r.Timestamp.Value)
			}
		}
		return n / float64(len(rows))
	}
	const seeds = 4
	from := look(t, rows, 512, nil)
	var share, second, minute float64
	for seed := range uint64(seeds) {
		drawn := draw(t, m, seed, len(rows))
		to := look(t, drawn, 512, nil)
		share += early(drawn) / seeds
		second += to.Arrivals.Dispersion1s.Value / from.Arrivals.Dispersion1s.Value / seeds
		minute += to.Arrivals.Dispersion60s.Value / from.Arrivals.Dispersion60s.Value / seeds
	}
	t.Logf("early: %.3f of all, want %.3f; dispersion in 1 s and 60 s is %.2f and %.2f times the source's", share, early(rows), second, minute)
	if math.Abs(share-early(rows)) > .05 {
		t.Errorf("%v of the requests are early, want %v", share, early(rows))
	}
	if math.Abs(second-1) > .1 || math.Abs(minute-1) > .3 {
		t.Errorf("the index of dispersion is %v times the source's in 1 s, %v in 60 s", second, minute)
	}
}

// shapes are arrival patterns: each calls add with times in ms.
var shapes = map[string]func(random *rand.Rand, add func(ms float64)){
	"poisson": func(random *rand.Rand, add func(float64)) { during(random, add, 0, 2400, 4, 4) },
	"lull": func(random *rand.Rand, add func(float64)) {
		during(random, add, 0, 3000, 4, 4)
		during(random, add, 3000, 3480, .06, .06)
	},
	"ramp": func(random *rand.Rand, add func(float64)) {
		during(random, add, 0, 1800, .3, .3)
		during(random, add, 1800, 3600, .3, 10)
		during(random, add, 3600, 4200, .2, .2)
	},
	"tail": func(random *rand.Rand, add func(float64)) {
		during(random, add, 0, 2000, 5, 5)
		for at, gap := 2000., 1.; at < 2400; at, gap = at+gap, gap*1.25 {
			add(at * 1000)
		}
	},
	"on and off": func(random *rand.Rand, add func(float64)) {
		for from := 0.; from < 3600; from += 80 {
			during(random, add, from, from+20, 10, 10)
			during(random, add, from+20, from+80, .5, .5)
		}
	},
	"grid": func(random *rand.Rand, add func(float64)) {
		during(random, func(ms float64) { add(math.Round(ms/1000) * 1000) }, 0, 3600, 1, 6)
	},
	"even": func(random *rand.Rand, add func(float64)) {
		for i := range 4000 {
			add(float64(i) * 250)
		}
	},
	"five at a time": func(random *rand.Rand, add func(float64)) {
		at := 0.
		for i := range 5000 {
			if i%5 == 0 {
				at += random.ExpFloat64() * 2000
			}
			add(at)
		}
	},
}

// during calls add by a Poisson process whose rate changes linearly, in requests
// per second.
func during(random *rand.Rand, add func(float64), from, to, first, last float64) {
	most := max(first, last)
	for at := from + random.ExpFloat64()/most; at < to; at += random.ExpFloat64() / most {
		if rate := first + (last-first)*(at-from)/(to-from); random.Float64()*most < rate {
			add(math.Round(at * 1000))
		}
	}
}

// For any rate, the n-th request arrives when it does in the source, and gaps
// have the same distribution.
func TestArrivalShapes(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			var rows []trace.Request
			shape(rand.New(rand.NewPCG(8, 15)), func(ms float64) {
				rows = append(rows, trace.Request{Timestamp: trace.Some(ms), InputLength: 700, OutputLength: 10})
			})
			m := fit(t, rows, sessions.Options{BlockSize: 512})
			from := look(t, rows, 512, nil)
			begin, span := rows[0].Timestamp.Value, from.Arrivals.Duration()
			const seeds = 5
			ks, mean := 0., 0.
			for seed := range uint64(seeds) {
				drawn := draw(t, m, seed, len(rows))
				to := look(t, drawn, 512, nil)
				ks += analyze.Compare(from.Analysis, to.Analysis).Gap.Value.KS / seeds
				took := to.Arrivals.Duration() / span
				mean += took / seeds
				if math.Abs(took-1) > .1 {
					t.Errorf("seed %d: the duration is %.3f times the source's", seed, took)
				}
				for part := 1; part < 10; part++ {
					i := len(rows) * part / 10
					want := rows[i].Timestamp.Value - begin
					if off := (drawn[i].Timestamp.Value - want) / span; math.Abs(off) > .05 {
						t.Errorf("seed %d: request %d is %.3f of the source's time off", seed, i, off)
					}
				}
			}
			t.Logf("KS of gaps %.4f, %.4f times as long", ks, mean)
			if ks > .03 || math.Abs(mean-1) > .03 {
				t.Errorf("KS of gaps %.4f, %.4f times as long on average", ks, mean)
			}
		})
	}
}

// The note on arrivals tells which are drawn and how close both choices come.
func TestArrivalsNote(t *testing.T) {
	const four = `\(KS of gaps 0\.\d{3}, of turn gaps 0\.\d{3}; drawing (all requests|session starts) instead: 0\.\d{3} and 0\.\d{3}\)$`
	note := regexp.MustCompile("^arrivals: (session starts are drawn, later turns follow their waits|all requests are drawn, turns that are due take the next) " + four)
	if m := fit(t, mixed(loads[:1]), sessions.Options{}); !slices.ContainsFunc(m.Notes(), note.MatchString) {
		t.Errorf("notes %q", m.Notes())
	}
}

// Strictly periodic arrivals stay so, also if their period is no whole number and if the
// prompts are equal.
func TestPeriodicArrivals(t *testing.T) {
	t.Parallel()
	for _, period := range []float64{.25, 333.333, 60_000} {
		var rows []trace.Request
		for i := range 500 {
			rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i) * period), InputLength: 1000, OutputLength: 64, HashIDs: []uint64{0, 1}})
		}
		last := -period
		for i, r := range draw(t, fit(t, rows, sessions.Options{}), 1, 3*len(rows)) {
			if gap := r.Timestamp.Value - last; math.Abs(gap-period) > 1e-3 {
				t.Errorf("request %d comes %v ms after the one before, want %v", i, gap, period)
			}
			last = r.Timestamp.Value
		}
	}
}

// A batch job that takes a small part of the time has a template of its own, which comes
// with its rate and its lengths.
func TestBatchJob(t *testing.T) {
	t.Parallel()
	const day, jobs, begin, period = 86_400e3, 1500, 20_000e3, 100
	random := stats.NewStream(1, "batch job")
	var rows []trace.Request
	id := uint64(100)
	add := func(at float64, blocks int, head ...uint64) {
		ids := slices.Clone(head)
		for len(ids) < blocks {
			id++
			ids = append(ids, id)
		}
		rows = append(rows, trace.Request{Timestamp: trace.Some(math.Round(at)), InputLength: blocks * agentBlock, OutputLength: 10 * blocks, HashIDs: ids})
	}
	for at := 0.0; at < day; at += random.ExpFloat64() * day / 3000 {
		add(at, 2+random.IntN(4))
	}
	for i := range jobs {
		add(begin+float64(i)*period, 20+random.IntN(20), 1, 2, 3, 4, 5, 6, 7, 8)
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return cmp.Compare(a.Timestamp.Value, b.Timestamp.Value) })
	m := fit(t, rows, sessions.Options{BlockSize: agentBlock})
	for seed := range uint64(3) {
		templated, periodic, last := 0, 0, math.Inf(-1)
		for _, r := range draw(t, m, seed, len(rows)) {
			if r.ContextLen.Value == 8*agentBlock {
				templated++
				periodic += indicator(math.Abs(r.Timestamp.Value-last-period) < 2)
				last = r.Timestamp.Value
			}
		}
		if math.Abs(float64(templated)-jobs) > .03*jobs || float64(periodic) < .6*jobs {
			t.Errorf("seed %d: %d requests of the job, %d at its period, want %d", seed, templated, periodic, jobs)
		}
	}
}
