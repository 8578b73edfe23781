package enginefile_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/enginefile"
)

// Draws have the covariance of the fit, an entry of a decode table moves those after
// it, and what was not fitted stays.
func TestDraw(t *testing.T) {
	f := fittedFile()
	of := f.Deployment()
	random := rand.New(rand.NewPCG(1, 2))
	const n = 20_000
	var sum, squares [2]float64
	product := 0.0
	for range n {
		d, err := f.Draw(random)
		if err != nil {
			t.Fatal(err)
		}
		table, was := d.DecodeEngine.Costs.Decode, of.DecodeEngine.Costs.Decode
		if d.Engine.Costs.PrefillToken != of.Engine.Costs.PrefillToken || d.Transfer != of.Transfer || table[2].Cost-table[1].Cost != was[2].Cost-was[1].Cost {
			t.Fatalf("a parameter that was not fitted has changed: %+v", d)
		}
		x := math.Log(float64(d.Engine.Costs.Step) / float64(of.Engine.Costs.Step))
		y := math.Log(float64(table[1].Cost) / float64(was[1].Cost))
		for i, v := range []float64{x, y} {
			sum[i], squares[i] = sum[i]+v, squares[i]+v*v
		}
		product += x * y
	}
	for i, want := range []float64{0.01, 0.04} {
		if mean, variance := sum[i]/n, squares[i]/n; math.Abs(mean) > 0.01 || math.Abs(variance-want) > 0.05*want {
			t.Errorf("estimate %d: mean %v, variance %v, want 0 and %v", i, mean, variance, want)
		}
	}
	if covariance := product / n; math.Abs(covariance-0.004) > 0.0005 {
		t.Errorf("covariance %v, want 0.004", covariance)
	}
}

// A parameter that is not identified is drawn within a factor of ten.
func TestDrawOfUnidentified(t *testing.T) {
	f := fittedFile()
	f.Fit.Covariance.Matrix = [][]float64{{100, 0}, {0, 0}}
	random := rand.New(rand.NewPCG(1, 2))
	step := f.Deployment().Engine.Costs.Step
	for range 100 {
		d, err := f.Draw(random)
		if got := d.Engine.Costs.Step; err != nil || got < step/10 || got > step*10 {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if _, err := enginefile.New(engine.Default()).Draw(random); err == nil {
		t.Error("a deployment that was not fitted is drawn")
	}
}

func TestOutside(t *testing.T) {
	f := fittedFile()
	for _, test := range []struct {
		load enginefile.Range
		want []string
	}{
		{enginefile.Range{}, nil},
		{enginefile.Range{ISL: enginefile.Interval{Low: 1, High: 3100}, Concurrency: enginefile.Interval{High: 128}, Running: enginefile.Interval{High: 4000}}, nil},
		{enginefile.Range{Concurrency: enginefile.Interval{High: 256}}, []string{"concurrency 256 is 2 times the largest fitted, 128"}},
		{enginefile.Range{ISL: enginefile.Interval{High: 8100}, OSL: enginefile.Interval{High: 15}}, []string{"ISL 8,100 is 2.7 times the largest fitted, 3,000", "OSL 15 is 0.1 of the smallest fitted, 150"}},
	} {
		if got := f.Outside(test.load); !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.load, got, test.want)
		}
	}
	if got := enginefile.New(engine.Default()).Outside(enginefile.Range{ISL: enginefile.Interval{High: 1 << 30}}); got != nil {
		t.Errorf("nothing was fitted: %q", got)
	}
}
