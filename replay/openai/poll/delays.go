package poll

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Delays is a histogram of nonnegative durations. Its buckets are an eighth of a
// power of two wide, so quantiles are at most 12.5 % too large. Unlike most
// histograms it is lock-free and can be subtracted.
type Delays struct {
	counts [delayBuckets]uint64
}

const (
	delaySteps   = 8               // buckets per power of two
	delayBuckets = 40 * delaySteps // covers more than an hour
)

// delayBucket returns the index of the bucket of d.
func delayBucket(d time.Duration) int {
	ns := uint64(d)
	if ns < delaySteps {
		return int(ns)
	}
	power := bits.Len64(ns) - 4 // ns>>power is in [8, 16)
	return min(power*delaySteps+int(ns>>power), delayBuckets-1)
}

// delayTop returns the largest delay in a bucket.
func delayTop(bucket int) time.Duration {
	if bucket < 2*delaySteps {
		return time.Duration(bucket)
	}
	power := bucket/delaySteps - 1
	return time.Duration(uint64(bucket%delaySteps+delaySteps+1)<<power - 1)
}

// Count returns the number of durations.
func (d Delays) Count() (n uint64) {
	for _, c := range d.counts {
		n += c
	}
	return n
}

// Quantile returns the q-quantile, or 0 if d is empty. Quantile(1) is the maximum.
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

// Since returns the durations added since an earlier snapshot.
func (d Delays) Since(before Delays) (added Delays) {
	for i := range d.counts {
		added.counts[i] = d.counts[i] - before.counts[i]
	}
	return added
}

// Counter collects Delays. It is safe for concurrent use. The zero Counter is
// empty.
type Counter [delayBuckets]atomic.Uint64

// Add counts d n times; d must not be negative.
func (c *Counter) Add(d time.Duration, n uint64) { c[delayBucket(d)].Add(n) }

// Snapshot returns the durations counted so far.
func (c *Counter) Snapshot() (d Delays) {
	for i := range c {
		d.counts[i] = c[i].Load()
	}
	return d
}
