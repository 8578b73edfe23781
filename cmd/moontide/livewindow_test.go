package main

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A quantile is within 2 % (or a microsecond, the unit) of that of the values.
func TestSpreadQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, int64(12*time.Hour)), 1, 50).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		s := newSpread()
		for _, v := range values {
			s.add(time.Duration(v))
		}
		slices.Sort(values)
		rank := 0
		for rank < len(values)-1 && float64(rank+1) < q*float64(len(values)) {
			rank++
		}
		want, got := time.Duration(values[rank]), s.quantile(q)
		if (got - want).Abs() > want/50+time.Microsecond {
			t.Fatalf("the %v quantile of %v is %v, want %v", q, values, got, want)
		}
	})
}

// Durations out of range are clamped.
func TestSpreadRange(t *testing.T) {
	s := newSpread()
	if got := s.quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
	for _, d := range []time.Duration{-time.Hour, 0, 1, 1 << 62} {
		s.add(d)
	}
	if low, high := s.quantile(0.5), s.quantile(1); s.count() != 4 || low != 0 || high < 24*time.Hour {
		t.Errorf("%d values from %v to %v", s.count(), low, high)
	}
}

func TestRecent(t *testing.T) {
	var r recent
	for second := range 25 {
		r.add(time.Duration(second)*time.Second, time.Duration(second)*time.Millisecond)
	}
	for now, want := range map[time.Duration]int{24 * time.Second: 10, 24500 * time.Millisecond: 10, 25 * time.Second: 9, 33 * time.Second: 1, 34 * time.Second: 0} {
		if got := r.until(now).count(); got != want {
			t.Errorf("%d in the window until %v, want %d", got, now, want)
		}
	}
	r.add(14*time.Second, time.Hour) // late by a whole window
	if got := r.until(24 * time.Second); got.count() != 10 || got.quantile(1) > time.Minute {
		t.Errorf("what is out of the window is in it: %d, up to %v", got.count(), got.quantile(1))
	}
	r.add(16*time.Second, time.Hour) // late, and still within it
	if got := r.until(24 * time.Second); got.count() != 11 || got.quantile(1) < time.Minute {
		t.Errorf("a record that came late is missing: %d", got.count())
	}
}

// At the end of each step, arrivals are counted exactly, whatever their number
// and duration.
func TestArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(0, int64(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 1000 * time.Hour}).Draw(t, "most"))), 1, 100).Draw(t, "times")
		slices.Sort(times)
		var a arrivals
		for _, at := range times {
			a.add(time.Duration(at))
		}
		if a.rows != len(times) || a.by(-1) != 0 || a.by(1<<62) != len(times) {
			t.Fatalf("%d rows, %d by the end", a.rows, a.by(1<<62))
		}
		step := time.Duration(rapid.IntRange(0, 4096).Draw(t, "step"))
		want := 0
		for _, at := range times {
			if time.Duration(at) < step*a.step {
				want++
			}
		}
		if got := a.by(step * a.step); got != want {
			t.Fatalf("%d by %v, want %d of %v", got, step*a.step, want, times)
		}
	})
	if got := (&arrivals{}).by(time.Hour); got != 0 {
		t.Errorf("%d rows of nothing", got)
	}
}

func TestPace(t *testing.T) {
	var p pace
	if p.rates() != (progressed{}) {
		t.Error("nothing has a rate")
	}
	p.add(progressed{})
	p.add(progressed{})
	if p.rates() != (progressed{}) {
		t.Error("no time has a rate")
	}
	for i := range 100 {
		at := time.Duration(i+1) * 500 * time.Millisecond
		n := float64(i + 1)
		p.add(progressed{at: at, due: n, sent: 2 * n, done: 3 * n, tokens: n * n})
	}
	// Over the last 10 s, 20 steps: tokens go from 80*80 to 100*100.
	if got, want := p.rates(), (progressed{due: 2, sent: 4, done: 6, tokens: 360}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if len(p.past) > 25 {
		t.Errorf("it remembers %d steps", len(p.past))
	}
}
