package format

import (
	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Bits of the keys of a native row.
const (
	keyTimestamp = 1 << iota
	keyDelay
	keyInput
	keyOutput
	keyHashIDs
	keySession
	keyContext
	keyUnique
)

// parseCanonical parses a row in the form that all writers of this format use:
// canonical keys, plain numbers, no escapes. It is the hot path of every command.
// It returns false for any other row, which parseAny parses.
func parseCanonical(line []byte, r *trace.Request) bool {
	ids := r.HashIDs[:0]
	*r = trace.Request{}
	c := jsonscan.New(line)
	var seen uint32
	var early jsonscan.Cursor // at ids that precede the length that bounds them
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "timestamp":
			c.Once(&seen, keyTimestamp)
			r.Timestamp = milliseconds(&c)
		case "input_length":
			c.Once(&seen, keyInput)
			r.InputLength = c.Int(trace.MaxLength)
		case "output_length":
			c.Once(&seen, keyOutput)
			r.OutputLength = c.Int(trace.MaxLength)
		case "hash_ids":
			c.Once(&seen, keyHashIDs)
			if seen&keyInput != 0 {
				r.HashIDs = c.Uints(ids, maxIDs(r.InputLength))
			} else {
				early = c
				c.Raw()
			}
		case "session_id":
			c.Once(&seen, keySession)
			r.SessionID = string(c.PlainText())
		case "delay":
			c.Once(&seen, keyDelay)
			r.Delay = milliseconds(&c)
		case "context_len":
			c.Once(&seen, keyContext)
			r.ContextLen = trace.Some(c.Int(trace.MaxLength))
		case "unique_user_prompt_len":
			c.Once(&seen, keyUnique)
			r.UniquePromptLen = trace.Some(c.Int(trace.MaxLength))
		default:
			c.Fail()
		}
	}
	if !c.Done() || seen&keyInput == 0 || seen&keyOutput == 0 {
		return false
	}
	if r.HashIDs == nil && seen&keyHashIDs != 0 {
		r.HashIDs = early.Uints(ids, maxIDs(r.InputLength))
		return !early.Failed()
	}
	return true
}

// milliseconds reads a time or pause from 0 to [trace.MaxMS].
func milliseconds(c *jsonscan.Cursor) trace.Opt[float64] {
	n, places := c.Decimal()
	if n < 0 || n >= trace.MaxMS {
		c.Fail()
		return trace.Opt[float64]{}
	}
	return trace.Some(float64(n) / jsonscan.Pow10[places])
}
