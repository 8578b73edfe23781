package check

// Severity ranks findings: see the package comment.
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

// descriptions holds the texts for the kinds, in report order.
var descriptions []description

type description struct {
	kind     Kind
	severity Severity
	of       string
	message  string
}

func kind(name Kind, severity Severity, of, message string) Kind {
	descriptions = append(descriptions, description{name, severity, of, message})
	return name
}

// The kinds, in report order.
var (
	Empty    = kind("empty", Error, OfRows, "The trace has no requests.")
	NotTrace = kind("not_a_trace", Error, OfRows, "No line of the file is a request: it is in another format or damaged. A native trace is JSON lines, one object per request.")
	BadRow   = kind("bad_row", Error, OfRows, "The row is not a request: a replay stops here, or skips it and sends less than was recorded.")

	TimeBackwards       = kind("time_backwards", Error, OfRows, "The row arrives before the row above it: a replay in file order sends it late or refuses it. Sort the trace first.")
	NoTime              = kind("no_time", Error, OfRows, "The row has neither a timestamp nor a delay, although others have: its send time is unknown.")
	NoTimestamps        = kind("no_timestamps", Error, OfRows, "No row has a timestamp, so a replay has no arrivals to follow: add some first.")
	SessionNotBegun     = kind("session_not_begun", Error, OfRows, "The first row of a session has no timestamp: it has no earlier turn to follow, so its send time is unknown.")
	TurnWithoutDelay    = kind("turn_without_delay", Warning, OfRows, "The turn has neither a timestamp nor a delay: a replay sends it as soon as the previous turn ends, with no time to read the response.")
	DelayWithoutSession = kind("delay_without_session", Error, OfRows, "The row has a delay but no timestamp, and follows no other row: there is nothing to count the delay from.")
	AfterWithoutDelay   = kind("after_without_delay", Warning, OfRows, "The row waits for others (after), but has neither a timestamp nor a delay: a replay sends it as soon as the last of them ends.")
	DelayUnused         = kind("delay_unused", Warning, OfRows, "The row has a delay but no earlier turn or request to count it from: a replay uses only the timestamp.")
	TimestampUnused     = kind("timestamp_unused", Note, OfRows, "A row that waits for others has both a timestamp and a delay: a replay uses the delay and ignores the timestamp.")
	EpochTime           = kind("epoch_time", Warning, OfRows, "Timestamps look like Unix time instead of milliseconds since the start of the trace: a tool that takes them literally never sends anything.")
	TimeUnit            = kind("time_unit", Warning, OfRows, "Timestamps are read as milliseconds, but look like another unit: a replay would offer 1,000 times the load, or last 1,000 or a million times as long.")
	LongSpan            = kind("long_span", Warning, OfRows, "The trace is longer than any recording of such a service: a timestamp is probably damaged or in another unit, and a replay would wait for it.")
	TimeGrid            = kind("time_grid", Warning, OfRows, "Timestamps are on the grid of a coarse clock: a replay with original timing sends bursts that production never saw. Spread the arrivals, or read tail latencies with care.")
	TimeBursts          = kind("time_bursts", Warning, OfRows, "Many requests share few timestamps: a replay with original timing sends bursts that production probably never saw. Add arrivals, or read latencies with care.")
	DelayUnit           = kind("delay_unit", Warning, OfRows, "Delays are read as milliseconds, but look like another unit: a replay would leave no time to read the responses, or wait 1,000 or a million times as long.")

	ZeroInput    = kind("zero_input", Error, OfRows, "The prompt has no tokens: it cannot be sent.")
	ZeroOutput   = kind("zero_output", Warning, OfRows, "The response has no tokens, probably because the request failed: a replay asks for one token, the minimum.")
	LongLength   = kind("long_length", Warning, OfRows, "A length exceeds a million tokens, beyond the context of most models: the row is damaged, or an endpoint is likely to refuse it.")
	BadReasoning = kind("bad_reasoning", Warning, OfRows, "The reasoning tokens are not a part of the response's tokens, so statistics of reasoning are wrong. A model fitted to the trace ignores them.")

	ContextSum = kind("context_sum", Warning, OfRows, "The declared context and unique prompt do not add up to the prompt, so statistics of them are wrong. A replay uses input_length and the block ids.")

	NoIDs            = kind("no_ids", Note, OfRows, "No row has block ids: shared prefixes are unknown, and a replay makes every prompt unique.")
	MissingIDs       = kind("missing_ids", Warning, OfRows, "The row has no block ids, although others have: its prompt shares nothing in a replay, and some tools send it empty.")
	WrongBlockSize   = kind("wrong_block_size", Error, OfRows, "The block size contradicts the number of block ids: a replay would share prefixes of the wrong lengths. Set the right block size.")
	BlockSizeAssumed = kind("block_size_assumed", Warning, OfRows, "More than one block size fits all rows: one is assumed, and the lengths of shared prefixes depend on it.")
	TooFewIDs        = kind("too_few_ids", Warning, OfRows, "The row has fewer block ids than whole blocks in its prompt: a replay sends the full prompt and makes the rest unique. Other tools silently shorten it.")
	TooManyIDs       = kind("too_many_ids", Warning, OfRows, "The row has more block ids than blocks in its prompt: a replay sends the prompt in its full length and ignores the last ids. Other tools silently lengthen it.")
	NoTailID         = kind("no_tail_id", Note, OfRows, "The partial last block has no id: the end of the prompt, less than one block, counts as unique.")
	TwoParents       = kind("two_parents", Error, OfIDs, "The id follows different ids in different prompts, so it does not stand for a whole prefix (it is probably a content hash of one block): chain the ids first, or sharing is overstated.")
	RepeatedID       = kind("repeated_id", Error, OfRows, "An id occurs more than once in the row, so it does not stand for a whole prefix: a prompt cannot be its own beginning.")

	Cycle              = kind("cycle", Error, OfRows, "Rows wait for each other, so none of them can be sent: a replay refuses the trace.")
	MissingRequest     = kind("missing_request", Error, OfRows, "The row names a request_id in after that no row has: a replay refuses the trace, unless it skips bad rows or replays only part of the trace.")
	DuplicateRequestID = kind("duplicate_request_id", Error, OfRows, "The row names a request_id in after that several rows have: which one it waits for is ambiguous, so a replay refuses the trace.")

	SessionDisorder = kind("session_disorder", Error, OfRows, "The turn arrives before the turn above it in its session: a replay in file order would reverse the conversation.")
	SessionOverlap  = kind("session_overlap", Warning, OfRows, "The row arrives before the previous turn of its session, or a request that it names in after, can have ended (at 1 ms a token): a replay waits for the end, and so departs from the timestamps.")
	TurnShrinks     = kind("turn_shrinks", Note, OfRows, "The prompt is shorter than that of the previous turn: the history was cut, or the session is several conversations.")
	TurnDiverges    = kind("turn_diverges", Note, OfRows, "The prompt does not begin with the blocks of the previous turn: the history was rewritten, or the session is several conversations.")

	CheckedInPart = kind("checked_in_part", Note, OfRows, "The trace is longer than some checks read: their findings apply to its beginning.")
)
