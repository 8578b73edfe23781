package stats_test

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"moontide/trace/stats"
)

// poisson draws the counts of windows, at one mean after the other.
func poisson(seed uint64, windows int, means ...float64) []stats.Amount {
	random := stats.NewStream(seed, "arrivals")
	var all []stats.Amount
	for _, mean := range means {
		for range windows {
			all = append(all, stats.Amount{Events: distuv.Poisson{Lambda: mean, Src: random}.Rand(), Of: 1})
		}
	}
	return all
}

// A rate that doubles is cut there, and noise of a steady rate nowhere.
func TestChanges(t *testing.T) {
	falseCuts := 0
	for seed := range uint64(200) {
		falseCuts += len(stats.Changes(3, stats.Varying{Amounts: poisson(seed, 60, 50), Noise: 1})) - 2
		cuts := stats.Changes(3, stats.Varying{Amounts: poisson(seed, 20, 50, 100, 50), Noise: 1})
		if len(cuts) != 4 || cuts[1] < 18 || cuts[1] > 22 || cuts[2] < 38 || cuts[2] > 42 {
			t.Errorf("seed %d: cuts %v, want 0, 20, 40, 60", seed, cuts)
		}
	}
	if falseCuts > 0 {
		t.Errorf("%d cuts of 200 steady sources", falseCuts)
	}
}

// A change of one quantity of three cuts all of them.
func TestChangesOfOneOfThree(t *testing.T) {
	steady, doubles := poisson(1, 40, 30), poisson(2, 20, 30, 60)
	of := []stats.Varying{{Amounts: steady, Noise: 1}, {Amounts: doubles, Noise: 1}, {Amounts: steady, Noise: 1}}
	if got := stats.Changes(3, of...); !slices.Equal(got, []int{0, 20, 40}) {
		t.Errorf("cuts %v", got)
	}
	of[1].Noise = 100
	if got := stats.Changes(3, of...); !slices.Equal(got, []int{0, 40}) {
		t.Errorf("cuts %v of what is noise", got)
	}
}

// Runs cover all amounts in order, and each has enough of them.
func TestSteadyRunsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stats.Amount {
			return stats.Amount{Events: float64(rapid.IntRange(0, 50).Draw(t, "events")), Of: rapid.Float64Range(.1, 9).Draw(t, "of")}
		}), 1, 80).Draw(t, "amounts")
		least := rapid.IntRange(1, 6).Draw(t, "least")
		at := 0
		runs := stats.SteadyRuns(stats.Varying{Amounts: amounts, Noise: .05}, least)
		for _, r := range runs {
			events := 0.0
			for _, a := range amounts[r.From:r.To] {
				events += a.Events
			}
			if r.From != at || r.Sum.Events != events || len(runs) > 1 && (r.To-r.From < least || events < float64(least)) {
				t.Fatalf("runs %+v of %v", runs, amounts)
			}
			at = r.To
		}
		if at != len(amounts) {
			t.Fatalf("runs %+v end before %d", runs, len(amounts))
		}
	})
}

// Noise is 1 for Poisson counts, also if their mean drifts.
func TestMeanNoise(t *testing.T) {
	var counts []float64
	for _, a := range poisson(3, 1600, 20, 25, 30, 35) {
		counts = append(counts, a.Events)
	}
	if got := stats.MeanNoise(counts, 1); got < .95 || got > 1.05 {
		t.Errorf("noise %v", got)
	}
	if got := stats.MeanNoise(make([]float64, 32), 1); got != 1 {
		t.Errorf("noise of no events is %v", got)
	}
}

// Noise of neighbours is 1 for Poisson counts of any width, also if the rate jumps.
func TestNeighbourNoise(t *testing.T) {
	amounts := poisson(5, 4000, 20, 60)
	for _, width := range []int{1, 2, 5} {
		if got := stats.NeighbourNoise(amounts, width); got < .9 || got > 1.1 {
			t.Errorf("width %d: noise %v", width, got)
		}
	}
	if got := stats.NeighbourNoise(amounts[:3], 2); got != 0 {
		t.Errorf("noise of no pair is %v", got)
	}
}
