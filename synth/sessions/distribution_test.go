package sessions

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func source() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func samplesOf(values ...float64) []sample {
	var s []sample
	for _, v := range values {
		s = append(s, sample{[]float64{v}, 1})
	}
	return s
}

func TestBinsOf(t *testing.T) {
	type b struct {
		count     int
		low, high float64
	}
	for _, c := range []struct {
		name   string
		values []float64
		want   []b
	}{
		{"one bin", []float64{1, 2, 3, 4, 5}, []b{{5, -.5, 6.5}}},
		{"two bins", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, []b{{8, -.5, 8.5}, {5, 8.5, 14.5}}},
		{"a small rest joins the last bin", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []b{{10, -.5, 11.5}}},
		{"common value", []float64{1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 8, 9, 10, 11}, []b{{5, -.5, 5.5}, {8, 6, 6}, {5, 6.5, 12.5}}},
		{"few below a common value", []float64{1, 6, 6, 6, 6, 6, 6, 6, 6}, []b{{9, 6, 6}}},
		{"few above a common value", []float64{6, 6, 6, 6, 6, 6, 6, 6, 7}, []b{{9, 6, 6}}},
		{"equal values stay together", []float64{1, 2, 3, 4, 5, 6, 7, 8, 8, 8}, []b{{10, -.5, 9.5}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := samplesOf(c.values...)
			var got []b
			for _, x := range binsOf(sortedPoints(s, indices(len(s)), 0), usualBinSize, valueRange{math.Inf(-1), math.Inf(1), true}) {
				got = append(got, b{int(x[0]), x[2], x[len(x)/5+2]})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// For any values, each counts once, bins do not overlap and none is small.
func TestBinsCoverEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 40), func(i int) float64 { return float64(i) }), minRequests, 200).Draw(t, "values")
		s := samplesOf(values...)
		n, weight, last := 0, 0.0, math.Inf(-1)
		for _, b := range binsOf(sortedPoints(s, indices(len(s)), 0), usualBinSize, valueRange{math.Inf(-1), math.Inf(1), true}) {
			low, high, mean := b[2], b[2], b[2]
			if len(b) == 5 {
				high, mean = b[3], b[4]
			}
			if b[0] < minRequests || low < last || mean < low || mean > high {
				t.Fatalf("bin %v after %v", b, last)
			}
			n, weight, last = n+int(b[0]), weight+b[1], high
		}
		if n != len(values) || math.Abs(weight-float64(n)) > 1e-3 {
			t.Fatalf("%d values of weight %v, want %d", n, weight, len(values))
		}
	})
}

// Bounds are not values of requests: they are between values or, at the ends,
// further out.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"between neighbours", between(5, 6, true), 5.5},
		{"between whole numbers", between(1234, 2345, true), 1999.5},
		{"between any numbers", between(1.234, 1.345, false), 1.3},
		{"below", roundBelow([]float64{20147, 20150, 20900, 21100, 21900, 30000}, true), 19999.5},
		{"below one digit", roundBelow([]float64{3, 3, 3, 3, 3, 9}, true), 2.5},
		{"above", roundAbove([]float64{1, 83000, 90123, 92000, 93000, 94567}, true), 100000.5},
		{"above a limit that many reach", roundAbove([]float64{1, 2000, 2000, 2000, 2000, 2000}, true), 2000.5},
		{"reach of an even spread", (&rawBin{low: 0, mean: 50, variance: 100 * 100 / 12.}).highEnd(true), 100.5},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// Shares that rest on fewer than five requests are pooled over all such leaves,
// or 0.
func TestRareSharesArePooled(t *testing.T) {
	c := choice{decisionTree: decisionTree{[]split{{0, 1, -1, 1}, {0, 2, -2, -3}}}, Leaves: make([]shares, 3)}
	var samples []sample
	happen := func(leaf float64, thing, times int) {
		for range times {
			s := sample{[]float64{leaf, 0, 0}, 1}
			if thing >= 0 {
				s.values[1+thing] = 1
			}
			samples = append(samples, s)
		}
	}
	for leaf, times := range [][3]int{{10, 2, 88}, {50, 4, 46}, {97, 0, 3}} {
		happen(float64(leaf), 0, times[0])
		happen(float64(leaf), 1, times[1])
		happen(float64(leaf), none, times[2])
	}
	for i := range c.Leaves {
		c.Leaves[i] = make(shares, 3)
	}
	c.fitShares(samples, 1)
	rare := 6. / 300
	for i, want := range [][2]float64{{.1, rare}, {.5, rare}, {1 / (1 + rare), rare / (1 + rare)}} {
		got := c.Leaves[i][1:]
		// The third leaf has three requests to which nothing happened: too few.
		if i == 2 {
			if math.Abs(got[0]+got[1]-1) > 1e-5 {
				t.Errorf("leaf 2 has shares %v, want a sum of 1", got)
			}
			continue
		}
		if math.Abs(got[0]-want[0]) > .02 || math.Abs(got[1]-want[1]) > .001 {
			t.Errorf("leaf %d has shares %v, want %v", i, got, want)
		}
	}
}

// Draws from a bin keep its bounds and its mean.
func TestHistogramKeepsTheMean(t *testing.T) {
	h := newHistogram([]bin{{5, 1, 10, 110, 30}, {15, 3, 200}})
	random := source()
	d := newStratified(32)
	const n = 100_000
	sum, low, common := 0.0, 0.0, 0
	for range n {
		x := h.draw(d.draw(random), random)
		switch {
		case x == 200:
			common++
		case x < 10 || x > 110:
			t.Fatalf("%v is outside of the bin", x)
		default:
			low += x
		}
		sum += x
	}
	if common != n*3/4 {
		t.Errorf("the common value came %d times of %d, want exactly three quarters when stratified", common, n)
	}
	if mean := low / float64(n-common); math.Abs(mean-30) > .5 {
		t.Errorf("the mean of the bin is %v, want 30", mean)
	}
}

func TestStratifiedIsUniform(t *testing.T) {
	random := source()
	const strata = 32
	d := newStratified(strata)
	before := 0.0
	product := 0.0
	for range 2000 {
		var seen [strata]bool
		for range strata {
			u := d.draw(random)
			part := int(u * strata)
			if seen[part] {
				t.Fatalf("stratum %d is drawn twice in one round", part)
			}
			seen[part] = true
			product += (u - .5) * (before - .5)
			before = u
		}
	}
	if r := product / (2000 * strata) * 12; math.Abs(r) > .05 {
		t.Errorf("neighbours have a correlation of %v", r)
	}
}

// Values depend on the known ones that matter, and on each other.
func TestJointKeepsDependence(t *testing.T) {
	random := source()
	var samples []sample
	for range 4000 {
		x, noise := random.Float64(), random.Float64()
		v := 10 * random.Float64()
		if x > .7 {
			v += 100
		}
		samples = append(samples, sample{[]float64{x, noise, v, 3 * v}, 1})
	}
	j := fitJoint(samples, 2)
	for _, c := range j[0].Splits[:1] {
		if c[0] != 0 || math.Abs(c[1]-.7) > .01 {
			t.Errorf("the first split is %+v, want dimension 0 at 0.7", c)
		}
	}
	for i := range j {
		j[i].prepare()
	}
	s := newJointSampler(j, random, math.Inf(1))
	off := 0.0
	for i := range 1000 {
		x := float64(i) / 1000
		v := s.draw(x, .5)
		if high := v[0] > 50; high != (x > .7) && math.Abs(x-.7) > .01 {
			t.Fatalf("%v for %v", v, x)
		}
		off += math.Abs(v[1]-3*v[0]) / 1000
	}
	if off > 4 {
		t.Errorf("the second value is %v off on average", off)
	}
}

// Four turns were observed for 10, 20, 30 and 40; the second was continued after
// 5 and the last after 25.
func TestKaplanMeier(t *testing.T) {
	inf := math.Inf(1)
	observations := []observation{
		{next: none, gap: inf, left: 10},
		{next: 1, gap: 5, left: 20},
		{next: none, gap: inf, left: 30},
		{next: 1, gap: 25, left: 40},
	}
	weights := make([]float64, 4)
	kaplanMeier(observations, indices(4), weights)
	// After 5, 1 of 4; after 25, 1 of the 2 still seen of the remaining 3/4.
	if want := []float64{0, 1, 0, 1.5}; !slices.Equal(weights, want) {
		t.Errorf("weights %v, want %v", weights, want)
	}
}

func TestTickOf(t *testing.T) {
	random := source()
	every := func(step, jitter float64, of int) (at []float64) {
		now := 0.0
		for range 200 {
			at = append(at, now+math.Round(jitter*(random.Float64()-.5)))
			now += step * float64(1+random.IntN(of))
		}
		return at
	}
	var real []float64
	for now := 0.0; len(real) < 200; now += random.ExpFloat64() * 500 {
		real = append(real, now)
	}
	for _, c := range []struct {
		name string
		at   []float64
		want float64
	}{
		{"3 s", every(3000, 2, 1), 3000},
		{"3 s, some without", every(3000, 0, 3), 3000},
		{"any step", every(1234, 0, 2), 1234},
		{"whole ms", every(1, 0, 700), 1},
		{"none", real, 0},
	} {
		if got := tickOf(c.at); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
