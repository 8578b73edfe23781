package poll

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Delays is a histogram of durations of 0 or more. Its buckets are an eighth of a
// power of two wide, so quantiles are at most 12.5 % too large. Unlike a general
// histogram it is counted without a lock while others read it, and can be
// subtracted.
type Delays struct {
	counts [delayBuckets]uint64
}

const (
	delaySteps   = 8               // buckets to a power of two
	delayBuckets = 40 * delaySteps // up to more than an hour
)

// delayBucket is the index of the bucket of d.
func delayBucket(d time.Duration) int {
	ns := uint64(d)
	if ns < delaySteps {
		return int(ns)
	}
	power := bits.Len64(ns) - 4 // ns>>power is in [8, 16)
	return min(power*delaySteps+int(ns>>power), delayBuckets-1)
}

// delayTop is the largest delay of a bucket.
func delayTop(bucket int) time.Duration {
	if bucket < 2*delaySteps {
		return time.Duration(bucket)
	}
	power := bucket/delaySteps - 1
	return time.Duration(uint64(bucket%delaySteps+delaySteps+1)<<power - 1)
}

// Count is the number of durations.
func (d Delays) Count() (n uint64) {
	for _, c := range d.counts {
		n += c
	}
	return n
}

// Quantile returns the duration that a fraction q does not exceed, 0 if there are
// none. Quantile(1) is the largest.
func (d Delays) Quantile(q float64) time.Duration {
	total := d.Count()
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(total)))
	var seen uint64
	for i, c := range d.counts {
		if seen += c; c > 0 && seen >= rank {
			return delayTop(i)
		}
	}
	return 0
}

// Since is what was added since an earlier snapshot.
func (d Delays) Since(before Delays) (added Delays) {
	for i := range d.counts {
		added.counts[i] = d.counts[i] - before.counts[i]
	}
	return added
}

// Counter counts Delays. Any number of goroutines may use it at once. The zero
// Counter is empty.
type Counter [delayBuckets]atomic.Uint64

// Add counts d, 0 or more, n times.
func (c *Counter) Add(d time.Duration, n uint64) { c[delayBucket(d)].Add(n) }

// Snapshot returns what was counted so far.
func (c *Counter) Snapshot() (d Delays) {
	for i := range c {
		d.counts[i] = c[i].Load()
	}
	return d
}
