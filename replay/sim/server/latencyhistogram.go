package server

import (
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"
)

// histogram is a Prometheus histogram of durations. One goroutine may observe
// while others append.
type histogram struct {
	bounds []time.Duration // upper bounds; the last bucket has none
	counts []atomic.Uint64 // one more than bounds
	sum    atomic.Int64    // nanoseconds
}

// newHistogram takes bounds in seconds.
func newHistogram(bounds ...float64) *histogram {
	h := &histogram{counts: make([]atomic.Uint64, len(bounds)+1)}
	for _, b := range bounds {
		h.bounds = append(h.bounds, time.Duration(math.Round(b*float64(time.Second))))
	}
	return h
}

// observe counts d several times.
func (h *histogram) observe(d time.Duration, times int) {
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.counts[i].Add(uint64(times))
	h.sum.Add(int64(d) * int64(times))
}

// appendText appends the histogram in Prometheus' text format.
func (h *histogram) appendText(b []byte, name, labels string) []byte {
	total := uint64(0)
	for i := range h.counts {
		total += h.counts[i].Load()
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = decimal(h.bounds[i].Seconds())
		}
		b = fmt.Appendf(b, "%s_bucket{%s,le=\"%s\"} %d\n", name, labels, bound, total)
	}
	b = fmt.Appendf(b, "%s_sum{%s} %v\n", name, labels, time.Duration(h.sum.Load()).Seconds())
	return fmt.Appendf(b, "%s_count{%s} %d\n", name, labels, total)
}

// decimal formats a bound as the Python client library does: with a point.
func decimal(x float64) string {
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if x == float64(int64(x)) {
		s += ".0"
	}
	return s
}
