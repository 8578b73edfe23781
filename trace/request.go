package trace

import "iter"

// Opt is a value that a row may leave out. The zero Opt is absent.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Some returns a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Set: true} }

// Request is one row of a trace: one request that was, or is to be, sent to a
// serving endpoint.
type Request struct {
	// Timestamp is the arrival in milliseconds since the trace began. A row
	// that only follows the turn before it (see Delay) may leave it out.
	Timestamp Opt[float64]
	// Delay is the pause in milliseconds between the end of the previous turn
	// of the same session and this turn.
	Delay Opt[float64]
	// InputLength (ISL) and OutputLength (OSL) count tokens, 0..MaxLength.
	InputLength  int
	OutputLength int
	// HashIDs name the blocks of the prompt, each id standing for the whole
	// prefix up to and including its block: equal ids are equal prefixes.
	// nil is a row that says nothing about its blocks.
	HashIDs []uint64
	// SessionID is the conversation that the row is a turn of, or "".
	SessionID string
	// ContextLen and UniquePromptLen (keys context_len and
	// unique_user_prompt_len) are the shared and the unique part of the prompt
	// in tokens, as the generator of a synthetic trace declared them.
	ContextLen      Opt[int]
	UniquePromptLen Opt[int]
	// Extra is a JSON object of all members that moontide gives no meaning to,
	// in their order and to the letter; nil where there are none.
	Extra []byte
}

// MaxLength is the largest ISL or OSL in tokens that a row may have. No model
// has a context of this size; a larger number is a damaged row.
const MaxLength = 100_000_000

// Requests is a trace as a stream. An error ends it: nothing follows the pair
// that carries one. Each request owns its memory and may be kept. A stream can
// be ranged over once unless its source says otherwise.
type Requests = iter.Seq2[Request, error]
