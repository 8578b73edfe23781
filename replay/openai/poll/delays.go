package poll

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Delays is a distribution of how much later than the kernel a loop had what
// it read: the time from a read's last segment to the read. It is a histogram
// whose buckets are an eighth of a power of two wide, so that what it returns
// is at most 12.5 % above the truth.
type Delays struct {
	counts [delayBuckets]uint64
}

const (
	delaySteps   = 8               // buckets to a power of two
	delayBuckets = 40 * delaySteps // up to more than an hour
)

// delayBucket is the index of the bucket that d, 0 or more, falls into.
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

// Count is the number of reads.
func (d Delays) Count() (n uint64) {
	for _, c := range d.counts {
		n += c
	}
	return n
}

// Quantile returns the delay that a fraction q of all reads did not exceed, 0
// where there were none. Quantile(1) is the largest.
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

// Since is what was added since an earlier look.
func (d Delays) Since(before Delays) (added Delays) {
	for i := range d.counts {
		added.counts[i] = d.counts[i] - before.counts[i]
	}
	return added
}

// Counter is a Delays that is filled while others look at it. The zero Counter
// is empty. It may be used by many goroutines.
type Counter [delayBuckets]atomic.Uint64

// Add counts n times a delay of 0 or more.
func (c *Counter) Add(d time.Duration, n uint64) { c[delayBucket(d)].Add(n) }

// Snapshot is what was counted so far.
func (c *Counter) Snapshot() (d Delays) {
	for i := range c {
		d.counts[i] = c[i].Load()
	}
	return d
}
