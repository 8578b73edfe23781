package run_test

import (
	"reflect"
	"testing"
	"time"

	"moontide/analyze/run"
)

// Stretches are few where requests are, so that each has some, and never more than
// a picture has room for.
func TestSeriesHasRequestsInItsStretches(t *testing.T) {
	for _, test := range []struct {
		requests int // 20 a second
		step     time.Duration
	}{
		{20, 100 * time.Millisecond}, {100, 200 * time.Millisecond}, {400, 500 * time.Millisecond},
		{2000, 500 * time.Millisecond}, {10_000, 5 * time.Second},
	} {
		s := compute(t, run.Options{Detail: true}, steady(test.requests, 2, 50, 100)...).Detail.Series
		if s.Step != test.step || len(s.Intervals) > 241 {
			t.Errorf("%d requests: %d stretches of %v, want %v", test.requests, len(s.Intervals), s.Step, test.step)
		}
		due := 0
		for _, at := range s.Intervals {
			due += at.Due
		}
		if due != test.requests {
			t.Errorf("%d of %d requests are in a stretch", due, test.requests)
		}
	}
}

// How many records are expected changes nothing but memory, right or wrong.
func TestExpectedChangesNothing(t *testing.T) {
	want := compute(t, run.Options{BlockSize: 16, Detail: true}, sound(50)...)
	for _, expected := range []int{-1, 1, 50, 5000} {
		if got := compute(t, run.Options{BlockSize: 16, Detail: true, Expected: expected}, sound(50)...); !reflect.DeepEqual(want, got) {
			t.Errorf("%d expected: it is another result", expected)
		}
	}
}
