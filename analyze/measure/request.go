package measure

import (
	"math"
	"slices"
	"time"
	"unique"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
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
	predicted  int32 // place in collector.predictions plus 1, 0 if none
	links      int32 // place in collector.links plus 1, 0 if none
	asText     int32 // tokens of answers in its prompt that may encode to others
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
