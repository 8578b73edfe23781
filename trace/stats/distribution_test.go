package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// ksLimit is the Kolmogorov-Smirnov distance that n draws exceed with a
// probability of 1 in 1000.
func ksLimit(n int) float64 { return 1.95 / math.Sqrt(float64(n)) }

// ks returns the distance of draws from a distribution.
func ks(draws []float64, d Distribution) float64 {
	slices.Sort(draws)
	var worst float64
	n := float64(len(draws))
	for i := 0; i < len(draws); {
		j := i
		for j < len(draws) && draws[j] == draws[i] {
			j++
		}
		below := d.CDF(math.Nextafter(draws[i], math.Inf(-1)))
		worst = max(worst, math.Abs(d.CDF(draws[i])-float64(j)/n), math.Abs(below-float64(i)/n))
		i = j
	}
	return worst
}

func draws(l Distribution, n int) []float64 {
	places := NewIndexed(1, "test")
	values := make([]float64, n)
	for i := range values {
		values[i] = l.Quantile(places.At(i, 0))
	}
	return values
}

// distributions has one of each kind with its theoretical moments.
var distributions = map[string]struct {
	of        Distribution
	mean, std float64
}{
	"fixed":       {Fixed(7), 7, 0},
	"uniform":     {Uniform{10, 22}, 16, 12 / math.Sqrt(12)},
	"normal":      {Normal{1000, 200}, 1000, 200},
	"lognormal":   {NewLognormal(300, 0.8), 300, 240},
	"exponential": {Exponential(5), 5, 5},
	"geometric":   {Geometric{4}, 4, math.Sqrt(12)},
	"certain":     {Geometric{1}, 1, 0},
	"mixture": {NewMixture([]Component{{0.75, Normal{10, 2}}, {0.25, Normal{30, 2}}}),
		15, math.Sqrt(4 + 0.75*25 + 0.25*225)},
	"mixed atoms": {NewMixture([]Component{{0.7, Fixed(100)}, {0.2, Fixed(5000)}, {0.1, Uniform{200, 300}}}), 1095, 1955.79},
	// A bell cut in the middle: E = mean + std phi(0)/(1-Phi(0)).
	"half normal": {truncated(Normal{0, 1}, 0, math.Inf(1)), math.Sqrt(2 / math.Pi), math.Sqrt(1 - 2/math.Pi)},
	"rounded":     {Rounded{Uniform{0.5, 6.5}}, 3.5, math.Sqrt(35. / 12)},
	"memoryless":  {truncated(Exponential(5), 10, math.Inf(1)), 15, 5},
}

func truncated(d Distribution, low, high float64) Distribution {
	d, _ = Truncate(d, low, high)
	return d
}

func TestDistributions(t *testing.T) {
	const n = 10_000
	for name, tc := range distributions {
		t.Run(name, func(t *testing.T) {
			values := draws(tc.of, n)
			mean, std := stat.PopMeanStdDev(values, nil)
			// Standard errors: of the mean std/sqrt n; of the std more for heavy
			// tails.
			if math.Abs(mean-tc.mean) > 4*tc.std/math.Sqrt(n)+1e-9 {
				t.Errorf("mean is %v, want %v", mean, tc.mean)
			}
			if math.Abs(std-tc.std) > 0.06*tc.std+1e-9 {
				t.Errorf("std is %v, want %v", std, tc.std)
			}
			if d := ks(values, tc.of); d > ksLimit(n) {
				t.Errorf("KS distance is %.4f, want at most %.4f", d, ksLimit(n))
			}
		})
	}
}

func TestQuantileInvertsCDF(t *testing.T) {
	for name, tc := range distributions {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := rapid.Float64Range(MinP, 1-MinP).Draw(t, "p")
				q := rapid.Float64Range(MinP, 1-MinP).Draw(t, "q")
				x := tc.of.Quantile(p)
				if y := tc.of.Quantile(q); (p < q && x > y) || math.IsNaN(y) || math.IsInf(y, 0) {
					t.Fatalf("quantiles of %v and %v are %v and %v", p, q, x, y)
				}
				const close = 1e-9
				if above := tc.of.CDF(x + close*math.Abs(x)); above < p-close {
					t.Fatalf("P(X <= %v) = %v, want at least %v", x, above, p)
				}
				if below := tc.of.CDF(x - close*math.Abs(x) - 1e-12); below > p+close {
					t.Fatalf("P(X < %v) = %v, want at most %v", x, below, p)
				}
			})
		})
	}
}

func TestTruncate(t *testing.T) {
	l, mass := Truncate(Normal{1000, 200}, 800, 1200)
	if want := math.Erf(1 / math.Sqrt2); math.Abs(mass-want) > 1e-12 {
		t.Errorf("mass within a standard deviation is %v, want %v", mass, want)
	}
	if Lowest(l) != 800 || Highest(l) > 1200 || Highest(l) < 1199.9 {
		t.Errorf("its range is %v to %v", Lowest(l), Highest(l))
	}
	if _, mass := Truncate(Fixed(7), 7, 7); mass != 1 {
		t.Errorf("mass of an atom on both bounds is %v", mass)
	}
	if _, mass := Truncate(Normal{1000, 1}, 0, 10); mass != 0 {
		t.Errorf("mass far away is %v", mass)
	}
}

// TestZipf compares counts with popularity by chi-square, also below an
// exponent of 1.
func TestZipf(t *testing.T) {
	const things, n = 50, 50_000
	for _, s := range []float64{0, 0.5, 1, 1.2, 3} {
		t.Run(fmt.Sprint("s=", s), func(t *testing.T) {
			z, places := NewZipf(things, s), NewIndexed(1, "zipf")
			var counts [things]float64
			for i := range n {
				counts[z.At(places.At(i, 0))]++
			}
			var norm, chi float64
			for k := range things {
				norm += math.Pow(float64(k+1), -s)
			}
			for k := range things {
				want := n * math.Pow(float64(k+1), -s) / norm
				chi += (counts[k] - want) * (counts[k] - want) / want
			}
			// chi-square with 49 degrees of freedom exceeds 85.35 once in a
			// thousand.
			if chi > 85.35 {
				t.Errorf("chi-square is %.1f, want at most 85.35", chi)
			}
		})
	}
	if z := NewZipf(3, 0); z.At(MinP) != 0 || z.At(1-MinP) != 2 {
		t.Error("the ends are not reached")
	}
}

func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if values[a] < values[b] {
			return -1
		}
		return 1
	})
	r := make([]float64, len(values))
	for rank, i := range order {
		r[i] = float64(rank)
	}
	return r
}

func TestCorrelate(t *testing.T) {
	const n = 10_000
	first, second := NewIndexed(1, "first"), NewIndexed(1, "second")
	for _, want := range []float64{-1, -0.6, 0, 0.3, 0.9, 1} {
		var p, tied []float64
		for i := range n {
			u := first.At(i, 0)
			p, tied = append(p, u), append(tied, Correlate(u, second.At(i, 0), want))
		}
		if got := stat.Correlation(ranks(p), ranks(tied), nil); math.Abs(got-want) > 0.03 {
			t.Errorf("rank correlation is %.3f, want %v", got, want)
		}
		if d := ks(tied, Uniform{0, 1}); d > ksLimit(n) {
			t.Errorf("rank correlation %v: KS distance from uniform is %.4f", want, d)
		}
	}
}

// TestIndexed checks that neighbours are uncorrelated in every direction.
func TestIndexed(t *testing.T) {
	const n = 10_000
	a, b, other := NewIndexed(1, "a"), NewIndexed(1, "b"), NewIndexed(2, "a")
	var along, next, down, aspect, seed, turned []float64
	for i := range n {
		along, next = append(along, a.At(i, 0)), append(next, a.At(i+1, 0))
		down, aspect = append(down, a.At(i, 1)), append(aspect, b.At(i, 0))
		seed, turned = append(seed, other.At(i, 0)), append(turned, a.At(0, i))
	}
	for name, values := range map[string][]float64{"next": next, "down": down, "aspect": aspect, "seed": seed, "turned": turned} {
		if r := stat.Correlation(along, values, nil); math.Abs(r) > 4/math.Sqrt(n) {
			t.Errorf("%s: correlation is %.4f", name, r)
		}
		if d := ks(slices.Clone(values), Uniform{0, 1}); d > ksLimit(n) {
			t.Errorf("%s: KS distance is %.4f", name, d)
		}
	}
}

// TestGoldenNumbers: a seed gives the same numbers in every version.
func TestGoldenNumbers(t *testing.T) {
	got := fmt.Sprintf("%d %.17g %.17g", NewStream(1, "arrivals").Uint64(), NewIndexed(1, "turns").At(2, 3), NewIndexed(0, "").At(0, 0))
	const want = "11012347512194390557 0.65668106919146363 0.054310465035372402"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A clone shares nothing with its original, also once both count rounded values.
func TestClone(t *testing.T) {
	t.Parallel()
	for _, n := range []int{5, maxCollected + 1} { // 5: the slice has room
		var c Collector
		c.Add(1) // the least of both
		for range n - 1 {
			c.Add(1.05)
		}
		clone := c.Clone()
		for range n * 3 / 5 {
			clone.Add(1) // on the page of 1.05
		}
		for range n * 3 / 5 {
			c.Add(1.1)
		}
		one, other := c.Sample().Quantile(0.2), clone.Sample().Quantile(0.2)
		if math.Abs(one-1.05) > 1e-4 || math.Abs(other-1) > 1e-4 {
			t.Errorf("%d values: quantiles %g and %g, want 1.05 and 1", n, one, other)
		}
	}
}

// TestDiscreteDrawsByCount compares draws with indexing a list of all values.
func TestDiscreteDrawsByCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counted := make(map[int]int)
		for range rapid.IntRange(0, 60).Draw(t, "values") {
			count := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 500)).Draw(t, "count")
			counted[rapid.IntRange(-100, 100).Draw(t, "value")] += count
		}
		d := NewDiscrete(counted)
		var all []int
		for v := -100; v <= 100; v++ {
			for range counted[v] {
				all = append(all, v)
			}
		}
		if int(d.total()) != len(all) {
			t.Fatalf("%d values, want %d", d.total(), len(all))
		}
		seed := rapid.Uint64().Draw(t, "seed")
		got, numbers := NewStream(seed, "test"), NewStream(seed, "test")
		for range 200 {
			want := 0
			if len(all) > 0 {
				want = all[numbers.Uint64N(uint64(len(all)))]
			}
			if v := d.Draw(got); v != want {
				t.Fatalf("drew %d, want %d", v, want)
			}
		}
		checkDiscrete(t, d, all)
	})
}

func checkDiscrete(t *rapid.T, d Discrete[int], all []int) {
	sum := 0
	for _, v := range all {
		sum += v
	}
	n := float64(max(1, len(all)))
	if got, want := d.Mean(), float64(sum)/n; math.Abs(got-want) > 1e-9 {
		t.Fatalf("mean is %v, want %v", got, want)
	}
	if low, high := d.Bounds(); len(all) > 0 && (low != all[0] || high != all[len(all)-1]) {
		t.Fatalf("bounds are %d and %d, want %d and %d", low, high, all[0], all[len(all)-1])
	}
}

// The order equals the order of the standard library.
func TestSort(t *testing.T) {
	value := rapid.OneOf(
		rapid.Map(rapid.Uint32Range(0, 3000), func(n uint32) float64 { return float64(n) }), rapid.Float64(),
		rapid.SampledFrom([]float64{-1, 0.5, 0, math.Copysign(0, -1), 1 << 32, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64}))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, minRadix - 1, minRadix, 700}).Draw(t, "n")
		values := rapid.SliceOfN(value, n, n).Draw(t, "values")
		want := slices.Clone(values)
		slices.Sort(want)
		if sortValues(values); !slices.Equal(values, want) {
			t.Fatalf("%v, want %v", values, want)
		}
	})
}
