package trace

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// onGrid draws rows on the ticks of a grid, some early or late within the
// tolerance, with a few strays and some rows that only have a delay.
func onGrid(t *rapid.T, g Grid) []Request {
	var rows []Request
	at := 0.0
	for i := range rapid.IntRange(1, 60).Draw(t, "rows") {
		r := Request{InputLength: i + 1}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			r.Delay, r.SessionID = Some(7.0), "s"
		case 1:
			at += rapid.Float64Range(0, g.Step).Draw(t, "stray")
			r.Timestamp = Some(at)
		default:
			tick := g.Tick(at + g.Step*float64(rapid.IntRange(0, 2).Draw(t, "steps")))
			at = max(at, tick+rapid.Float64Range(-0.01, 0.01).Draw(t, "jitter")*g.Step)
			r.Timestamp = Some(at)
		}
		rows = append(rows, r)
	}
	return rows
}

func TestSpreadKeepsOrderAndSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Grid{Step: 3000, Offset: rapid.Float64Range(0, 2999).Draw(t, "offset")}
		rows := onGrid(t, g)
		seed := rapid.Uint64().Draw(t, "seed")
		got := collect(t, InOrder(spread(FromSlice(slices.Clone(rows)), g, seed)))
		if !slices.Equal(lengths(got), lengths(rows)) {
			t.Fatalf("rows %v became %v", lengths(rows), lengths(got))
		}
		for i, r := range got {
			was := rows[i]
			if r.Timestamp.Set != was.Timestamp.Set || r.Delay != was.Delay {
				t.Fatalf("row %d was %+v and is %+v", i, was, r)
			}
			if !r.Timestamp.Set {
				continue
			}
			if d := math.Abs(r.Timestamp.Value - was.Timestamp.Value); d > 1.03*g.Step || r.Timestamp.Value < 0 {
				t.Fatalf("row %d moved from %v to %v", i, was.Timestamp.Value, r.Timestamp.Value)
			}
			// A slightly early time belongs to the next tick.
			step := math.Floor((was.Timestamp.Value-g.Offset)/g.Step + 2*gridTolerance)
			if from := g.Offset + step*g.Step; r.Timestamp.Value < min(from, max(from, 0)) || r.Timestamp.Value > from+g.Step {
				t.Fatalf("row %d of the step from %v is at %v", i, from, r.Timestamp.Value)
			}
		}
		if d := cmp.Diff(got, collect(t, spread(FromSlice(slices.Clone(rows)), g, seed))); d != "" {
			t.Fatal("the same seed gave other times")
		}
	})
}

// Spread rows are no longer on a grid, and are as irregular as independent
// arrivals: gaps of a Poisson process have a CV of 1.
func TestSpreadMakesPoissonOfBursts(t *testing.T) {
	const n, step, rate = 20_000, 3000.0, 4e-3
	random := rand.New(rand.NewPCG(1, 1))
	var rows []Request
	var times []float64
	at := 0.0
	for range n {
		at += random.ExpFloat64() / rate
		rows = append(rows, Request{Timestamp: Some(math.Floor(at/step) * step)})
		times = append(times, rows[len(rows)-1].Timestamp.Value)
	}
	var d GridDetector
	for _, r := range append(slices.Clone(rows), Request{Delay: Some(1.0)}) {
		d.Add(r)
	}
	g, rowsPerTick, ok := d.Grid()
	if want, found := DetectGrid(times); !ok || !found || g != want || g.Step != step || math.Abs(rowsPerTick*float64(g.Ticks)-n) > 1e-6 {
		t.Fatalf("grid %+v, %v, %v rows a tick", g, ok, rowsPerTick)
	}
	got := collect(t, spread(FromSlice(rows), g, 1))
	var times2 []float64
	for _, r := range got {
		times2 = append(times2, r.Timestamp.Value)
	}
	if g, ok := DetectGrid(times2); ok {
		t.Errorf("spread arrivals lie on %+v", g)
	}
	if _, cv := meanGap(got); math.Abs(cv-1) > 0.03 {
		t.Errorf("CV %v of the gaps, want 1", cv)
	}
	if reflect.DeepEqual(got, collect(t, spread(FromSlice(rows), g, 2))) {
		t.Error("another seed gave the same times")
	}
}

func TestRamp(t *testing.T) {
	// A rate of 1 per ms: after t ms of a ramp of 8 ms, t*t/16 have come.
	ramp := func(rows []Request, full time.Duration) Requests {
		return (Pacing{Ramp: full * time.Millisecond}).Apply(FromSlice(rows))
	}
	got := collect(t, ramp(at(0, 1, 2, 4, 5, 6, 100), 8))
	want := []float64{0, 4, math.Sqrt(32), 8, 9, 10, 104}
	for i, r := range got {
		if r.Timestamp.Value != want[i] {
			t.Errorf("row %d arrives at %v, want %v", i, r.Timestamp.Value, want[i])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		rows, length := anyTrace(t), rapid.IntRange(1, 1e5).Draw(t, "full")
		full := float64(length)
		got := collect(t, InOrder(change(FromSlice(rows), (&Pacing{Ramp: time.Duration(length) * time.Millisecond}).scale)))
		for i, r := range got {
			if r.Delay != rows[i].Delay || r.Timestamp.Set != rows[i].Timestamp.Set {
				t.Fatalf("row %d was %+v and is %+v", i, rows[i], r)
			}
			// The inverse: the elapsed time of the original trace.
			s, was := r.Timestamp.Value, rows[i].Timestamp.Value
			if s < full {
				s = s * s / (2 * full)
			} else {
				s -= full / 2
			}
			if math.Abs(s-was) > 1e-9*(1+full+was) {
				t.Fatalf("at %v of the ramp, %v has passed, want %v", r.Timestamp.Value, s, was)
			}
		}
	})
}
