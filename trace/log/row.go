package log

import (
	"math"
	"strconv"
	"time"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Exchange is a request and what is known about its response.
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

// RecordedKey is the key of a row's object with what was recorded of its response: see [Recorded].
const RecordedKey = "recorded"

// OK is the outcome of a request that was answered.
const OK = "ok"

// Milliseconds returns a time in milliseconds, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }

// ReasoningKeys are the keys with the tokens of a response that are reasoning, in a row or in
// its object recorded.
var ReasoningKeys = []string{"reasoning_tokens", "reasoning_output_tokens", "reasoning_length", "thinking_tokens", "reason_tokens"}

// ReasoningTokens reads the value of such a key, which is null, or the number of some or all
// of the tokens of the response.
func ReasoningTokens(raw []byte, output int) (n trace.Opt[int], ok bool) {
	tokens, err := strconv.ParseUint(string(raw), 10, 63)
	if err != nil || int(tokens) > output {
		return n, string(raw) == "null"
	}
	return trace.Some(int(tokens)), true
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
	t, c := e.Turn, e.Call
	if c == nil {
		c = &Call{}
	}
	r := trace.Request{SessionID: t.session.name, ID: t.ID, After: t.after}
	if !t.Arrived.IsZero() {
		r.Timestamp = trace.Some(Milliseconds(t.Arrived.Sub(x.start)))
	}
	if t.delay.Set {
		r.Delay = trace.Some(Milliseconds(t.delay.Value))
	}
	var estimated, missing []string // what of the row is not known exactly
	input, output := e.Input.Value, e.Output.Value
	switch {
	case e.Input.Set:
	case e.Blocks == nil:
		missing = append(missing, "input_length")
	case c.exact:
		input = c.length
	default:
		input, estimated = c.length, append(estimated, "input_length")
		if !c.tokens {
			input = int(math.Ceil(float64(c.length) / x.cfg.BytesPerToken))
		}
	}
	switch {
	case e.Output.Set:
	case e.TextTokens.Set:
		output, estimated = e.TextTokens.Value, append(estimated, "output_length")
	case e.Outcome == OK:
		missing = append(missing, "output_length")
	}
	r.InputLength, r.OutputLength = min(input, trace.MaxLength), min(output, trace.MaxLength)
	if e.Blocks != nil {
		if !c.exact {
			estimated = append(estimated, "hash_ids")
		}
		r.HashIDs = e.Blocks.fit(x.keys.Blocks, (r.InputLength+x.cfg.BlockSize-1)/x.cfg.BlockSize)
	}
	model := c.Model
	if !e.Accepted || len(model) > maxName { // a server that has answered knows its name; any other may be a secret
		model = x.keys.Models.Name(model)
	}
	recorded := e.Recorded
	recorded.MaxTokens = c.MaxTokens
	var extra jsonscan.Object // the keys that the trace format does not define
	add := func(key string, value any, given bool) {
		if given {
			text, _ := jsonscan.Strict.Marshal(value)
			extra.Add(key, text)
		}
	}
	add("model", model, model != "")
	add("priority", c.Priority, c.Priority != 0)
	add("turn", t.number, true)
	add(trace.Estimated, estimated, estimated != nil)
	add(trace.Missing, missing, missing != nil)
	add(RecordedKey, recorded, true)
	r.Extra = extra.Bytes()
	return r
}

// maxName limits the name of a model, in bytes.
const maxName = 256
