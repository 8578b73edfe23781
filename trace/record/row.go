package record

import (
	"fmt"
	"math"
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

// OK is the outcome of a request that was answered.
const OK = "ok"

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
	var m marks
	x.setInput(&r, e, &m)
	switch {
	case e.Output.Set:
		r.OutputLength = min(e.Output.Value, trace.MaxLength)
	case e.TextTokens.Set:
		r.OutputLength = min(e.TextTokens.Value, trace.MaxLength)
		m.Estimated = append(m.Estimated, "output_length")
	case e.Outcome == OK:
		m.Missing = append(m.Missing, "output_length")
	}
	if e.Blocks != nil {
		if !e.Call.prompt.exact {
			m.Estimated = append(m.Estimated, "hash_ids")
		}
		r.HashIDs = e.Blocks.fit(x.keys.Blocks, (r.InputLength+x.cfg.BlockSize-1)/x.cfg.BlockSize)
	}
	r.Extra = x.extra(e, m)
	return r
}

// marks name what of a row is not known exactly.
type marks struct{ Estimated, Missing []string }

// setInput sets ISL: as the server counts it, or else as the tokens of the prompt, or
// else an estimate.
func (x *Rows) setInput(r *trace.Request, e *Exchange, m *marks) {
	switch {
	case e.Input.Set:
		r.InputLength = min(e.Input.Value, trace.MaxLength)
	case e.Blocks == nil:
		m.Missing = append(m.Missing, "input_length")
	case e.Call.prompt.tokens:
		r.InputLength = min(e.Call.length, trace.MaxLength)
		if !e.Call.prompt.exact {
			m.Estimated = append(m.Estimated, "input_length")
		}
	default:
		r.InputLength = min(int(math.Ceil(float64(e.Call.length)/x.cfg.BytesOf(e.Call.Model))), trace.MaxLength)
		m.Estimated = append(m.Estimated, "input_length")
	}
}

// extra returns the keys of a row that the trace format does not define, in the spelling
// of rows.
func (x *Rows) extra(e *Exchange, m marks) []byte {
	b := []byte{'{'}
	add := func(key string, value any) {
		if len(b) > 1 {
			b = append(b, ", "...)
		}
		text, _ := jsonscan.Strict.Marshal(value)
		b = append(fmt.Appendf(b, "%q: ", key), text...)
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
	if m.Estimated != nil {
		add(trace.Estimated, m.Estimated)
	}
	if m.Missing != nil {
		add(trace.Missing, m.Missing)
	}
	add("recorded", recorded)
	return append(b, '}')
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

// TextLength returns the length of the prompt in bytes if it is a text that was not
// encoded.
func (c *Call) TextLength() (bytes int, ok bool) { return c.length, !c.prompt.tokens }

// Tokens returns the number of tokens of a text, or false if there is no encoder or it
// fails.
func (c Config) Tokens(text string) (int, bool) {
	if text == "" || c.Encoder == nil {
		return 0, false
	}
	ids, err := c.Encoder.Append(nil, text)
	return len(ids), err == nil
}

// Milliseconds returns a time in milliseconds, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }
