package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unique"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// Detail describes a run over time and by ISL.
type Detail struct {
	// Series is the measured part of the run over time.
	Series Series
	// ByISL groups the completed and failed requests.
	ByISL []Group
}

// Request is what the metrics need of one record, about 230 bytes. Times are offsets from
// the run's start.
type Request struct {
	Row, Target                int
	Class                      replay.Class
	Due, Ready, Done           time.Duration
	Sent, First, Visible, Last time.Duration // 0 if missing: see WasSent and Answered
	Connect                    time.Duration
	// SecondGap, MaxGap and MaxTokenGap are the first, the longest and the longest gap per
	// token between token chunks, 0 if HasGaps is not set.
	SecondGap, MaxGap, MaxTokenGap time.Duration
	FirstStampError, MaxStampError time.Duration // if ByKernel

	ISL, MaxTokens int32 // tokens in the trace; MaxTokens is at least 1
	Turn           int32 // position in its session id, from 1
	Output         int32 // the server's token count, or the number of token chunks
	// Tokens by the server's count, -1 if missing.
	Input, Cached, Reported, Reasoning int32

	Counted              bool // completed, and entirely in the measured part
	Ended                bool // its end is in the measured part
	Good                 bool // succeeded, ended there, and met all objectives
	WasSent, Answered    bool // Answered: received at least one token chunk
	HasGaps, HasVisible  bool
	Reasoned             bool // begins with reasoning
	ByKernel, ByClient   bool // who timestamped the answer
	Retried, MissingDone bool

	source     replay.TokenSource
	impossible bool // see isImpossible
	estimated  bool // its ISL
	inSession  bool
	hasBase    bool // its prompt contains real answers
	hasFirst   bool // a token chunk arrived
	blind      bool // nothing is known about the beginning of its prompt
	chunks     int32
	part       int32 // of a merged run
	predicted  int32 // index in collector.predictions plus 1, 0 if none
	links      int32 // index in collector.links plus 1, 0 if none
	asText     int32 // tokens of answers in its prompt that may encode to others
	baseTokens int32 // of the prompt that it extends, if that has a real answer
	session    unique.Handle[string]
	model      unique.Handle[string]
	blocks     blockSpan
}

// NewRequest returns a request of a run that is measured with some options.
func NewRequest(rec *replay.Record, opts *Options) Request {
	q, ok := newRequest(rec), rec.Class == replay.OK
	q.Counted, q.Ended = ok && opts.Window.Holds(rec), opts.Window.Has(rec.Done)
	q.Good = ok && q.Ended && !slices.ContainsFunc(opts.Objectives, func(o Objective) bool { return !o.MetBy(&q) })
	return q
}

func newRequest(rec *replay.Record) Request {
	output, source := rec.OutputTokens()
	visible := rec.Visible()
	q := Request{
		Row: rec.Row, Target: rec.Target, Class: rec.Class, Turn: 1,
		Due: rec.Due, Ready: rec.Ready, Done: rec.Done, Connect: rec.ConnectTime,
		Sent: rec.Sent.Value, First: rec.First.Value, Visible: visible.Value, Last: rec.Last.Value,
		ISL: clampTokens(rec.InputLength), MaxTokens: clampTokens(rec.MaxTokens()), Output: clampTokens(output), source: source, chunks: clampTokens(rec.Chunks),
		Input: countOf(rec.Counts.Input), Cached: countOf(rec.Counts.Cached), Reported: countOf(rec.Counts.Output), Reasoning: countOf(rec.Counts.Reasoning),
		WasSent: rec.Sent.Set, Answered: isAnswered(rec), HasVisible: visible.Set, Reasoned: rec.ReasoningOnly || rec.FirstVisible.Set,
		ByKernel: rec.Stamps == replay.KernelStamps, ByClient: rec.Stamps == replay.ClientStamps, FirstStampError: rec.FirstStampError, MaxStampError: rec.MaxStampError,
		Retried: rec.Retries > 0, MissingDone: rec.MissingDone, impossible: isImpossible(rec),
		estimated: runfile.ISLEstimated(rec), hasBase: rec.Base.Row.Set, hasFirst: rec.First.Set, blind: rec.HashIDs == nil,
		session: unique.Make(rec.SessionID), model: unique.Make(rec.Model), inSession: rec.SessionID != "" || rec.ID != "" || rec.After != nil,
	}
	if q.HasGaps = len(rec.Gaps) > 0; q.HasGaps {
		q.SecondGap, q.MaxGap = rec.Gaps[0], slices.Max(rec.Gaps)
		q.MaxTokenGap = maxTokenGap(rec, q.MaxGap)
	}
	return q
}

func isAnswered(rec *replay.Record) bool { return rec.Sent.Set && rec.First.Set && rec.Last.Set }

// isImpossible reports whether the times of a record contradict each other by more than
// clocks may differ, for example after an edit.
func isImpossible(rec *replay.Record) bool {
	const clocks = 100 * time.Millisecond
	return isAnswered(rec) && (rec.First.Value < rec.Sent.Value-clocks || rec.Last.Value < rec.First.Value || rec.Done < rec.Last.Value-clocks ||
		rec.FirstVisible.Set && (rec.FirstVisible.Value < rec.First.Value || rec.FirstVisible.Value > rec.Last.Value) ||
		len(rec.Gaps) > 0 && slices.Min(rec.Gaps) < 0)
}

func clampTokens(tokens int) int32 { return int32(min(max(tokens, 0), math.MaxInt32)) }

// countOf returns -1 for a missing count.
func countOf(n trace.Opt[int]) int32 {
	if !n.Set {
		return -1
	}
	return clampTokens(n.Value)
}

// Model returns the requested model, "" if the records do not name it.
func (q *Request) Model() string { return q.model.Value() }

// InputTokens returns the number of prompt tokens by the server's count, else by the trace.
func (q *Request) InputTokens() int {
	if q.Input < 0 {
		return int(q.ISL)
	}
	return int(q.Input)
}

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
	TTFT: {key: "ttft", title: "Time to First Token", label: "TTFT",
		of: func(q *Request) (time.Duration, bool) { return q.First - q.Sent, q.Answered }},
	TTFVT: {key: "ttfvt", title: "Time to First Visible Token", label: "TTFVT", oldKey: "ttfo",
		of: func(q *Request) (time.Duration, bool) { return q.Visible - q.Sent, q.Answered && q.HasVisible }},
	TTST: {key: "ttst", title: "Time to Second Token", label: "TTST",
		of: func(q *Request) (time.Duration, bool) { return q.SecondGap, q.Answered && q.HasGaps }},
	TPOT: {key: "tpot", title: "Time per Output Token (excl. 1st token)", label: "TPOT",
		of: func(q *Request) (time.Duration, bool) { return q.Last - q.First, q.Answered && q.Output > 1 }},
	ITL: {key: "itl", title: "Inter-token Latency", label: "ITL",
		of: func(q *Request) (time.Duration, bool) { return q.MaxGap, q.Answered && q.HasGaps }},
	ITLPerToken: {key: "itl_per_token", title: "Inter-token Latency per Token", label: "ITL per token",
		of: func(q *Request) (time.Duration, bool) { return q.MaxTokenGap, q.Answered && q.HasGaps }},
	E2EL: {key: "e2el", title: "End-to-end Latency", label: "E2EL", column: "E2E Latency",
		of: func(q *Request) (time.Duration, bool) { return q.Last - q.Sent, q.Answered }},
	TTFTFromSchedule: {key: "ttft_from_schedule", title: "Time to First Token from Schedule", label: "TTFT from schedule",
		of: func(q *Request) (time.Duration, bool) { return q.First - q.Due, q.Answered }},
	E2ELFromSchedule: {key: "e2el_from_schedule", title: "End-to-end Latency from Schedule", label: "E2EL from schedule",
		of: func(q *Request) (time.Duration, bool) { return q.Last - q.Due, q.Answered }},
	ScheduleLag: {key: "schedule_lag", title: "Schedule Lag", label: "schedule lag", ofSent: true,
		of: func(q *Request) (time.Duration, bool) { return q.Sent - q.Due, q.WasSent }},
	ClientLag: {key: "client_lag", title: "Client Lag", label: "client lag", ofSent: true,
		of: func(q *Request) (time.Duration, bool) { return q.Sent - q.Ready - q.Connect, q.WasSent }},
	ConnectTime: {key: "connect", title: "Connection Setup Time", label: "connect", oldKey: "opening", ofSent: true,
		of: func(q *Request) (time.Duration, bool) { return q.Connect, q.WasSent }},
	QueueTime: {key: "client_queue_time", title: "Client Queue Time", label: "client queue time", oldKey: "held", ofSent: true,
		of: func(q *Request) (time.Duration, bool) { return q.Ready - q.Due, q.WasSent }},
	FirstStampError: {key: "first_stamp_error", title: "First-token Stamp Error", label: "first stamp error", oldKey: "first_blur",
		of: func(q *Request) (time.Duration, bool) { return q.FirstStampError, q.Answered && q.ByKernel }},
	MaxStampError: {key: "stamp_error", title: "Stamp Error", label: "stamp error", oldKey: "blur",
		of: func(q *Request) (time.Duration, bool) { return q.MaxStampError, q.Answered && q.ByKernel }},
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

// distributions returns pointers to the latencies' distributions.
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
