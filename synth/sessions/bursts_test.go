package sessions

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/stats"
)

// timesOf returns n times with the given gaps.
func timesOf(n int, gap func() float64) []float64 {
	times := make([]float64, n)
	for i := 1; i < n; i++ {
		times[i] = times[i-1] + gap()
	}
	return times
}

// Arrivals of a gamma or Weibull renewal process or of a Markov-modulated Poisson process
// are no bursts, however irregular.
func TestOtherArrivalsAreNoBursts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		shape := math.Exp(rapid.Float64Range(math.Log(.05), math.Log(20)).Draw(t, "log shape"))
		ratio, stay := rapid.Float64Range(1, 50).Draw(t, "ratio"), rapid.Float64Range(1, 100).Draw(t, "stay")
		left, fast := 0.0, false
		gaps := map[string]func() float64{
			"gamma":   distuv.Gamma{Alpha: shape, Beta: shape / 1000, Src: random}.Rand,
			"weibull": distuv.Weibull{K: max(shape, .1), Lambda: 1000, Src: random}.Rand,
			"modulated": func() float64 {
				if left--; left < 0 {
					left, fast = random.ExpFloat64()*stay, !fast
				}
				if fast {
					return random.ExpFloat64()
				}
				return random.ExpFloat64() * ratio
			},
		}
		process := rapid.SampledFrom(slices.Sorted(maps.Keys(gaps))).Draw(t, "process")
		times := timesOf(rapid.IntRange(1, 3000).Draw(t, "requests"), gaps[process])
		if rapid.Bool().Draw(t, "whole") {
			for i := range times {
				times[i] = math.Round(times[i])
			}
		}
		if longest := longestInBursts(times); longest != 0 {
			t.Fatalf("gaps up to %v are taken for those within bursts", longest)
		}
	})
}

// burstSource makes bursts.
type burstSource struct {
	bursts int
	gap    func(*rand.Rand) float64 // between instants
	size   func(*rand.Rand) int
	late   float64 // ms until the first request, at most
	stalls float64 // share of the requests before which the client stalls for up to half of the gap
	within float64 // mean ms between requests
	whole  bool
}

func (s burstSource) rows(seed uint64) (rows []trace.Request) {
	random := rand.New(rand.NewPCG(seed, 2))
	instant := 0.0
	for range s.bursts {
		at := instant + s.late*random.Float64()
		for range s.size(random) {
			at += s.within * random.ExpFloat64()
			if s.stalls > 0 && random.Float64() < s.stalls {
				at += s.gap(random) / 2 * random.Float64()
			}
			stamp := microseconds(at)
			if s.whole {
				stamp = math.Round(at)
			}
			rows = append(rows, trace.Request{Timestamp: trace.Some(stamp), InputLength: 100 + random.IntN(900), OutputLength: 1 + random.IntN(300)})
		}
		instant += s.gap(random)
	}
	return rows
}

// shapeOf returns the gaps between the bursts of rows, their sizes, and the gaps within.
func shapeOf(rows []trace.Request, longest float64) (between, sizes, within []float64) {
	size, begin := 1.0, rows[0].Timestamp.Value
	for i := 1; i < len(rows); i++ {
		at := rows[i].Timestamp.Value
		if gap := at - rows[i-1].Timestamp.Value; gap <= longest {
			within = append(within, gap)
			size++
			continue
		}
		between, sizes = append(between, at-begin), append(sizes, size)
		size, begin = 1, at
	}
	return between, sizes, within
}

var (
	every  = func(ms float64) func(*rand.Rand) float64 { return func(*rand.Rand) float64 { return ms } }
	around = func(ms float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return ms/10 + .9*ms*r.ExpFloat64() }
	}
	poisson = func(mean float64) func(*rand.Rand) int {
		return func(r *rand.Rand) int { return 1 + int(mean*r.ExpFloat64()) }
	}
	pareto = func(r *rand.Rand) int { return int(min(math.Pow(1-r.Float64(), -1/1.2), 300)) }
)

// checkWholeBounds checks that no bound of the bins of whole values is a value.
func checkWholeBounds(t *testing.T, j joint) {
	t.Helper()
	for _, bins := range j[0].Leaves {
		for _, b := range bins {
			if len(b) == 5 && (math.Mod(b[2], 1) != .5 || math.Mod(b[3], 1) != .5) {
				t.Errorf("the bounds of %v are no halves", b)
			}
		}
	}
}

// Bursts at regular and irregular instants, of even and of very uneven sizes, are drawn like
// those of the source: the gaps between and within them, and their sizes.
func TestBursts(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]burstSource{
		"a grid of 3 s":            {bursts: 800, gap: every(3000), size: poisson(9), late: 2, within: 1},
		"a grid of 300 ms":         {bursts: 800, gap: every(300), size: poisson(9), late: 1, within: .7},
		"no whole step":            {bursts: 800, gap: every(3000. / 7), size: poisson(5), late: 1, within: .5},
		"irregular":                {bursts: 800, gap: around(2000), size: poisson(9), within: 1},
		"irregular and heavy":      {bursts: 2000, gap: around(1000), size: pareto, within: .5},
		"a busy machine":           {bursts: 800, gap: around(2000), size: poisson(9), within: .3, stalls: .005},
		"whole milliseconds":       {bursts: 800, gap: every(3000), size: poisson(9), late: 2, within: 1, whole: true},
		"a few hundred every hour": {bursts: 12, gap: every(3600e3), size: poisson(300), late: 5, within: 1},
	} {
		t.Run(name, func(t *testing.T) {
			rows := s.rows(1)
			m, err := Fit(trace.FromSlice(rows), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if m.file.Bursts == nil {
				t.Fatal("no bursts were found")
			}
			const longest = 20
			drawn, err := trace.Collect(m.Requests(1, len(rows)))
			if err != nil {
				t.Fatal(err)
			}
			a, b := [3][]float64{}, [3][]float64{}
			a[0], a[1], a[2] = shapeOf(rows, longest)
			b[0], b[1], b[2] = shapeOf(drawn, longest)
			for i, what := range []string{"gaps between bursts", "sizes of bursts", "gaps within bursts"} {
				from, to := stats.Of(a[i]), stats.Of(b[i])
				bound := 1.63 * math.Sqrt(1/float64(from.Count)+1/float64(to.Count)) // 1 % by chance
				if ks := stats.KS(from, to); ks > max(bound, .03) {
					t.Errorf("KS of the %s is %.3f: means %.4g and %.4g", what, ks, from.Mean, to.Mean)
				}
			}
			if s.whole {
				checkWholeBounds(t, m.file.Bursts.Gaps)
			}
			if s.whole && slices.ContainsFunc(drawn, func(r trace.Request) bool { return r.Timestamp.Value != math.Trunc(r.Timestamp.Value) }) {
				t.Error("times are not whole")
			}
		})
	}
}

// Requests are in one burst of the model if they are in one of the source, whatever its
// sizes and gaps.
func TestBurstsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		within := rapid.Float64Range(.05, 20).Draw(t, "within")
		step := within * rapid.Float64Range(200, 5000).Draw(t, "steps")
		s := burstSource{bursts: rapid.IntRange(60, 400).Draw(t, "bursts"), gap: every(step), size: poisson(rapid.Float64Range(3, 8).Draw(t, "size")), late: within, within: within}
		if rapid.Bool().Draw(t, "irregular") {
			s.gap = around(10 * step)
		}
		var times []float64
		for _, r := range s.rows(rapid.Uint64().Draw(t, "seed")) {
			times = append(times, r.Timestamp.Value)
		}
		longest := longestInBursts(times)
		if longest == 0 {
			t.Fatal("no bursts were found")
		}
		instants := instantsOf(times, longest)
		for i := range instants[1:] {
			if together := times[i+1]-times[i] < step/3; together != (instants[i] == instants[i+1]) {
				t.Fatalf("times %v and %v are at %v and %v", times[i], times[i+1], instants[i], instants[i+1])
			}
		}
	})
}

// The turns of a burst come in random order, but after those that they continue, and at
// times that do not decrease. None is lost if a burst is larger than what is shuffled.
func TestTurnsOfBurstsAreShuffled(t *testing.T) {
	const count, size = 2000, 10
	gaps := joint{{Leaves: [][]bin{{{5, 5, 1}}}}}
	draws := func(size int) *burstDrawing {
		m, drawn := newModel(), 0
		m.file.Bursts = &bursts{Gaps: gaps}
		m.file.Bursts.prepare()
		return m.inBursts(1, func() drawnTurn {
			i := drawn
			drawn++
			return drawnTurn{turn: &turn{isl: i}, stamp: 1e6 * float64(i/size), atOnce: i%size == size-1}
		})
	}
	first := make([]float64, size)
	d := draws(size)
	for b := range count {
		for place := range size {
			turn := d.next()
			if want := 1e6*float64(b) + float64(place); turn.stamp != want || turn.isl/size != b {
				t.Fatalf("turn %d is at %v, want %v", turn.isl, turn.stamp, want)
			}
			if place == 0 {
				first[turn.isl%size]++
			}
			if last := turn.isl%size == size-1; last != (place == size-1) {
				t.Fatalf("turn %d has place %d", turn.isl, place)
			}
		}
	}
	for i, n := range first[:size-1] {
		if math.Abs(n-count/(size-1)) > 5*math.Sqrt(count/(size-1)) {
			t.Errorf("turn %d of %d bursts is the first of %v", i, count, n)
		}
	}
	seen := map[int]bool{}
	d = draws(3 * maxShuffled)
	for i := range 3 * maxShuffled {
		turn := d.next()
		if seen[turn.isl] = true; turn.stamp != float64(i) {
			t.Fatalf("turn %d of a large burst is at %v", i, turn.stamp)
		}
	}
	if len(seen) != 3*maxShuffled {
		t.Errorf("%d turns of %d", len(seen), 3*maxShuffled)
	}
}

// The sizes of bursts add up as in the source with every seed, however uneven they are.
func TestSizesOfBurstsAreStratified(t *testing.T) {
	t.Parallel()
	rows := burstSource{bursts: 3000, gap: around(1000), size: pareto, within: .5}.rows(1)
	m, err := Fit(trace.FromSlice(rows), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(8) {
		drawn, err := trace.Collect(m.Requests(seed, len(rows)))
		if err != nil {
			t.Fatal(err)
		}
		_, sizes, _ := shapeOf(drawn, 20)
		if ratio := float64(len(sizes)) / 3000; math.Abs(ratio-1) > .06 {
			t.Errorf("seed %d: %.3f times as many bursts as in the source", seed, ratio)
		}
	}
}
