package measure

import (
	"time"

	"moontide/replay"
	"moontide/replay/parts"
	"moontide/replay/runfile"
	"moontide/trace"
	"moontide/trace/stats"
)

// Options configures [Compute]. The zero value works.
type Options struct {
	// BlockSize is that of the trace in tokens; 0 disables the cache prediction.
	BlockSize int
	// ServerBlockSize is the block size of the server's prefix cache in tokens. 0
	// means that of Samples, if any.
	ServerBlockSize int
	// Virtual means that the run was simulated in virtual time, without client lag.
	Virtual bool
	// CountedISL returns the prompt tokens that the server should count for a row's ISL,
	// including the chat template. nil is the ISL itself.
	CountedISL func(isl int) int
	// TemplateTokens is the length of the chat template in CountedISL.
	TemplateTokens int
	// ReadDelay and Merges come from run.json; they are not in the records.
	ReadDelay runfile.ReadDelay
	Merges    runfile.Merges
	// Gaps holds the gaps between token chunks for records without them.
	Gaps    []runfile.GapCount
	Samples SampleSummary // load of client and server during the run
	// Window is the measured part of the run; the zero Span is the whole run.
	// Requests outside it still affect the prediction of cache hits.
	Window Span
	// LengthsEnforced means that requests asked for exactly the trace's OSL (ignore_eos or
	// min_tokens).
	LengthsEnforced bool
	// MaxConcurrency is the limit of requests in flight; 0 is none. Closed means a closed
	// loop of requests or sessions, which offers no rate of its own.
	MaxConcurrency int
	Closed         bool
	Thresholds     runfile.Thresholds // of the verdict
	EachPrediction bool               // keep the predicted cache hits of every request
	// Rows and Sent are the numbers of rows of the trace and of rows sent, to find missing
	// and repeated records; 0 is unknown.
	Rows, Sent int
	Skipped    int // later turns of sessions, not sent after a failed turn
	// CutTurns are turns not sent because their session was ended early, Outgrown those of
	// them that did not fit the model's context, Unfinished sessions in progress when
	// sending ended, and LostTurns ids in after that no row of the trace has.
	CutTurns, Outgrown, Unfinished, LostTurns int
	// LiveAnswers means that prompts contain real answers, TextAnswers that they are sent
	// as text, which may encode to other tokens, and GeneratedCached that the server keeps
	// generated tokens in its prefix cache.
	LiveAnswers, GeneratedCached, TextAnswers bool
	// Parts are those of a run of several processes, otherwise nil. With PartOptions, each is
	// judged, too: by the options of its run, and the window and the thresholds of the whole.
	Parts       *parts.Merged
	PartOptions []Options
	// Unreadable, if not nil, returns the number of unreadable records and the first error.
	// It is called after the records have been read.
	Unreadable func() (records int, first error)
	// Expected is the approximate number of records, for which memory is preallocated. A
	// number from a file must be limited by the file's size.
	Expected   int
	Objectives []Objective // of Goodput
	// Detail keeps the data for figures and implies EachPrediction.
	Detail bool
}

func (o *Options) countedISL(isl int) int {
	if o.CountedISL == nil {
		return isl
	}
	return o.CountedISL(isl)
}

// ownISL returns the length of a prompt without the chat template, at least 1: less than
// the ISL if prompts were shortened to fit the template.
func (o *Options) ownISL(isl int) int {
	return max(o.countedISL(isl)-o.TemplateTokens, min(isl, 1))
}

// Result holds the metrics of a run. Latencies are in milliseconds and cover
// completed requests only.
type Result struct {
	// With a Window, Completed and the latencies cover requests entirely inside it,
	// Output counts all tokens that arrived inside, and RequestRate is computed from
	// Ended.
	Window    Span
	Completed int
	Ended     int // requests that succeeded and ended inside the window
	Failed    int
	// FailedOutside requests failed outside the window; Retried requests were sent more
	// than once inside it.
	FailedOutside, Retried int
	// Abandoned requests neither completed nor failed, and are in no latency.
	Abandoned Abandoned
	Errors    map[replay.Class]int // failed requests by class
	// Unreadable is the number of unreadable records, of Records in all; FirstUnreadable is
	// the first error. Their requests are in no other figure.
	Unreadable, Records int
	FirstUnreadable     error
	// Missing requests were sent but have no record, not even an unreadable one. Repeated
	// records are of rows that have another record, or of no row.
	Sent, Missing, Repeated int
	// Impossible is the number of records whose times contradict each other.
	Impossible int
	Skipped    int // see Options.Skipped
	// Parts are those of a run of several processes, by number. PartFaults are the reasons
	// why they are not all parts of one complete run.
	Parts      []PartResult
	PartFaults []string
	// Examples holds one untrusted error message per class.
	Examples map[replay.Class]string

	// Duration is the length of the window or, without one, the time from the first request
	// sent to the last one done, and From its start. There are no rates if it is 0.
	From, Duration time.Duration
	// Input, Output and Cached count tokens of completed requests as the server
	// reported them. Without a report, Input is the trace's ISL and Output the
	// number of chunks: an estimate.
	Input, Output             int
	InputEstimates            int
	OutputEstimates           int
	MissingDone               int                // completed requests whose stream ended without [DONE]
	Contradicted              int                // of OutputEstimates, those whose stream contradicts the server's count
	Streamable                int                // answers so long that they cannot arrive at one instant
	Unstreamed                int                // of Streamable, those that did
	Cached                    trace.Opt[int]     // absent if the server never reported it
	RequestRate               trace.Opt[float64] // completed requests per second
	OutputRate, TotalRate     trace.Opt[float64] // tokens per second
	PeakOutputRate            float64            // most tokens in any second
	PeakConcurrency           int                // most requests in flight
	PeakEventRate             float64            // most token chunks in any second
	PeakSendRate              float64            // most requests sent in any second
	OfferedRate, AchievedRate trace.Opt[float64] // requests per second, by due time and by send time

	// Reasoned completed requests have an answer that began with reasoning, ReasoningOnly
	// of them no visible token after it. Reasoning is the mean number of reasoning tokens,
	// where the server reported them.
	Reasoned, ReasoningOnly int
	Reasoning               trace.Opt[float64]

	// TTFVT is the time to the first token that is not reasoning. It equals TTFT
	// without reasoning, and does not cover the ReasoningOnly requests.
	TTFVT stats.Sample
	// TTST is the gap between the first token chunk and the second. ITL covers every
	// gap between token chunks. ITLPerToken counts the gap before a chunk of k tokens
	// as k gaps of a k-th each; it equals ITL if every chunk has one token.
	TTFT, TTST, TPOT, ITL, ITLPerToken, E2EL stats.Sample
	// TokensPerChunk is above 1 with speculative decoding, multi-step scheduling or
	// a server that merges chunks. It is absent if there are no chunks.
	TokensPerChunk stats.Sample
	// TTFTFromSchedule and E2ELFromSchedule are measured from the due time.
	TTFTFromSchedule, E2ELFromSchedule stats.Sample
	// These cover every request that was sent. ClientLag = sent - ready - connect is the
	// client's own delay, ConnectTime the wait for a connection, QueueTime = ready - due
	// the wait for a slot or the previous turn, and ScheduleLag = sent - due their sum.
	ClientLag, ConnectTime, QueueTime, ScheduleLag stats.Sample
	// Queued is the number of requests sent that waited for a slot. MaxConcurrency
	// is from Options.
	Queued, MaxConcurrency int
	Closed                 bool // see Options
	// SentRate is the rate at which the requests of OfferedRate were sent, inside the window
	// or not. SendingLate is the time from the first to the last send minus that between
	// their due times, in milliseconds. Unsent requests were not sent, except where the
	// server refused the connection.
	SentRate    trace.Opt[float64]
	SendingLate float64
	Unsent      int

	// StampedByKernel and StampedByClient count completed requests by the source of their
	// timestamps. For kernel timestamps, FirstStampError bounds the error of a request's
	// TTFT and MaxStampError that of all its timestamps.
	StampedByKernel, StampedByClient int
	ChunksByKernel                   int // token chunks of the requests stamped by the kernel
	// GapsNotKept is the number of gaps between token chunks that are missing from
	// the records; GapsCounted is how many of these come from Options.Gaps.
	GapsNotKept, GapsCounted int
	FirstStampError          stats.Sample
	MaxStampError            stats.Sample
	ReadDelay                runfile.ReadDelay // from Options
	Merges                   runfile.Merges    // from Options
	Samples                  SampleSummary     // from Options
	Thresholds               runfile.Thresholds

	// Models has a group for each requested model, by name, if the records name them.
	Models  []Group
	Goodput *Goodput // nil without objectives
	Detail  *Detail  // nil unless Options.Detail is set
	// Sessions is nil if the trace has none.
	Sessions *Sessions
	Turns    Turns
	Lengths  Lengths
	Cache    Cache
	Virtual  bool // see Options
	Verdict  Verdict
}

// Abandoned counts the requests that the client closed before they were complete, like a
// user who leaves.
type Abandoned struct {
	Requests int // that ended inside the window
	Answered int // of Requests, those that had received a token
	Tokens   int // received by then
}

func (a *Abandoned) add(q *Request) {
	a.Requests++
	if q.Answered {
		a.Answered++
		a.Tokens += int(q.Output)
	}
}

// Lengths compares the lengths in the trace with the server's token counts.
type Lengths struct {
	Template       int  // tokens of the chat template in each prompt
	Prompts        int  // completed requests with the server's count of prompt tokens
	PromptsOff     int  // of Prompts, those off by more than 1 % from ISL + Template
	Answers        int  // completed requests with the server's count of output tokens
	AnswersShorter int  // of Answers, those shorter than the trace's OSL
	AnswersLonger  int  // completed requests whose answer is longer than max_tokens
	Enforced       bool // see Options.LengthsEnforced
	Estimated      int  // completed requests with an estimated ISL, not included in Prompts
	// AsText are the Prompts with answers as text, TextTokens the sum of their tokens beyond
	// ISL + Template. They may be off by more than 1 %, see Options.TextAnswers.
	AsText, TextTokens int
}

// Cache compares the server's cached tokens with the sharing in the trace.
type Cache struct {
	// MaxHits is an upper bound of the cached tokens of a cache that starts empty.
	MaxHits    trace.Opt[int]
	Requests   int // completed requests with the server's count of cached tokens
	Prediction CachePrediction
}
