package bench

import (
	"fmt"
	"time"

	"moontide/replay"
	"moontide/trace/stats"
)

// Point is what was measured under one load.
type Point struct {
	Load
	Lost int `json:"lost"` // requests that did not end well
	// Streams is how many requests were in flight at once, at most.
	Streams int `json:"streams"`
	// EventRate and SentRate are what was reached, a second: the events of all
	// streams together, and requests from the first sent to the last.
	EventRate float64 `json:"events_per_s"`
	SentRate  float64 `json:"requests_per_s"`
	// TTFT is by how much the client's instant of a first token differs from
	// the server's, which is the error of the TTFT, and ITL by how much a gap
	// between two tokens differs.
	TTFT      Spread `json:"ttft_error"`
	ITL       Spread `json:"itl_error"`
	ClientLag Spread `json:"client_lag"`
	// The work of client and server while the load was steady.
	Client Work `json:"client"`
	Server Work `json:"server"`
	// Others is how many processors the rest of the machine kept busy then.
	Others float64 `json:"other_cores"`
	// TooMuch is why the load is not within the client's range, "" if it is.
	TooMuch string `json:"too_much,omitempty"`

	stamps replay.Stamps
}

// Spread is a distribution in milliseconds.
type Spread struct {
	Count    int     `json:"count"`
	MedianMS float64 `json:"median_ms"`
	P99MS    float64 `json:"p99_ms"`
	MaxMS    float64 `json:"max_ms"`
}

func spreadOf(values []float64) Spread {
	d := stats.Of(values)
	return Spread{d.Count, d.Quantile(0.5), d.Quantile(0.99), d.Max}
}

// Work is what a process took.
type Work struct {
	Cores    float64 `json:"cores"`            // processor time over time
	PerEvent float64 `json:"cpu_us_per_event"` // microseconds of processor time
	MemoryMB float64 `json:"memory_mb"`        // resident, at most
}

// errorsOf compares what the client recorded of an answer with what the server
// said of it: first is when the first token arrived and gaps what lay between
// the tokens, written is when the server wrote each, on the same clock in
// nanoseconds. ok is false where there are not as many of the one as of the
// other.
func errorsOf(first int64, gaps []time.Duration, written []int64) (ttft time.Duration, itl []time.Duration, ok bool) {
	if len(written) != len(gaps)+1 {
		return 0, nil, false
	}
	ttft = time.Duration(first - written[0])
	itl = make([]time.Duration, len(gaps))
	for i, gap := range gaps {
		itl[i] = gap - time.Duration(written[i+1]-written[i])
	}
	return ttft, itl, true
}

// fallBehind is the part of the tokens that were asked for that must have come,
// for the load to be what it says.
const fallBehind = 0.95

// judge says why a load is too much, "" where it is not.
func judge(p Point) string {
	limit := ms(Limit)
	switch {
	case p.Lost > 0:
		return fmt.Sprintf("%d requests were lost", p.Lost)
	case p.Kind == Streams && p.Streams < p.Requests:
		return fmt.Sprintf("only %d streams were in flight at once", p.Streams)
	case p.Kind == Streams && p.EventRate < fallBehind*p.events():
		return fmt.Sprintf("the endpoint wrote %.0f events/s of %.0f", p.EventRate, p.events())
	case p.TTFT.P99MS > limit:
		return fmt.Sprintf("the error of the TTFT at p99 is %.3f ms", p.TTFT.P99MS)
	case p.ITL.P99MS > limit:
		return fmt.Sprintf("the error of the ITL at p99 is %.3f ms", p.ITL.P99MS)
	case p.Kind == Sends && p.ClientLag.P99MS > limit:
		return fmt.Sprintf("client lag at p99 is %.3f ms", p.ClientLag.P99MS)
	}
	return ""
}
