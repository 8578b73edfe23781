package tree

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"moontide/trace"
)

// Limits on the ISL leave the other requests as they are, at their times or, with
// KeepRate, at those of the rows of their numbers.
func TestLimitsOnlyReject(t *testing.T) {
	const n = 4000
	tree := mustFit(t, chats(300), 512)
	all := draw(t, tree, 7, n)
	lengths := make([]int, n)
	for i, r := range all {
		lengths[i] = r.InputLength
	}
	slices.Sort(lengths)
	shape := Shape{MinISL: lengths[n/4], MaxISL: lengths[n*3/4]} // which fit themselves
	var want []trace.Request
	drawn := 0
	for i, r := range all {
		if r.InputLength >= shape.MinISL && r.InputLength <= shape.MaxISL {
			want, drawn = append(want, r), i+1
		}
	}
	for _, shape.KeepRate = range []bool{false, true} {
		d, got := drawShape(t, tree, 7, len(want), shape)
		for i, r := range got {
			w := want[i]
			if shape.KeepRate {
				w.Timestamp = all[i].Timestamp
			}
			if r.Timestamp != w.Timestamp || r.InputLength != w.InputLength || r.OutputLength != w.OutputLength || r.ContextLen != w.ContextLen {
				t.Fatalf("row %d is %+v, want %+v", i, r, w)
			}
		}
		if d.Rejected() != drawn-len(want) {
			t.Errorf("%d rejected, want %d of %d", d.Rejected(), drawn-len(want), drawn)
		}
		if rate, want := d.Rate(), float64(len(got))/got[len(got)-1].Timestamp.Value*1000; math.Abs(rate-want) > 1e-9*want {
			t.Errorf("a rate of %v, want %v", rate, want)
		}
	}
}

func TestDrawErrors(t *testing.T) {
	tree := mustFit(t, example, 4) // prompts of 8 to 20 tokens, outputs of 10 to 30
	for name, c := range map[string]struct {
		n     int
		shape Shape
		want  string
	}{
		"no requests":     {0, Shape{}, "0 requests: at least 1 is needed"},
		"negative prefix": {1, Shape{PrefixLenMultiplier: -1}, "PrefixLenMultiplier -1 is not a number above 0 and up to 1e+08"},
		"negative copies": {1, Shape{PrefixRootMultiplier: -1}, "PrefixRootMultiplier -1 is not in 0..100000000"},
		"negative limit":  {1, Shape{MaxISL: -1}, "MaxISL -1 is not in 0.."},
		"ISL upside down": {1, Shape{MinISL: 9, MaxISL: 8}, "MinISL 9 is above MaxISL 8"},
		"all too long":    {1, Shape{MaxISL: 4}, "MaxISL 4 fits none of 10000 requests drawn, of 5 to 20 tokens"},
		"all too short":   {1, Shape{MinISL: 21}, "MinISL 21 fits none of 10000 requests drawn, of"},
		"none between":    {1, Shape{MinISL: 7, MaxISL: 7}, "MaxISL 7 with MinISL 7 fits none of 10000 requests drawn"},
		"prefix too long": {1, Shape{PrefixLenMultiplier: 1e8}, "PrefixLenMultiplier 1e+08 makes a prompt of 400000008 tokens; at most 100000000 are allowed"},
		"output too long": {1, Shape{OSLMultiplier: 1e7}, "OSLMultiplier 1e+07 makes outputs of up to 300000000 tokens; at most 100000000 are allowed"},
		"too many ids":    {1, Shape{PrefixLenMultiplier: 1e8, PrefixRootMultiplier: 1e8, MaxISL: 20}, "PrefixRootMultiplier 100000000 takes 30000000000000000 block ids, 300000000 for each copy"},
		"too slow":        {1e6, Shape{SpeedupRatio: 1e-9}, "SpeedupRatio 1e-09 makes 1000000 requests take 5.6e+17 ms; at most 1e+15 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := tree.Draw(1, c.n, c.shape)
			var shapeError *ShapeError
			if err == nil || errors.As(err, &shapeError) != (c.n > 0) || d != nil {
				t.Fatalf("got %v and error %v", d, err)
			}
			if !strings.Contains(err.Error(), "drawing by the tree method: "+c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
		})
	}
}
