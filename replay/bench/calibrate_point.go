package bench

import (
	"fmt"
	"time"

	"moontide/replay"
	"moontide/trace/stats"
)

// Point is the measurement of one load.
type Point struct {
	Load
	Lost int `json:"lost"` // failed requests
	// Streams is the largest number of requests in flight.
	Streams int `json:"streams"`
	// EventRate is the events per second of all streams. SentRate is the
	// requests per second from the first sent to the last.
	EventRate float64 `json:"events_per_s"`
	SentRate  float64 `json:"requests_per_s"`
	// TTFT is the difference between the client's and the server's time of the
	// first token; ITL is that of the gaps between tokens.
	TTFT      Spread `json:"ttft_error"`
	ITL       Spread `json:"itl_error"`
	ClientLag Spread `json:"client_lag"`
	// Client and Server are the resources used while the load was steady.
	Client Work `json:"client"`
	Server Work `json:"server"`
	// Others is the number of CPU cores used by other processes in the steady
	// phase.
	Others float64 `json:"other_cores"`
	// TooMuch is why the load is outside the client's range, "" if it is inside.
	TooMuch string `json:"too_much,omitempty"`

	stamps replay.Stamps
}

// Spread summarizes a distribution in milliseconds.
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

// Work holds the resources that a process used.
type Work struct {
	Cores    float64 `json:"cores"`            // CPU time / time
	PerEvent float64 `json:"cpu_us_per_event"` // CPU time in microseconds
	MemoryMB float64 `json:"memory_mb"`        // largest resident memory
}

// errorsOf compares the client's times of a response with the server's. first
// is the arrival of the first token, gaps are the times between tokens, and
// written holds the server's write time of each token, on the same clock in
// nanoseconds. ok is false if the token counts differ.
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

// minEventShare is the minimum share of the planned events for a load to be
// within range.
const minEventShare = 0.95

// judge returns why a load is outside the client's range, or "".
func judge(p Point) string {
	limit := ms(Limit)
	switch {
	case p.Lost > 0:
		return fmt.Sprintf("%d requests were lost", p.Lost)
	case p.Kind == Streams && p.Streams < p.Requests:
		return fmt.Sprintf("only %d streams were in flight at once", p.Streams)
	case p.Kind == Streams && p.EventRate < minEventShare*p.events():
		return fmt.Sprintf("the endpoint wrote %.0f events/s of %.0f", p.EventRate, p.events())
	case p.TTFT.P99MS > limit:
		return fmt.Sprintf("TTFT error p99 %.3f ms", p.TTFT.P99MS)
	case p.ITL.P99MS > limit:
		return fmt.Sprintf("ITL error p99 %.3f ms", p.ITL.P99MS)
	case p.Kind == Sends && p.ClientLag.P99MS > limit:
		return fmt.Sprintf("client lag p99 %.3f ms", p.ClientLag.P99MS)
	}
	return ""
}
