package stats_test

import (
	"testing"

	"moontide/trace/stats"
)

func TestSumCancels(t *testing.T) {
	var s stats.Sum
	for _, sign := range []float64{1, 1, -1, -1} {
		for i := range 1000 {
			s.Add(sign / float64(i+1))
		}
		s.Add(sign * 1e15)
	}
	if got := s.Value(); got < -1e-9 || got > 1e-9 {
		t.Errorf("%v is left after subtracting everything that was added", got)
	}
}
