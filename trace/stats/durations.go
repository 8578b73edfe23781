package stats

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Durations is a histogram of durations from 0 to a day, exact to 0.1 % or a microsecond.
// It takes 230 KB. Durations out of range count as the nearest in range. Adding takes
// about 10 ns. It is not safe for concurrent use.
type Durations struct {
	us  *hdrhistogram.Histogram // in microseconds
	sum time.Duration
}

const longestDuration = 24 * time.Hour

// NewDurations returns an empty histogram.
func NewDurations() *Durations {
	return &Durations{us: hdrhistogram.New(1, longestDuration.Microseconds(), 3)}
}

// Add adds a duration n times.
func (d *Durations) Add(value time.Duration, n int) {
	value = min(max(value, 0), longestDuration)
	d.us.RecordValues(value.Round(time.Microsecond).Microseconds(), int64(n))
	d.sum += value * time.Duration(n)
}

// Reset removes all durations.
func (d *Durations) Reset() {
	d.us.Reset()
	d.sum = 0
}

// Count returns the number of durations, and Sum their sum.
func (d *Durations) Count() int         { return int(d.us.TotalCount()) }
func (d *Durations) Sum() time.Duration { return d.sum }

// Quantile returns a quantile, 0 without durations.
func (d *Durations) Quantile(p float64) time.Duration {
	return time.Duration(d.us.ValueAtQuantile(100*p)) * time.Microsecond
}

// Cumulative returns how many durations do not exceed each of the bounds, which ascend.
func (d *Durations) Cumulative(bounds []time.Duration) []int {
	counts, n, bars := make([]int, len(bounds)), 0, d.us.Distribution()
	for i, bound := range bounds {
		for ; len(bars) > 0 && bars[0].From <= bound.Microseconds(); bars = bars[1:] {
			n += int(bars[0].Count)
		}
		counts[i] = n
	}
	return counts
}
