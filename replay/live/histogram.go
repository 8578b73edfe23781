package live

import (
	"math/bits"
	"strconv"
	"time"
)

// A histogram has four buckets per power of two, from 64 us to 268 s, so that a
// quantile is off by 12 % at most, and one for larger values. Finding the bucket
// takes no search.
const (
	firstBits  = 6 // the first bucket ends at 1<<firstBits us
	octaves    = 22
	perOctave  = 4
	boundCount = 1 + octaves*perOctave
)

type histogram struct {
	counts [boundCount + 1]uint64
	sum    time.Duration
}

func (h *histogram) observe(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.sum += d
}

// bucketOf returns the first bucket whose upper bound is at least d.
func bucketOf(d time.Duration) int {
	if d <= time.Microsecond<<firstBits {
		return 0
	}
	us := uint64((d - 1) / time.Microsecond)
	n := bits.Len64(us) // at least firstBits+1
	return min(1+(n-firstBits-1)*perOctave+int(us>>(n-3))&(perOctave-1), boundCount)
}

// upperBound returns the largest duration of a bucket other than the last.
func upperBound(bucket int) time.Duration {
	if bucket == 0 {
		return time.Microsecond << firstBits
	}
	octave, part := (bucket-1)/perOctave, (bucket-1)%perOctave
	return time.Microsecond * time.Duration(perOctave+part+1) << (firstBits - 2 + octave)
}

func (h *histogram) count() (n uint64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// quantile returns the upper bound of the bucket of the quantile, 0 without values.
func (h *histogram) quantile(q float64) time.Duration {
	rank, sum := q*float64(h.count()), uint64(0)
	for i, c := range h.counts[:boundCount] {
		if sum += c; sum > 0 && float64(sum) >= rank {
			return upperBound(i)
		}
	}
	return upperBound(boundCount - 1)
}

// appendText appends the histogram in Prometheus' text format.
func (h *histogram) appendText(b []byte, name, labels string) []byte {
	total := uint64(0)
	line := func(suffix, label string, value string) {
		b = append(append(append(append(append(b, name...), suffix...), '{'), labels...), label...)
		b = append(append(append(b, "} "...), value...), '\n')
	}
	for i, c := range h.counts {
		total += c
		bound := "+Inf"
		if i < boundCount {
			bound = strconv.FormatFloat(upperBound(i).Seconds(), 'f', -1, 64)
		}
		line("_bucket", `,le="`+bound+`"`, strconv.FormatUint(total, 10))
	}
	line("_sum", "", strconv.FormatFloat(h.sum.Seconds(), 'f', -1, 64))
	line("_count", "", strconv.FormatUint(total, 10))
	return b
}
