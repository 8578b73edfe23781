package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"moontide/replay"
	"moontide/trace"
	"moontide/trace/stats"
)

// Latency is a duration that a run measures for each request, or for each gap
// between token chunks. A [Result] holds its distribution in milliseconds.
type Latency uint8

// The latencies. [Result] defines them.
const (
	NoLatency Latency = iota
	TTFT
	TTST
	TPOT
	ITL
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

// Latencies are those that flags and objectives accept, in report order. The
// stamp errors describe the measurement and are not among them.
var Latencies = []Latency{TTFT, TTST, TPOT, ITL, E2EL, TTFTFromSchedule, E2ELFromSchedule, ScheduleLag, ClientLag, ConnectTime, QueueTime}

// VLLMLatencies are those that vLLM's benchmark reports too.
var VLLMLatencies = []Latency{TTFT, TPOT, ITL, E2EL}

// ScheduleLatencies tell how far the run kept to the trace's schedule.
var ScheduleLatencies = []Latency{TTFTFromSchedule, E2ELFromSchedule, ScheduleLag, ClientLag, QueueTime}

// latencySpec is all that is known of a latency.
type latencySpec struct {
	key, title, label string
	column            string // in published tables, where that is not label
	oldKey            string // accepted in place of key
	distribution      func(r *Result) *stats.Sample
	// One of these computes the value of one request, where a Timing is enough.
	answered func(t Timing) time.Duration // needs a first and a last token
	sent     func(t Timing) time.Duration // needs the request to be sent
}

var latencies = [latencyCount]latencySpec{
	TTFT: {
		key: "ttft", title: "Time to First Token", label: "TTFT",
		distribution: func(r *Result) *stats.Sample { return &r.TTFT },
		answered:     func(t Timing) time.Duration { return t.First - t.Sent },
	},
	TTST: {
		key: "ttst", title: "Time to Second Token", label: "TTST",
		distribution: func(r *Result) *stats.Sample { return &r.TTST },
		answered:     func(t Timing) time.Duration { return t.SecondGap },
	},
	TPOT: { // per output token after the first
		key: "tpot", title: "Time per Output Token (excl. 1st token)", label: "TPOT",
		distribution: func(r *Result) *stats.Sample { return &r.TPOT },
		answered:     func(t Timing) time.Duration { return t.Last - t.First },
	},
	ITL: { // of one request: the longest of its gaps
		key: "itl", title: "Inter-token Latency", label: "ITL",
		distribution: func(r *Result) *stats.Sample { return &r.ITL },
	},
	E2EL: {
		key: "e2el", title: "End-to-end Latency", label: "E2EL", column: "E2E Latency",
		distribution: func(r *Result) *stats.Sample { return &r.E2EL },
		answered:     func(t Timing) time.Duration { return t.Last - t.Sent },
	},
	TTFTFromSchedule: {
		key: "ttft_from_schedule", title: "Time to First Token from Schedule", label: "TTFT from schedule",
		distribution: func(r *Result) *stats.Sample { return &r.TTFTFromSchedule },
		answered:     func(t Timing) time.Duration { return t.First - t.Due },
	},
	E2ELFromSchedule: {
		key: "e2el_from_schedule", title: "End-to-end Latency from Schedule", label: "E2EL from schedule",
		distribution: func(r *Result) *stats.Sample { return &r.E2ELFromSchedule },
		answered:     func(t Timing) time.Duration { return t.Last - t.Due },
	},
	ScheduleLag: {
		key: "schedule_lag", title: "Schedule Lag", label: "schedule lag",
		distribution: func(r *Result) *stats.Sample { return &r.ScheduleLag },
		sent:         func(t Timing) time.Duration { return t.Sent - t.Due },
	},
	ClientLag: {
		key: "client_lag", title: "Client Lag", label: "client lag",
		distribution: func(r *Result) *stats.Sample { return &r.ClientLag },
		sent:         func(t Timing) time.Duration { return t.Sent - t.Ready - t.Connect },
	},
	ConnectTime: {
		key: "connect", title: "Connection Setup Time", label: "connect", oldKey: "opening",
		distribution: func(r *Result) *stats.Sample { return &r.ConnectTime },
		sent:         func(t Timing) time.Duration { return t.Connect },
	},
	QueueTime: {
		key: "client_queue_time", title: "Client Queue Time", label: "client queue time", oldKey: "held",
		distribution: func(r *Result) *stats.Sample { return &r.QueueTime },
		sent:         func(t Timing) time.Duration { return t.Ready - t.Due },
	},
	FirstStampError: {
		key: "first_stamp_error", title: "First-token Stamp Error", label: "first stamp error", oldKey: "first_blur",
		distribution: func(r *Result) *stats.Sample { return &r.FirstStampError },
	},
	MaxStampError: {
		key: "stamp_error", title: "Stamp Error", label: "stamp error", oldKey: "blur",
		distribution: func(r *Result) *stats.Sample { return &r.MaxStampError },
	},
}

// String is the name that flags, summaries and objectives use, such as ttft.
func (l Latency) String() string { return latencies[l].key }

// Key is the name in keys with a unit, such as ttft_ms.
func (l Latency) Key() string { return latencies[l].key + "_ms" }

// Title is the name at length, such as Time to First Token.
func (l Latency) Title() string { return latencies[l].title }

// Label is the short name, such as TTFT.
func (l Latency) Label() string { return latencies[l].label }

// OfCompleted reports whether the distribution in a [Result] covers completed
// requests only; the others cover every request that was sent.
func (l Latency) OfCompleted() bool { return latencies[l].sent == nil }

// ParseLatency finds a latency by its name.
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

// ParseLatencies reads comma-separated names without repetitions.
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
	return *latencies[l].distribution(r)
}

// Timing is the timing of one request, a small part of its [replay.Record].
// Instants are since the run's start.
type Timing struct {
	Due, Ready        time.Duration
	Sent, First, Last time.Duration // 0 where it did not happen: see WasSent and Answered
	Connect           time.Duration
	SecondGap         time.Duration // from the first token chunk to the second, if HasGaps
	Output            int32         // tokens as the server counted them, or token chunks
	WasSent, Answered bool          // Answered: with at least one token chunk
	HasGaps           bool
}

// TimingOf extracts the timing of a record.
func TimingOf(rec *replay.Record) Timing {
	t := Timing{
		Due: rec.Due, Ready: rec.Ready, Sent: rec.Sent.Value, First: rec.First.Value, Last: rec.Last.Value,
		Connect: rec.ConnectTime, Output: clampTokens(outputTokens(rec)), WasSent: rec.Sent.Set, Answered: isAnswered(rec), HasGaps: len(rec.Gaps) > 0,
	}
	if t.HasGaps {
		t.SecondGap = rec.Gaps[0]
	}
	return t
}

func isAnswered(rec *replay.Record) bool { return rec.Sent.Set && rec.First.Set && rec.Last.Set }

// Of returns a latency of one request in milliseconds. It is absent where the
// request has none: without a token there is no TTFT, with one token no TPOT.
// The ITL of a request is its longest gap.
func (l Latency) Of(rec *replay.Record) trace.Opt[float64] {
	t := TimingOf(rec)
	return l.of(rec, &t)
}

// of is Of for a record whose timing is known.
func (l Latency) of(rec *replay.Record, t *Timing) trace.Opt[float64] {
	stamped := t.Answered && rec.Stamps == replay.KernelStamps
	switch {
	case l == ITL && t.Answered && t.HasGaps:
		return trace.Some(ms(slices.Max(rec.Gaps)))
	case l == FirstStampError && stamped:
		return trace.Some(ms(rec.FirstStampError))
	case l == MaxStampError && stamped:
		return trace.Some(ms(rec.MaxStampError))
	}
	return t.Latency(l)
}

// Latency returns a latency in milliseconds, as [Latency.Of] does. ITL and the
// stamp errors do not follow from a Timing and are absent.
func (t *Timing) Latency(l Latency) trace.Opt[float64] {
	switch spec := &latencies[l]; {
	case spec.sent != nil && t.WasSent:
		return trace.Some(ms(spec.sent(*t)))
	case spec.answered == nil || !t.Answered:
	case l == TTST && !t.HasGaps:
	case l == TPOT && t.Output > 1:
		return trace.Some(ms(spec.answered(*t)) / float64(t.Output-1))
	case l != TPOT:
		return trace.Some(ms(spec.answered(*t)))
	}
	return trace.Opt[float64]{}
}
