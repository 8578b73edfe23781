package check

import "slices"

// Severity is how much a finding matters: see the package comment.
type Severity string

const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// What a finding counts.
const (
	OfRows = "rows"
	OfIDs  = "ids" // distinct block ids
)

// Kind names one kind of irregularity. Names are stable.
type Kind string

// The kinds, in the order of a report. The table below describes each.
const (
	Empty    Kind = "empty"
	NotTrace Kind = "not_a_trace"
	BadRow   Kind = "bad_row"

	TimeBackwards       Kind = "time_backwards"
	NoTime              Kind = "no_time"
	NoTimestamps        Kind = "no_timestamps"
	SessionNotBegun     Kind = "session_not_begun"
	TurnWithoutDelay    Kind = "turn_without_delay"
	DelayWithoutSession Kind = "delay_without_session"
	DelayUnused         Kind = "delay_unused"
	TimestampUnused     Kind = "timestamp_unused"
	LateStart           Kind = "late_start"
	EpochTime           Kind = "epoch_time"
	TimeInSeconds       Kind = "time_in_seconds"
	TimeInMicroseconds  Kind = "time_in_microseconds"
	TimeInNanoseconds   Kind = "time_in_nanoseconds"
	TimeMaybeSeconds    Kind = "time_maybe_seconds"
	LongSpan            Kind = "long_span"
	TimeGrid            Kind = "time_grid"
	TimeBursts          Kind = "time_bursts"
	DelayInSeconds      Kind = "delay_in_seconds"
	DelayInMicroseconds Kind = "delay_in_microseconds"
	DelayInNanoseconds  Kind = "delay_in_nanoseconds"

	ZeroInput      Kind = "zero_input"
	ZeroOutput     Kind = "zero_output"
	HugeLength     Kind = "huge_length"
	LongLength     Kind = "long_length"
	ConstantInput  Kind = "constant_input"
	ConstantOutput Kind = "constant_output"
	OutputsOne     Kind = "outputs_one"

	ContextBeyondInput Kind = "context_beyond_input"
	ContextSum         Kind = "context_sum"

	NoIDs            Kind = "no_ids"
	MissingIDs       Kind = "missing_ids"
	WrongBlockSize   Kind = "wrong_block_size"
	BlockSizeAssumed Kind = "block_size_assumed"
	TooFewIDs        Kind = "too_few_ids"
	TooManyIDs       Kind = "too_many_ids"
	NoTailID         Kind = "no_tail_id"
	TwoParents       Kind = "two_parents"
	RepeatedID       Kind = "repeated_id"
	TailIsFull       Kind = "tail_is_full"
	TailTwoLengths   Kind = "tail_two_lengths"

	SessionDisorder Kind = "session_disorder"
	SessionOverlap  Kind = "session_overlap"
	TurnShrinks     Kind = "turn_shrinks"
	TurnDiverges    Kind = "turn_diverges"
	Duplicate       Kind = "duplicate"

	CheckedInPart Kind = "checked_in_part"
)

// description is what a report says about a kind.
type description struct {
	kind     Kind
	severity Severity
	of       string
	message  string
}

// kinds are all kinds, in the order of a report.
var kinds = []description{
	{Empty, Error, OfRows, "The trace has no requests."},
	{NotTrace, Error, OfRows, "No line of the file is a request: it is in another format or damaged. A native trace is JSON lines, one object per request."},
	{BadRow, Error, OfRows, "The row is not a request: a replay stops here, or skips it and sends less than was recorded."},

	{TimeBackwards, Error, OfRows, "The row arrives before the row above it: a replay in file order sends it late or refuses it. Sort the trace first."},
	{NoTime, Error, OfRows, "The row has neither a timestamp nor a delay, although others have: its send time is unknown."},
	{NoTimestamps, Error, OfRows, "No row has a timestamp, so a replay has no arrivals to follow: add some first."},
	{SessionNotBegun, Error, OfRows, "The first row of a session has no timestamp: it has no earlier turn to follow, so its send time is unknown."},
	{TurnWithoutDelay, Warning, OfRows, "The turn has neither a timestamp nor a delay: a replay sends it as soon as the previous turn ends, with no time to read the answer."},
	{DelayWithoutSession, Error, OfRows, "The row has a delay but neither a timestamp nor a session: there is no earlier turn to count the delay from."},
	{DelayUnused, Warning, OfRows, "The row has a delay but no earlier turn to count it from: a replay uses only the timestamp."},
	{TimestampUnused, Note, OfRows, "A later turn of a session has both a timestamp and a delay: a replay uses the delay and ignores the timestamp."},
	{LateStart, Note, OfRows, "The first timestamp is not 0: a tool that takes it literally idles that long before its first request."},
	{EpochTime, Warning, OfRows, "Timestamps look like Unix time instead of milliseconds since the start of the trace: a tool that takes them literally never sends anything."},
	{TimeInSeconds, Error, OfRows, "Timestamps look like seconds, but are read as milliseconds: a replay would offer 1,000 times the load."},
	{TimeInMicroseconds, Error, OfRows, "Timestamps look like microseconds, but are read as milliseconds: a replay would last 1,000 times as long."},
	{TimeInNanoseconds, Error, OfRows, "Timestamps look like nanoseconds, but are read as milliseconds: a replay would last a million times as long."},
	{TimeMaybeSeconds, Warning, OfRows, "Timestamps may be seconds, but are read as milliseconds: the load is high, though not impossible. If they are seconds, a replay would offer 1,000 times the load."},
	{LongSpan, Error, OfRows, "The trace is longer than any recording of such a service can be: a timestamp is damaged or in another unit, and a replay would wait for it."},
	{TimeGrid, Warning, OfRows, "Timestamps are on the grid of a coarse clock: a replay with original timing sends bursts that production never saw. Spread the arrivals, or read tail latencies with care."},
	{TimeBursts, Warning, OfRows, "Many requests share few timestamps: a replay with original timing sends bursts that production probably never saw. Add arrivals, or read latencies with care."},
	{DelayInSeconds, Error, OfRows, "Delays look like seconds, but are read as milliseconds: a replay would leave no time to read the answers."},
	{DelayInMicroseconds, Error, OfRows, "Delays look like microseconds, but are read as milliseconds: a replay would wait 1,000 times as long between turns."},
	{DelayInNanoseconds, Error, OfRows, "Delays look like nanoseconds, but are read as milliseconds: a replay would wait a million times as long between turns."},

	{ZeroInput, Error, OfRows, "The prompt has no tokens: it cannot be sent."},
	{ZeroOutput, Warning, OfRows, "The answer has no tokens, probably because the request failed: a replay asks for one token, the minimum."},
	{HugeLength, Error, OfRows, "A length exceeds ten million tokens, beyond the context of any model: the row is probably damaged."},
	{LongLength, Note, OfRows, "A length exceeds a million tokens, beyond the context of most models: an endpoint is likely to refuse it."},
	{ConstantInput, Note, OfRows, "All prompts have the same length: the trace does not show how a mix of lengths is served."},
	{ConstantOutput, Note, OfRows, "All answers have the same length, as under a cap or in a synthetic load: requests end in step."},
	{OutputsOne, Note, OfRows, "Every answer is one token: the trace measures only prefill, and has no time per output token."},

	{ContextBeyondInput, Warning, OfRows, "The row declares more shared context than its prompt has tokens, so statistics of the declared context are wrong. A replay uses input_length and the block ids."},
	{ContextSum, Warning, OfRows, "The declared context and unique prompt do not add up to the prompt, so statistics of them are wrong. A replay uses input_length and the block ids."},

	{NoIDs, Note, OfRows, "No row has block ids: shared prefixes are unknown, and a replay makes every prompt unique."},
	{MissingIDs, Warning, OfRows, "The row has no block ids, although others have: its prompt shares nothing in a replay, and some tools send it empty."},
	{WrongBlockSize, Error, OfRows, "The block size contradicts the number of block ids: a replay would share prefixes of the wrong lengths. Set the right block size."},
	{BlockSizeAssumed, Warning, OfRows, "More than one block size fits all rows: one is assumed, and the lengths of shared prefixes depend on it."},
	{TooFewIDs, Warning, OfRows, "The row has fewer block ids than whole blocks in its prompt: a replay sends the full prompt and makes the rest unique. Other tools silently shorten it."},
	{TooManyIDs, Warning, OfRows, "The row has more block ids than blocks in its prompt: a replay sends the prompt in its full length and ignores the last ids. Other tools silently lengthen it."},
	{NoTailID, Note, OfRows, "The partial last block has no id: the end of the prompt, less than one block, counts as unique."},
	{TwoParents, Error, OfIDs, "The id follows different ids in different prompts, so it does not stand for a whole prefix (it is probably a content hash of one block): chain the ids first, or sharing is overstated."},
	{RepeatedID, Error, OfRows, "An id occurs more than once in the row, so it does not stand for a whole prefix: a prompt cannot be its own beginning."},
	{TailIsFull, Warning, OfIDs, "The id is a partial last block in one prompt and a full block in another: they share no more than the shorter one, and some tools refuse it or get the length wrong."},
	{TailTwoLengths, Warning, OfIDs, "The partial last block has different lengths in different prompts: they share no more than the shorter one, and some tools give both the same length."},

	{SessionDisorder, Error, OfRows, "The turn arrives before the turn above it in its session: a replay in file order would reverse the conversation."},
	{SessionOverlap, Warning, OfRows, "The turn arrives before the previous turn of its session can have ended (at 1 ms a token): a replay waits for the end, and so departs from the timestamps."},
	{TurnShrinks, Note, OfRows, "The prompt is shorter than that of the previous turn: the history was cut, or the session is several conversations."},
	{TurnDiverges, Note, OfRows, "The prompt does not begin with the blocks of the previous turn: the history was rewritten, or the session is several conversations."},
	{Duplicate, Warning, OfRows, "The row has the timestamp, lengths and ids of an earlier row: it was recorded twice, or the trace was merged with itself. A replay sends both."},

	{CheckedInPart, Note, OfRows, "The trace is longer than some checks read: their findings apply to its beginning."},
}

// describe returns the description of a kind.
func describe(kind Kind) description {
	return kinds[slices.IndexFunc(kinds, func(d description) bool { return d.kind == kind })]
}
