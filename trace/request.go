package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bytedance/sonic"
)

// Opt is an optional value. The zero Opt is absent.
type Opt[T any] struct {
	Value T
	Set   bool
}

// MarshalJSON writes null for an absent value, and for numbers that JSON does not have.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if x, ok := any(o.Value).(float64); !o.Set || ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// Some returns a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Set: true} }

// Ratio returns part / whole, absent if whole is 0.
func Ratio(part, whole int) Opt[float64] {
	if whole == 0 {
		return Opt[float64]{}
	}
	return Some(float64(part) / float64(whole))
}

// Request is one row of a trace: one request to a serving endpoint.
type Request struct {
	// Timestamp is the arrival in milliseconds since the start of the trace. A
	// row with a Delay may lack it.
	Timestamp Opt[float64]
	// Delay is the pause in milliseconds after the end of the previous turn of
	// the session, or of the last of After.
	Delay Opt[float64]
	// DelayKind is the cause of Delay: [Think], [Tool] or "", which is unknown.
	DelayKind DelayKind
	// InputLength (ISL) and OutputLength (OSL) count tokens, 0..MaxLength.
	InputLength  int
	OutputLength int
	// HashIDs holds the block ids of the prompt. Each identifies the whole prefix
	// up to and including its block: equal ids mean equal prefixes. nil means
	// unknown.
	HashIDs []uint64
	// SessionID is the id of the conversation that this is a turn of, or "".
	SessionID string
	// ID is the request's name (request_id) in After of other rows, or "".
	ID string
	// After holds the ids of the requests that must end before this one is sent. nil
	// means the previous turn of the session; an empty list means none. See [Graph].
	After []string
	// ContextLen and UniquePromptLen (context_len, unique_user_prompt_len) are
	// the shared and the unique part of the prompt in tokens, as declared by the
	// generator of a synthetic trace.
	ContextLen      Opt[int]
	UniquePromptLen Opt[int]
	// Extra is a JSON object with all other keys of the row, in their order and
	// unchanged; nil if there are none.
	Extra []byte
}

// DelayKind is the cause of a pause before a request.
type DelayKind string

const (
	Think DelayKind = "think" // the user reads and types
	Tool  DelayKind = "tool"  // a tool runs
)

// MaxLength is the largest valid ISL or OSL in tokens, far beyond the context of
// any model.
const MaxLength = 100_000_000

// Requests is a stream of requests. It ends after an error. Each request owns its
// memory. A stream can be ranged over once unless its source says otherwise.
type Requests = iter.Seq2[Request, error]

// MaxMS is the largest valid time in milliseconds: below it a float64 resolves
// microseconds, and Unix time is far below it.
const MaxMS = 1e15

// MS returns a duration in milliseconds.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// AppendMS appends milliseconds in the shortest decimal notation that parses to
// the same value, without an exponent.
func AppendMS(dst []byte, ms float64) []byte {
	if i := int64(ms); float64(i) == ms && i < MaxMS && i > -MaxMS {
		return strconv.AppendInt(dst, i, 10)
	}
	return strconv.AppendFloat(dst, ms, 'f', -1, 64)
}

// Unknown keys that mark lengths of a row as unreliable. Each has an array of
// keys, such as ["input_length"].
const (
	Estimated = "estimated" // estimated from a text, without a tokenizer
	Missing   = "missing"   // absent from the source and written as 0
)

// Marked reports whether mark, [Estimated] or [Missing], lists a length of the
// row: input_length or output_length.
func (r *Request) Marked(mark, length string) bool {
	if !bytes.Contains(r.Extra, []byte(mark)) { // the usual case, fast
		return false
	}
	raw, _ := r.Raw(mark)
	var lengths []string
	return sonic.UnmarshalString(raw, &lengths) == nil && slices.Contains(lengths, length)
}

// Text returns the value of an unknown key if it is a string.
func (r *Request) Text(key string) (text string, ok bool) {
	raw, _ := r.Raw(key)
	ok = strings.HasPrefix(raw, `"`) && sonic.UnmarshalString(raw, &text) == nil
	return text, ok
}

// Raw returns the value of an unknown key as JSON, if present and not null.
func (r *Request) Raw(key string) (string, bool) {
	if len(r.Extra) == 0 {
		return "", false
	}
	node, err := sonic.Get(r.Extra, key)
	if err != nil {
		return "", false
	}
	raw, err := node.Raw()
	return raw, err == nil && raw != "null"
}

// RowError is an error in one line of a trace.
type RowError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the error without file and line.
func (e *RowError) Unwrap() error { return e.Err }

// ReadError is a failure to read a file. Nothing after it can be read.
type ReadError struct{ Err error }

func (e ReadError) Error() string { return "reading: " + e.Err.Error() }

// Unwrap returns the cause.
func (e ReadError) Unwrap() error { return e.Err }
