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
	// At most one of these computes the value from a Timing.
	answered func(t Timing) time.Duration // requires a first and a last token
	sent     func(t Timing) time.Duration // requires the request to be sent
}

var latencies = [latencyCount]latencySpec{
	TTFT: {
		key: "ttft", title: "Time to First Token", label: "TTFT",
		answered: func(t Timing) time.Duration { return t.First - t.Sent },
	},
	TTFVT: {
		key: "ttfvt", title: "Time to First Visible Token", label: "TTFVT", oldKey: "ttfo",
		answered: func(t Timing) time.Duration { return t.Visible - t.Sent },
	},
	TTST: {
		key: "ttst", title: "Time to Second Token", label: "TTST",
		answered: func(t Timing) time.Duration { return t.SecondGap },
	},
	TPOT: { // per output token after the first
		key: "tpot", title: "Time per Output Token (excl. 1st token)", label: "TPOT",
		answered: func(t Timing) time.Duration { return t.Last - t.First },
	},
	ITL: { // per request: its longest gap
		key: "itl", title: "Inter-token Latency", label: "ITL",
	},
	ITLPerToken: { // per request: its longest gap divided by the tokens of the chunk
		key: "itl_per_token", title: "Inter-token Latency per Token", label: "ITL per token",
	},
	E2EL: {
		key: "e2el", title: "End-to-end Latency", label: "E2EL", column: "E2E Latency",
		answered: func(t Timing) time.Duration { return t.Last - t.Sent },
	},
	TTFTFromSchedule: {
		key: "ttft_from_schedule", title: "Time to First Token from Schedule", label: "TTFT from schedule",
		answered: func(t Timing) time.Duration { return t.First - t.Due },
	},
	E2ELFromSchedule: {
		key: "e2el_from_schedule", title: "End-to-end Latency from Schedule", label: "E2EL from schedule",
		answered: func(t Timing) time.Duration { return t.Last - t.Due },
	},
	ScheduleLag: {
		key: "schedule_lag", title: "Schedule Lag", label: "schedule lag",
		sent: func(t Timing) time.Duration { return t.Sent - t.Due },
	},
	ClientLag: {
		key: "client_lag", title: "Client Lag", label: "client lag",
		sent: func(t Timing) time.Duration { return t.Sent - t.Ready - t.Connect },
	},
	ConnectTime: {
		key: "connect", title: "Connection Setup Time", label: "connect", oldKey: "opening",
		sent: func(t Timing) time.Duration { return t.Connect },
	},
	QueueTime: {
		key: "client_queue_time", title: "Client Queue Time", label: "client queue time", oldKey: "held",
		sent: func(t Timing) time.Duration { return t.Ready - t.Due },
	},
	FirstStampError: {
		key: "first_stamp_error", title: "First-token Stamp Error", label: "first stamp error", oldKey: "first_blur",
	},
	MaxStampError: {
		key: "stamp_error", title: "Stamp Error", label: "stamp error", oldKey: "blur",
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
func (l Latency) OfCompleted() bool { return latencies[l].sent == nil }

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

// Timing holds the times of one request as offsets from the run's start.
type Timing struct {
	Due, Ready        time.Duration
	Sent, First, Last time.Duration // 0 if missing: see WasSent and Answered
	Visible           time.Duration // first token chunk that is not reasoning, if HasVisible
	Connect           time.Duration
	SecondGap         time.Duration // from the first token chunk to the second, if HasGaps
	Output            int32         // the server's token count, or the number of token chunks
	WasSent, Answered bool          // Answered: received at least one token chunk
	HasGaps           bool
	HasVisible        bool
}

// TimingOf returns the timing of a record.
func TimingOf(rec *replay.Record) Timing {
	output, _ := rec.OutputTokens()
	t := Timing{
		Due: rec.Due, Ready: rec.Ready, Sent: rec.Sent.Value, First: rec.First.Value, Last: rec.Last.Value,
		Connect: rec.ConnectTime, Output: clampTokens(output), WasSent: rec.Sent.Set, Answered: isAnswered(rec), HasGaps: len(rec.Gaps) > 0,
	}
	if visible := rec.Visible(); visible.Set {
		t.Visible, t.HasVisible = visible.Value, true
	}
	if t.HasGaps {
		t.SecondGap = rec.Gaps[0]
	}
	return t
}

func isAnswered(rec *replay.Record) bool { return rec.Sent.Set && rec.First.Set && rec.Last.Set }

// Of returns a latency of one request in milliseconds, absent if undefined, such as
// TPOT with a single token. The ITL of a request is its longest gap.
func (l Latency) Of(rec *replay.Record) trace.Opt[float64] {
	t := TimingOf(rec)
	return l.of(rec, &t)
}

func (l Latency) of(rec *replay.Record, t *Timing) trace.Opt[float64] {
	stamped := t.Answered && rec.Stamps == replay.KernelStamps
	switch {
	case l == ITL && t.Answered && t.HasGaps:
		return trace.Some(trace.MS(slices.Max(rec.Gaps)))
	case l == ITLPerToken && t.Answered && t.HasGaps:
		return trace.Some(trace.MS(maxTokenGap(rec)))
	case l == FirstStampError && stamped:
		return trace.Some(trace.MS(rec.FirstStampError))
	case l == MaxStampError && stamped:
		return trace.Some(trace.MS(rec.MaxStampError))
	}
	return t.Latency(l)
}

// Latency is [Latency.Of] without ITL and the stamp errors, which are not in a
// Timing.
func (t *Timing) Latency(l Latency) trace.Opt[float64] {
	switch spec := &latencies[l]; {
	case spec.sent != nil && t.WasSent:
		return trace.Some(trace.MS(spec.sent(*t)))
	case spec.answered == nil || !t.Answered:
	case l == TTST && !t.HasGaps, l == TTFVT && !t.HasVisible:
	case l == TPOT && t.Output > 1:
		return trace.Some(trace.MS(spec.answered(*t)) / float64(t.Output-1))
	case l != TPOT:
		return trace.Some(trace.MS(spec.answered(*t)))
	}
	return trace.Opt[float64]{}
}
