package measure

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Latency is a kind of duration of requests or of gaps between token chunks.
type Latency uint8

// The latencies, defined in [Result].
const (
	NoLatency Latency = iota
	TTFT
	TTFVT
	TTST
	TPOT
	ITL
	ITLPerToken
	E2EL
	TTFTFromSchedule
	E2ELFromSchedule
	ScheduleLag
	ClientLag
	ConnectTime
	QueueTime
	FirstStampError
	MaxStampError
	latencyCount
)

// Latencies lists the latencies valid in flags and objectives, in report order.
var Latencies = []Latency{TTFT, TTFVT, TTST, TPOT, ITL, ITLPerToken, E2EL, TTFTFromSchedule, E2ELFromSchedule, ScheduleLag, ClientLag, ConnectTime, QueueTime}

// VLLMLatencies lists the latencies that vLLM's benchmark also reports.
var VLLMLatencies = []Latency{TTFT, TPOT, ITL, E2EL}

// ScheduleLatencies lists the latencies that compare the run with its schedule.
var ScheduleLatencies = []Latency{TTFTFromSchedule, E2ELFromSchedule, ScheduleLag, ClientLag, QueueTime}

// latencySpec defines a latency.
type latencySpec struct {
	key, title, label string
	column            string // in published tables, if different from label
	oldKey            string // accepted in input: of an older version or of other tools
	ofSent            bool   // it covers all requests that were sent, not only completed ones
	of                func(q *Request) (d time.Duration, ok bool)
}

var latencies = [latencyCount]latencySpec{
	TTFT: {
		key: "ttft", title: "Time to First Token", label: "TTFT",
		of: func(q *Request) (time.Duration, bool) { return q.First - q.Sent, q.Answered },
	},
	TTFVT: {
		key: "ttfvt", title: "Time to First Visible Token", label: "TTFVT", oldKey: "ttfo",
		of: func(q *Request) (time.Duration, bool) { return q.Visible - q.Sent, q.Answered && q.HasVisible },
	},
	TTST: {
		key: "ttst", title: "Time to Second Token", label: "TTST",
		of: func(q *Request) (time.Duration, bool) { return q.SecondGap, q.Answered && q.HasGaps },
	},
	TPOT: { // per output token after the first: see Latency.Of
		key: "tpot", title: "Time per Output Token (excl. 1st token)", label: "TPOT",
		of: func(q *Request) (time.Duration, bool) { return q.Last - q.First, q.Answered && q.Output > 1 },
	},
	ITL: { // per request: its longest gap
		key: "itl", title: "Inter-token Latency", label: "ITL",
		of: func(q *Request) (time.Duration, bool) { return q.MaxGap, q.Answered && q.HasGaps },
	},
	ITLPerToken: { // per request: its longest gap divided by the tokens of the chunk
		key: "itl_per_token", title: "Inter-token Latency per Token", label: "ITL per token",
		of: func(q *Request) (time.Duration, bool) { return q.MaxTokenGap, q.Answered && q.HasGaps },
	},
	E2EL: {
		key: "e2el", title: "End-to-end Latency", label: "E2EL", column: "E2E Latency",
		of: func(q *Request) (time.Duration, bool) { return q.Last - q.Sent, q.Answered },
	},
	TTFTFromSchedule: {
		key: "ttft_from_schedule", title: "Time to First Token from Schedule", label: "TTFT from schedule",
		of: func(q *Request) (time.Duration, bool) { return q.First - q.Due, q.Answered },
	},
	E2ELFromSchedule: {
		key: "e2el_from_schedule", title: "End-to-end Latency from Schedule", label: "E2EL from schedule",
		of: func(q *Request) (time.Duration, bool) { return q.Last - q.Due, q.Answered },
	},
	ScheduleLag: {
		key: "schedule_lag", title: "Schedule Lag", label: "schedule lag", ofSent: true,
		of: func(q *Request) (time.Duration, bool) { return q.Sent - q.Due, q.WasSent },
	},
	ClientLag: {
		key: "client_lag", title: "Client Lag", label: "client lag", ofSent: true,
		of: func(q *Request) (time.Duration, bool) { return q.Sent - q.Ready - q.Connect, q.WasSent },
	},
	ConnectTime: {
		key: "connect", title: "Connection Setup Time", label: "connect", oldKey: "opening", ofSent: true,
		of: func(q *Request) (time.Duration, bool) { return q.Connect, q.WasSent },
	},
	QueueTime: {
		key: "client_queue_time", title: "Client Queue Time", label: "client queue time", oldKey: "held", ofSent: true,
		of: func(q *Request) (time.Duration, bool) { return q.Ready - q.Due, q.WasSent },
	},
	FirstStampError: {
		key: "first_stamp_error", title: "First-token Stamp Error", label: "first stamp error", oldKey: "first_blur",
		of: func(q *Request) (time.Duration, bool) { return q.FirstStampError, q.Answered && q.ByKernel },
	},
	MaxStampError: {
		key: "stamp_error", title: "Stamp Error", label: "stamp error", oldKey: "blur",
		of: func(q *Request) (time.Duration, bool) { return q.MaxStampError, q.Answered && q.ByKernel },
	},
}

// String returns the name used in flags and summaries, such as ttft.
func (l Latency) String() string { return latencies[l].key }

// Key returns the name used in keys with a unit, such as ttft_ms.
func (l Latency) Key() string { return latencies[l].key + "_ms" }

// Title returns the long name, such as Time to First Token.
func (l Latency) Title() string { return latencies[l].title }

// Label returns the short name, such as TTFT.
func (l Latency) Label() string { return latencies[l].label }

// OfCompleted reports whether a [Result] has the latency of completed requests only, not of
// all that were sent.
func (l Latency) OfCompleted() bool { return !latencies[l].ofSent }

// ParseLatency returns the latency with a name.
func ParseLatency(name string) (Latency, error) {
	key := strings.ToLower(strings.TrimSpace(name))
	var known []string
	for _, l := range Latencies {
		if spec := &latencies[l]; key == spec.key || key != "" && key == spec.oldKey {
			return l, nil
		}
		known = append(known, latencies[l].key)
	}
	return NoLatency, fmt.Errorf("unknown metric %q: want one of %s", name, strings.Join(known, ", "))
}

// ParseLatencies parses comma-separated names, which must be distinct.
func ParseLatencies(text string) ([]Latency, error) {
	var all []Latency
	for name := range strings.SplitSeq(text, ",") {
		l, err := ParseLatency(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, l) {
			return nil, fmt.Errorf("metric %s is listed twice", l)
		}
		all = append(all, l)
	}
	return all, nil
}

// Latency returns the distribution of a latency, in milliseconds.
func (r *Result) Latency(l Latency) stats.Sample {
	if l == NoLatency || l >= latencyCount {
		return stats.Sample{}
	}
	return *r.distributions()[l]
}

// distributions returns the places of the latencies' distributions.
func (r *Result) distributions() [latencyCount]*stats.Sample {
	return [latencyCount]*stats.Sample{
		TTFT: &r.TTFT, TTFVT: &r.TTFVT, TTST: &r.TTST, TPOT: &r.TPOT, ITL: &r.ITL, ITLPerToken: &r.ITLPerToken, E2EL: &r.E2EL,
		TTFTFromSchedule: &r.TTFTFromSchedule, E2ELFromSchedule: &r.E2ELFromSchedule, ScheduleLag: &r.ScheduleLag, ClientLag: &r.ClientLag,
		ConnectTime: &r.ConnectTime, QueueTime: &r.QueueTime, FirstStampError: &r.FirstStampError, MaxStampError: &r.MaxStampError,
	}
}

// Of returns a latency of one request in milliseconds, absent if undefined, such as
// TPOT with a single token. The ITL of a request is its longest gap.
func (l Latency) Of(rec *replay.Record) trace.Opt[float64] {
	q := newRequest(rec)
	return q.Latency(l)
}

// Latency is [Latency.Of] for a request.
func (q *Request) Latency(l Latency) trace.Opt[float64] {
	d, ok := latencies[l].of(q)
	if !ok {
		return trace.Opt[float64]{}
	}
	if l == TPOT {
		return trace.Some(trace.MS(d) / float64(q.Output-1))
	}
	return trace.Some(trace.MS(d))
}
