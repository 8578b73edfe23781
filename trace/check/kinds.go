package check

import "slices"

// Severity is what a finding is worth; see the package comment.
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

// The kinds, in the order of a report. The table below says what each is.
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

// meaning is what is said of a kind.
type meaning struct {
	kind     Kind
	severity Severity
	of       string
	says     string
}

// kinds stand in the order of a report.
var kinds = []meaning{
	{Empty, Error, OfRows, "The trace has no requests: there is nothing to replay."},
	{NotTrace, Error, OfRows, "No line of the file is a request: it is in another format, or damaged. A trace is JSON lines, one object a request."},
	{BadRow, Error, OfRows, "The row is not a request: a replay stops here, or leaves it out and sends less than was recorded."},

	{TimeBackwards, Error, OfRows, "The row arrives before the row above it: a replay in file order would send it late, or refuse. Sort the trace first."},
	{NoTime, Error, OfRows, "The row has neither a timestamp nor a delay, although others have: nothing says when to send it."},
	{NoTimestamps, Error, OfRows, "No row has a timestamp, so that a replay has no arrivals to follow: give the trace some first."},
	{SessionNotBegun, Error, OfRows, "The row has no timestamp and is the first of its session: there is no earlier turn for it to follow, so its time is lost."},
	{TurnWithoutDelay, Warning, OfRows, "The turn has neither a timestamp nor a delay: a replay sends it the moment the turn before it ends, as if nobody read the answer."},
	{DelayWithoutSession, Error, OfRows, "The row has a delay but neither a timestamp nor a session: there is no turn from which the delay could count."},
	{DelayUnused, Warning, OfRows, "The row has a delay but no earlier turn from which it could count: a replay goes by the timestamp alone."},
	{TimestampUnused, Note, OfRows, "The later turn of a session has a timestamp and a delay: a replay goes by the delay and ignores the timestamp."},
	{LateStart, Note, OfRows, "The first timestamp is not 0: a tool that takes it literally idles for that long before its first request."},
	{EpochTime, Warning, OfRows, "Timestamps look like Unix time instead of milliseconds since the trace began: a tool that takes them literally never sends anything."},
	{TimeInSeconds, Error, OfRows, "Timestamps look like seconds in a file of milliseconds: a replay would offer a thousand times the load."},
	{TimeInMicroseconds, Error, OfRows, "Timestamps look like microseconds in a file of milliseconds: a replay would last a thousand times as long."},
	{TimeInNanoseconds, Error, OfRows, "Timestamps look like nanoseconds in a file of milliseconds: a replay would last a million times as long."},
	{TimeMaybeSeconds, Warning, OfRows, "Timestamps may be seconds in a file of milliseconds: the load is high, but not impossible. If they are seconds, a replay would offer a thousand times the load."},
	{LongSpan, Error, OfRows, "The trace lasts longer than any recording of such a service can: a timestamp is damaged or in another unit, and a replay would wait for it."},
	{TimeGrid, Warning, OfRows, "Timestamps lie on the grid of a coarse clock: original timing sends bursts that production never saw. Spread the arrivals, or read tail latencies with care."},
	{TimeBursts, Warning, OfRows, "Many requests share few timestamps: original timing sends bursts that production never saw, most likely. Give the trace arrivals, or read latencies with care."},
	{DelayInSeconds, Error, OfRows, "Delays look like seconds in a file of milliseconds: a replay would send each turn as if nobody read the answer before it."},
	{DelayInMicroseconds, Error, OfRows, "Delays look like microseconds in a file of milliseconds: a replay would wait a thousand times as long between turns."},
	{DelayInNanoseconds, Error, OfRows, "Delays look like nanoseconds in a file of milliseconds: a replay would wait a million times as long between turns."},

	{ZeroInput, Error, OfRows, "The prompt has no tokens: it cannot be sent."},
	{ZeroOutput, Warning, OfRows, "The answer has no tokens, most likely of a request that failed: a replay asks for one, the fewest that there are."},
	{HugeLength, Error, OfRows, "A length is above ten million tokens, beyond the context of any model: the row is damaged, most likely."},
	{LongLength, Note, OfRows, "A length is above a million tokens, beyond the context of most models: an endpoint is likely to refuse it."},
	{ConstantInput, Note, OfRows, "All prompts have one length: the trace says nothing about how a mix of lengths is served."},
	{ConstantOutput, Note, OfRows, "All answers have one length, as under a cap or in a synthetic load: requests end in step."},
	{OutputsOne, Note, OfRows, "Every answer is one token: the trace measures prefill alone, and time per output token does not exist."},

	{ContextBeyondInput, Warning, OfRows, "The row declares more shared context than its prompt has tokens: what is told of the declared context is wrong. A replay goes by input_length and the ids."},
	{ContextSum, Warning, OfRows, "The context and the unique prompt that the row declares do not add up to its prompt: what is told of them is wrong. A replay goes by input_length and the ids."},

	{NoIDs, Note, OfRows, "No row has block ids: nothing is known about shared prefixes, and a replay makes every prompt unique."},
	{MissingIDs, Warning, OfRows, "The row has no block ids although others have: its prompt shares nothing in a replay, and some tools send it empty."},
	{WrongBlockSize, Error, OfRows, "The block size that would be used contradicts the number of ids: a replay would share prefixes of the wrong lengths. Name the right one."},
	{BlockSizeAssumed, Warning, OfRows, "More than one block size fits all rows: one is assumed, and the lengths of shared prefixes depend on it."},
	{TooFewIDs, Warning, OfRows, "There are fewer ids than whole blocks in the prompt: a replay sends the prompt in its full length, and what no id names as unique. Other tools silently shorten it."},
	{TooManyIDs, Warning, OfRows, "There are more ids than blocks in the prompt: a replay sends the prompt in its full length, which the last ids lie beyond. Other tools silently lengthen it."},
	{NoTailID, Note, OfRows, "The partial last block has no id: the end of the prompt, less than one block, counts as unique."},
	{TwoParents, Error, OfIDs, "The id follows different ids in different prompts, so it does not stand for a whole prefix (a content hash of the block alone, most likely): chain the ids first, or sharing is overstated."},
	{RepeatedID, Error, OfRows, "An id occurs more than once in the row, so it does not stand for a whole prefix: a prompt cannot be its own beginning."},
	{TailIsFull, Warning, OfIDs, "The id is a partial last block in one prompt and a full block in another: they share no more than the shorter, and some tools refuse or give the wrong length."},
	{TailTwoLengths, Warning, OfIDs, "The partial last block has different lengths in different prompts: they share no more than the shorter, and some tools give both one length."},

	{SessionDisorder, Error, OfRows, "The turn arrives before the turn above it in its session: a replay in file order would hold a conversation backwards."},
	{SessionOverlap, Warning, OfRows, "The turn arrives before the turn above it in its session can have ended (at 1 ms a token): a replay waits for the end, and so departs from the timestamps."},
	{TurnShrinks, Note, OfRows, "The prompt is shorter than that of the turn before it: the history was cut, or the session is several conversations."},
	{TurnDiverges, Note, OfRows, "The prompt does not begin with the blocks of the turn before it: the history was rewritten, or the session is several conversations."},
	{Duplicate, Warning, OfRows, "The row has the timestamp, lengths and ids of an earlier one: recorded twice, or one trace merged with itself or appended to itself. A replay sends both."},

	{CheckedInPart, Note, OfRows, "The trace is longer than some checks look at: what they say, or do not, holds for its beginning."},
}

// meaningOf finds a kind in the table, which holds every kind.
func meaningOf(kind Kind) meaning {
	return kinds[slices.IndexFunc(kinds, func(m meaning) bool { return m.kind == kind })]
}
