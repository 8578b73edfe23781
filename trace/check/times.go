package check

import (
	"math"
	"slices"
	"time"

	"moontide/trace"
)

const (
	// maxTimes bounds the timestamps that are kept for the grid, and the delays.
	maxTimes = 1 << 20
	// burstShare is the least share of rows on the tick of an earlier row for a
	// grid to cause bursts, rather than being only a coarse unit.
	burstShare = 0.1
	// rowsPerTime is the least mean number of rows per distinct timestamp for
	// rows without a grid to come in bursts.
	rowsPerTime = 10
)

// The start of 2002 and of 2100 in Unix seconds: a first timestamp in between, in
// seconds or milliseconds, is a date.
const (
	epochFrom = 1_009_843_200
	epochTo   = 4_102_444_800
)

// times checks timestamps.
type times struct {
	found       *findings
	rows        int // with a timestamp
	line        int // of the last such row
	first, last float64
	low, high   float64
	longestGap  float64
	changes     int       // rows whose timestamp differs from the one above
	kept        []float64 // the first of them; distinct and sorted at the end
	keptRows    int       // with the kept timestamps
	tokens      float64   // ISL and OSL of rows with a timestamp and sane lengths
}

func (c *times) add(line int, r *trace.Request) {
	if !r.Timestamp.Set {
		return
	}
	t := r.Timestamp.Value
	if max(r.InputLength, r.OutputLength) <= longLength {
		c.tokens += float64(r.InputLength + r.OutputLength)
	}
	if len(c.kept) < maxTimes {
		c.keptRows++
	}
	if c.rows++; c.rows == 1 {
		c.first, c.low, c.high = t, t, t
		c.line, c.last, c.kept = line, t, append(c.kept, t)
		return
	}
	if t < c.last {
		c.found.add(TimeBackwards, line, "timestamp %s after %s on line %d", ms(t), ms(c.last), c.line)
	}
	if t != c.last {
		c.changes++
		if len(c.kept) < maxTimes {
			c.kept = append(c.kept, t)
		}
	}
	c.low, c.high = min(c.low, t), max(c.high, t)
	c.longestGap = max(c.longestGap, t-c.last)
	c.line, c.last = line, t
}

// finish checks the trace as a whole and returns its grid, if any.
func (c *times) finish(requests int) *trace.Grid {
	if c.rows == 0 {
		// Without any timestamps, single rows are not at fault.
		c.found.drop(NoTime, SessionNotBegun, TurnWithoutDelay, AfterWithoutDelay)
		if requests > 0 {
			c.found.whole(NoTimestamps, requests, "none of %d rows", requests)
		}
		return nil
	}
	c.origin()
	c.units()
	if c.keptRows < c.rows {
		c.found.part(c.rows-c.keptRows, "the clock and bursts were checked on the first %d of %d timestamps", c.keptRows, c.rows)
	}
	slices.Sort(c.kept)
	c.kept = slices.Compact(c.kept)
	grid, ok := trace.DetectGrid(c.kept)
	if !ok {
		c.bursts()
		return nil
	}
	c.grid(grid)
	return &grid
}

// bursts checks a trace without a grid; a grid needs several ticks to show.
func (c *times) bursts() {
	switch n := len(c.kept); {
	case c.keptRows < rowsPerTime*n:
	case n == 1:
		c.found.whole(TimeBursts, c.keptRows, "all %d timestamps are %s", c.keptRows, ms(c.first))
	default:
		c.found.whole(TimeBursts, c.keptRows, "%d rows have %d distinct timestamps", c.keptRows, n)
	}
}

func (c *times) origin() {
	switch {
	case isDate(c.first):
		c.found.whole(EpochTime, c.rows, "the first timestamp, %s, is %s in seconds", ms(c.first), date(c.first))
	case isDate(c.first / 1000):
		c.found.whole(EpochTime, c.rows, "the first timestamp, %s, is %s in milliseconds", ms(c.first), date(c.first/1000))
	}
}

func isDate(seconds float64) bool { return seconds >= epochFrom && seconds < epochTo }

func date(seconds float64) string {
	return time.Unix(int64(seconds), 0).UTC().Format(time.DateTime) + " UTC"
}

func (c *times) grid(g trace.Grid) {
	bursts := float64(c.keptRows-g.Ticks) >= burstShare*float64(c.keptRows)
	if !bursts && g.Steps+1 == g.Ticks {
		return // one row a step: a constant rate
	}
	f := c.found.whole(TimeGrid, c.keptRows, "%d distinct timestamps for %d rows: %.4g %% of them are within %s ms of one of %d ticks, %s ms apart",
		len(c.kept), c.keptRows, 100*g.Share, ms(g.Jitter), g.Ticks, ms(math.Round(g.Step*1000)/1000))
	if !bursts {
		f.Severity = Note
		f.Message = "Timestamps are on the grid of a coarse clock: arrivals are known only to within one step. Few rows share a step, so a replay adds no bursts."
	}
}
