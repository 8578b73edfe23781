package log

import (
	"fmt"
	"math"
	"slices"
	"time"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Exchange is a request and what is known about its answer.
type Exchange struct {
	Turn *Turn
	// Call is nil if the body could not be read, and Blocks nil if the prompt could not
	// be hashed.
	Call   *Call
	Blocks *Blocks
	// Accepted says that the server knows the model, so that its name is no secret.
	Accepted bool
	// Input and Output are tokens as the server counts them. TextTokens estimates Output.
	Input, Output, TextTokens trace.Opt[int]
	Recorded
}

// Recorded is what a row tells about how its request was answered. Times are in
// milliseconds from its arrival. MaxTokens is set by Row.
type Recorded struct {
	API       string   `json:"endpoint,omitempty"`
	Stream    *bool    `json:"stream,omitempty"`
	MaxTokens int      `json:"max_tokens,omitempty"`
	Outcome   string   `json:"outcome"` // OK, or the class of the failure
	Status    int      `json:"status,omitempty"`
	TTFT      *float64 `json:"ttft_ms,omitempty"`
	E2EL      *float64 `json:"e2el_ms,omitempty"`
	Cached    *int     `json:"cached_tokens,omitempty"`
	Reasoning *int     `json:"reasoning_tokens,omitempty"`
}

// RecordedKey is the key of a row's object with what was recorded of its answer: see [Recorded].
const RecordedKey = "recorded"

// OK is the outcome of a request that was answered.
const OK = "ok"

// Milliseconds returns a time in milliseconds, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }

// reasoningKeys are the keys with the tokens of an answer that are reasoning, in a
// row or in its object recorded.
var reasoningKeys = []string{"reasoning_tokens", "reasoning_output_tokens", "reasoning_length", "thinking_tokens", "reason_tokens"}

// IsReasoningKey reports whether the value of a key counts the tokens of an answer that
// are reasoning.
func IsReasoningKey(key string) bool { return slices.Contains(reasoningKeys, key) }

// ReasoningTokens reads such a value. It fails unless that is null or the number of some
// or all of the tokens of the answer; null is absent.
func ReasoningTokens(raw []byte, output int) (n trace.Opt[int], err error) {
	if string(raw) == "null" {
		return n, nil
	}
	number := jsonscan.New(raw)
	tokens := number.Int(output)
	if !number.Done() {
		return n, fmt.Errorf("%.60s is not a number of tokens from 0 to %d", raw, output)
	}
	return trace.Some(tokens), nil
}

// Rows makes rows. It is safe for concurrent use.
type Rows struct {
	cfg   Config
	keys  Keys
	start time.Time
}

// NewRows returns Rows of a trace that begins at a time. The configuration must be valid.
func NewRows(cfg Config, start time.Time) *Rows {
	return &Rows{cfg.WithDefaults(), cfg.Key.Keys(), start}
}

// Row returns the row of an exchange. It keeps nothing of it.
func (x *Rows) Row(e *Exchange) trace.Request {
	t := e.Turn
	r := trace.Request{SessionID: t.session.name, ID: t.ID, After: t.after}
	if !t.Arrived.IsZero() {
		r.Timestamp = trace.Some(Milliseconds(t.Arrived.Sub(x.start)))
	}
	if t.delay.Set {
		r.Delay = trace.Some(Milliseconds(t.delay.Value))
	}
	var estimated, missing []string // what of the row is not known exactly
	switch {
	case e.Input.Set:
		r.InputLength = e.Input.Value
	case e.Blocks == nil:
		missing = append(missing, "input_length")
	case e.Call.tokens:
		if r.InputLength = e.Call.length; !e.Call.exact {
			estimated = append(estimated, "input_length")
		}
	default:
		r.InputLength = int(math.Ceil(float64(e.Call.length) / x.cfg.BytesPerToken))
		estimated = append(estimated, "input_length")
	}
	switch {
	case e.Output.Set:
		r.OutputLength = e.Output.Value
	case e.TextTokens.Set:
		r.OutputLength = e.TextTokens.Value
		estimated = append(estimated, "output_length")
	case e.Outcome == OK:
		missing = append(missing, "output_length")
	}
	r.InputLength, r.OutputLength = min(r.InputLength, trace.MaxLength), min(r.OutputLength, trace.MaxLength)
	if e.Blocks != nil {
		if !e.Call.exact {
			estimated = append(estimated, "hash_ids")
		}
		r.HashIDs = e.Blocks.fit(x.keys.Blocks, (r.InputLength+x.cfg.BlockSize-1)/x.cfg.BlockSize)
	}
	r.Extra = x.extra(e, estimated, missing)
	return r
}

// extra returns the keys of a row that the trace format does not define.
func (x *Rows) extra(e *Exchange, estimated, missing []string) []byte {
	var all jsonscan.Object
	add := func(key string, value any) {
		text, _ := jsonscan.Strict.Marshal(value)
		all.Add(key, text)
	}
	recorded := e.Recorded
	if c := e.Call; c != nil {
		recorded.MaxTokens = c.MaxTokens
		if name := x.modelName(e); name != "" {
			add("model", name)
		}
		if c.Priority != 0 {
			add("priority", c.Priority)
		}
	}
	add("turn", e.Turn.number)
	if estimated != nil {
		add(trace.Estimated, estimated)
	}
	if missing != nil {
		add(trace.Missing, missing)
	}
	add(RecordedKey, recorded)
	return all.Bytes()
}

// maxName limits the name of a model, in bytes.
const maxName = 256

// modelName returns the model of a request. The server knows it if it has answered, so
// it is no secret of the client; any other name is hashed.
func (x *Rows) modelName(e *Exchange) string {
	if name := e.Call.Model; !e.Accepted || len(name) > maxName {
		return x.keys.Models.Name(name)
	}
	return e.Call.Model
}
