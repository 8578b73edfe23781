package bench

import (
	"fmt"
	"math"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Load is one load of a calibration. Its requests arrive evenly.
type Load struct {
	Kind Kind `json:"kind"`
	// LockStep is as in [Pace].
	LockStep    bool    `json:"lock_step"`
	Requests    int     `json:"requests"`
	RequestRate float64 `json:"offered_requests_per_s"`
	ISL         int     `json:"isl"`
	OSL         int     `json:"osl"`
	TokenRate   float64 `json:"tokens_per_s_per_stream"`
}

// Kind is the part of the client that a load stresses.
type Kind string

const (
	// Streams loads keep all requests in flight for a while, during which errors
	// and CPU use are measured.
	Streams Kind = "streams"
	// Sends loads start and end short requests continuously.
	Sends Kind = "sends"
)

// Ladder is a sequence of growing loads.
type Ladder []Load

const (
	// hold is the time that all streams of a load are in flight.
	hold = time.Second
	// before is the time of the first arrival; a process that has just started
	// is late.
	before = 100 * time.Millisecond
	// calibrationISL is the prompt length in tokens where it does not matter.
	calibrationISL = 16
)

// streams returns a load of n streams of tokenRate tokens per second each, all
// started within ramp.
func streams(n int, tokenRate float64, ramp time.Duration, lockStep bool) Load {
	return Load{
		Kind: Streams, LockStep: lockStep, Requests: n, RequestRate: float64(n) / ramp.Seconds(), ISL: calibrationISL,
		OSL:       max(3, int(math.Ceil(tokenRate*(ramp+hold).Seconds()))+1),
		TokenRate: tokenRate,
	}
}

// sends returns a load of rate requests per second, with responses of 20 tokens
// in 0.4 s.
func sends(rate float64, isl int, during time.Duration) Load {
	return Load{Kind: Sends, Requests: int(rate * during.Seconds()), RequestRate: rate, ISL: isl, OSL: 20, TokenRate: 50}
}

// Ladders returns the default loads: growing numbers of streams and of tokens per
// second, each evenly phased and in lock-step, growing request rates, and long
// prompts. They take about 40 seconds, and up to 15 more on a busy machine.
func Ladders() []Ladder {
	var ladders []Ladder
	for _, lockStep := range []bool{false, true} {
		ladders = append(ladders,
			Ladder{
				streams(100, 50, 100*time.Millisecond, lockStep),
				streams(1000, 50, 500*time.Millisecond, lockStep),
				streams(5000, 10, 800*time.Millisecond, lockStep),
				streams(10_800, 6.13, 1600*time.Millisecond, lockStep),
			},
			Ladder{
				streams(1000, 100, 500*time.Millisecond, lockStep),
				streams(1000, 150, 500*time.Millisecond, lockStep),
			})
	}
	return append(ladders,
		Ladder{
			sends(250, calibrationISL, time.Second),
			sends(1000, calibrationISL, 1500*time.Millisecond),
			sends(2000, calibrationISL, time.Second),
			sends(4000, calibrationISL, time.Second),
		},
		Ladder{sends(100, 110_000, 1500*time.Millisecond)})
}

// QuickLadders returns light loads of a few seconds, for a smoke test.
func QuickLadders() []Ladder {
	return []Ladder{
		{streams(50, 20, 100*time.Millisecond, false)},
		{streams(50, 20, 100*time.Millisecond, true)},
		{sends(100, calibrationISL, 300*time.Millisecond)},
	}
}

// String describes the load.
func (l Load) String() string {
	if l.Kind == Sends {
		return fmt.Sprintf("%g requests/s of %d tokens", l.RequestRate, l.ISL)
	}
	how := "evenly phased"
	if l.LockStep {
		how = "in lock-step"
	}
	return fmt.Sprintf("%d streams of %g tokens/s %s", l.Requests, l.TokenRate, how)
}

// Pace returns the pace of the endpoint for this load.
func (l Load) Pace() Pace {
	return Pace{TPOT: time.Duration(float64(time.Second) / l.TokenRate), LockStep: l.LockStep}
}

// lasts returns the duration of the load if nothing is late.
func (l Load) lasts() time.Duration {
	return before + time.Duration((float64(l.Requests)/l.RequestRate+float64(l.OSL)/l.TokenRate)*float64(time.Second))
}

// rows returns the load as a trace.
func (l Load) rows() trace.Requests {
	return func(yield func(trace.Request, error) bool) {
		for i := range l.Requests {
			at := trace.Some(ms(before) + 1e3*float64(i)/l.RequestRate)
			if !yield(trace.Request{Timestamp: at, InputLength: l.ISL, OutputLength: l.OSL}, nil) {
				return
			}
		}
	}
}

// events returns the planned tokens per second in the steady phase.
func (l Load) events() float64 {
	if l.Kind == Sends {
		return l.RequestRate * float64(l.OSL)
	}
	return float64(l.Requests) * l.TokenRate
}

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
