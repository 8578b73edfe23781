package tree

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace"
	"moontide/trace/stats"
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

// TestAcceptance compares the probability and the extremes with sums over
// every walk, unique length and last block.
func TestAcceptance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, blockSize := source(t)
		tree, err := Fit(trace.FromSlice(rows), Options{BlockSize: blockSize})
		if err != nil {
			t.Fatal(err)
		}
		shape := Shape{PrefixLenMultiplier: multiplier(t, "prefix"), PromptLenMultiplier: multiplier(t, "prompt")}
		m, err := tree.shaped(shape, 1)
		if err != nil {
			t.Fatal(err)
		}
		m.shape.MinISL = rapid.IntRange(0, 60).Draw(t, "min ISL")
		m.shape.MaxISL = rapid.IntRange(max(1, m.shape.MinISL), 200).Draw(t, "max ISL")
		accepted, shortest, longest := 0., math.MaxInt, 0
		everyISL(m, func(p float64, isl int) {
			shortest, longest = min(shortest, isl), max(longest, isl)
			if isl >= m.shape.MinISL && isl <= m.shape.MaxISL {
				accepted += p
			}
		})
		if got := m.acceptance(); math.Abs(got-accepted) > 1e-12 {
			t.Fatalf("accepted %v, want %v", got, accepted)
		}
		if low, high := m.islRange(); low != shortest || high != longest {
			t.Fatalf("extremes %d and %d, want %d and %d", low, high, shortest, longest)
		}
	})
}

// everyISL calls f for each prompt that can be drawn.
func everyISL(m *shapedModel, f func(p float64, isl int)) {
	chances := func(e stats.Discrete[int]) map[int]float64 {
		p := make(map[int]float64)
		for v, n := range counts(e) {
			p[v] = float64(n) / float64(e.Total())
		}
		return p
	}
	var walk func(p float64, at, shared int)
	walk = func(p float64, at, shared int) {
		for way, q := range chances(m.nodes[at].next) {
			switch {
			case way >= 0:
				walk(p*q, way, shared+m.nodes[way].blocks)
			case way == exitEnd:
				f(p*q, shared*m.size.Tokens)
			default:
				for tail, r := range chances(m.tails) {
					if way == exitOneBlock {
						f(p*q*r, tail)
						continue
					}
					for unique, s := range chances(m.unique) {
						f(p*q*r*s, (shared+unique-1)*m.size.Tokens+tail)
					}
				}
			}
		}
	}
	walk(1, 0, 0)
}

func TestDrawErrors(t *testing.T) {
	tree := mustFit(t, example, 4) // prompts of 8 to 20 tokens, outputs of 10 to 30
	rare := make([]trace.Request, 20_001)
	for i := range rare {
		rare[i] = request(0, 4, 1, 1)
	}
	rare[7] = request(0, 8, 1, 1, 2)
	rareTree := mustFit(t, rare, 4)
	for name, c := range map[string]struct {
		tree  *Model
		n     int
		shape Shape
		want  string
	}{
		"no requests":     {tree, 0, Shape{}, "0 requests: at least 1 is needed"},
		"negative prefix": {tree, 1, Shape{PrefixLenMultiplier: -1}, "PrefixLenMultiplier -1 is not a number above 0 and up to 1e+08"},
		"negative copies": {tree, 1, Shape{PrefixRootMultiplier: -1}, "PrefixRootMultiplier -1 is not in 0..100000000"},
		"negative limit":  {tree, 1, Shape{MaxISL: -1}, "MaxISL -1 is not in 0.."},
		"ISL upside down": {tree, 1, Shape{MinISL: 9, MaxISL: 8}, "MinISL 9 is above MaxISL 8"},
		"all too long":    {tree, 1, Shape{MaxISL: 4}, "MaxISL 4 fits no request: the shortest prompt has 5 tokens"},
		"all too short":   {tree, 1, Shape{MinISL: 21}, "MinISL 21 fits no request: the longest prompt has 20 tokens"},
		"none between":    {tree, 1, Shape{MinISL: 7, MaxISL: 7}, "MaxISL 7 with MinISL 7 fits no request"},
		"next to none":    {rareTree, 1, Shape{MinISL: 5}, "MinISL 5 fits only 5e-05 of the requests; at least 0.0001 must fit"},
		"prefix too long": {tree, 1, Shape{PrefixLenMultiplier: 1e8}, "PrefixLenMultiplier 1e+08 makes prompts of up to 1200000008 tokens; at most 100000000 are allowed"},
		"output too long": {tree, 1, Shape{OSLMultiplier: 1e7}, "OSLMultiplier 1e+07 makes outputs of up to 300000000 tokens; at most 100000000 are allowed"},
		"too many ids":    {tree, 1, Shape{PrefixLenMultiplier: 1e8, PrefixRootMultiplier: 1e8, MaxISL: 20}, "PrefixRootMultiplier 100000000 takes 30000000000000000 block ids, 300000000 for each copy"},
		"too slow":        {tree, 1e6, Shape{SpeedupRatio: 1e-9}, "SpeedupRatio 1e-09 makes 1000000 requests take 5.6e+17 ms; at most 1e+15 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := c.tree.Draw(1, c.n, c.shape)
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
