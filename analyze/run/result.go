package run

import (
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// Options of [Compute]. The zero value works.
type Options struct {
	// BlockSize is the block size of the replayed trace in tokens. Without it
	// cache hits are not predicted.
	BlockSize int
	// Virtual means that the run was simulated in virtual time, without a client
	// that could be late.
	Virtual bool
	// CountedISL is the number of prompt tokens that the server should count for
	// a row with an ISL: a chat template adds to it. nil is the ISL itself.
	CountedISL func(isl int) int
	// TemplateTokens is the length of the chat template in CountedISL.
	TemplateTokens int
	// ReadDelay and Merges come from run.json; they are not in the records.
	ReadDelay runfile.ReadDelay
	Merges    runfile.Merges
	// Gaps are the gaps between token chunks where the records have none.
	Gaps []runfile.GapCount
	// Samples summarizes the load of client and server during the run.
	Samples SampleSummary
	// Window is the measured part of the run; the zero Span is all of it. Requests
	// outside it still count as possible causes of cache hits.
	Window Span
	// Thresholds are those of the verdict.
	Thresholds runfile.Thresholds
	// EachPrediction keeps the predicted cache hits of every request.
	EachPrediction bool
	// Expected is the approximate number of records, to allocate memory ahead.
	// If it comes from a file, bound it by the file's size.
	Expected int
	// Objectives are those of Goodput.
	Objectives []Objective
	// Detail keeps what figures need, and the predicted cache hits of every
	// request: see [Result].
	Detail bool
}

func (o *Options) countedISL(isl int) int {
	if o.CountedISL == nil {
		return isl
	}
	return o.CountedISL(isl)
}

// ownISL is the length of a prompt without the template: shorter than the ISL
// where prompts were shortened by it, but at least one token.
func (o *Options) ownISL(isl int) int {
	return max(o.countedISL(isl)-o.TemplateTokens, min(isl, 1))
}

// Result has the metrics of a run. Latencies are in milliseconds and cover
// completed requests only.
type Result struct {
	// Window is the measured part of the run; the zero Span is all of it. In a
	// window, Completed and the latencies cover requests that are wholly inside,
	// which in a short window are the short ones; Output counts all tokens that
	// arrived inside, and RequestRate follows from Ended.
	Window    Span
	Completed int
	Ended     int // requests that succeeded and ended inside the window
	Failed    int
	Errors    map[replay.Class]int // failed requests by class
	// Examples have one error message of each class. They come from the server
	// or the system: escape control characters before printing.
	Examples map[replay.Class]string

	// Duration is from the first request sent to the last one done, including
	// failed ones, or the length of the window. Without it there are no rates.
	Duration time.Duration
	// Input, Output and Cached count tokens of completed requests as the server
	// reported them. Without a report, Input is the trace's ISL and Output the
	// number of chunks, and the request counts as an estimate.
	Input, Output             int
	InputEstimates            int
	OutputEstimates           int
	Cached                    trace.Opt[int]     // absent if the server never reported it
	RequestRate               trace.Opt[float64] // completed requests a second
	OutputRate, TotalRate     trace.Opt[float64] // tokens a second
	PeakOutputRate            float64            // most tokens in any second
	PeakConcurrency           int                // most requests in flight
	PeakEventRate             float64            // most token chunks in any second
	PeakSendRate              float64            // most requests sent in any second
	OfferedRate, AchievedRate trace.Opt[float64] // requests a second, as due and as sent

	// TTST is the gap between the first token chunk and the second.
	TTFT, TTST, TPOT, ITL, E2EL stats.Sample
	// The same from the due time, so that a late client or a concurrency limit
	// does not make the server look fast.
	TTFTFromSchedule, E2ELFromSchedule stats.Sample
	// Of every request that was sent: ClientLag = sent - ready - connect is the
	// client's own lateness; ConnectTime is the wait for a connection, which the
	// server and the network cause; QueueTime = ready - due is the wait for a
	// slot or for the turn before; ScheduleLag = sent - due is their sum.
	ClientLag, ConnectTime, QueueTime, ScheduleLag stats.Sample

	// StampedByKernel and StampedByClient count completed requests by who took
	// their arrival timestamps. For the kernel's, FirstStampError bounds the error
	// of a request's TTFT and MaxStampError that of any of its timestamps, from
	// data that arrived separately and was read at once.
	StampedByKernel, StampedByClient int
	// GapsNotKept is the number of gaps between token chunks that are not in the
	// records, GapsCounted the number of those that ITL knows from Options.Gaps:
	// all, except after a kill.
	GapsNotKept, GapsCounted int
	FirstStampError          stats.Sample
	MaxStampError            stats.Sample
	ReadDelay                runfile.ReadDelay // as given
	Merges                   runfile.Merges    // as given
	Samples                  SampleSummary     // as given
	Thresholds               runfile.Thresholds

	Goodput *Goodput // nil without objectives
	Detail  *Detail  // nil where Options did not ask for it
	Lengths Lengths
	Cache   Cache
	Virtual bool // see Options
	Verdict Verdict
}

// Lengths compares the lengths in the trace with the server's token counts.
type Lengths struct {
	Template       int // tokens of the chat template in each prompt
	Prompts        int // completed requests with the server's count of prompt tokens
	PromptsOff     int // of these, off by more than 1 % from ISL + Template
	Answers        int // completed requests with the server's count of output tokens
	AnswersShorter int // of these, shorter than the trace's OSL
	AnswersLonger  int
	Estimated      int // completed requests with an estimated ISL, not among Prompts
}

// Cache compares the server's cached tokens with what the trace allows.
type Cache struct {
	// MaxHits is the number of prompt tokens in blocks that another request of
	// the run had too, without the first time of each block. A cache that starts
	// empty cannot hit more.
	MaxHits    trace.Opt[int]
	Requests   int // completed requests with the server's count of cached tokens
	Prediction CachePrediction
}
