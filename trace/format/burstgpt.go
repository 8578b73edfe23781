package format

import (
	"bytes"
	"encoding/json"
	"fmt"

	"moontide/trace"
)

// Columns of BurstGPT among the optional ones.
const (
	burstModel = iota
	burstTotal
	burstKind
	burstSession
	burstElapsed
)

func parseBurstGPT(c *csvRows, r *trace.Request) (err error) {
	if field := c.optional(burstTotal); field != nil {
		total, err := parseLength(field)
		if err == nil && total != r.InputLength+r.OutputLength {
			err = fmt.Errorf("is not the sum of %d and %d: %s", r.InputLength, r.OutputLength, Quote(field))
		}
		if err != nil {
			return keyed("Total tokens", err)
		}
	}
	if r.OutputLength == 0 {
		c.notes.count("rows left out, without response tokens (the request failed)")
		return errLeftOut
	}
	r.SessionID = string(c.optional(burstSession))
	elapsed := c.optional(burstElapsed)
	if len(elapsed) > 0 {
		if _, err := parseSeconds(elapsed); err != nil {
			return keyed("Elapsed time", err)
		}
	}
	r.Extra = c.burstExtra(c.optional(burstModel), c.optional(burstKind), elapsed)
	return nil
}

// burstExtra returns the unknown keys of a row. There are few models and kinds,
// so rows without a duration share theirs.
func (c *csvRows) burstExtra(model, kind, elapsed []byte) []byte {
	var key [128]byte
	id := append(append(append(key[:0], model...), ','), kind...)
	shared, ok := c.extras[string(id)]
	if !ok {
		var all, recorded object
		if len(model) > 0 {
			all.add("model", quoted(string(model)))
		}
		if len(kind) > 0 {
			recorded.add("Log Type", quoted(string(kind)))
			all.add("recorded", recorded.bytes())
		}
		shared = object{all.bytes()}
		if c.extras == nil {
			c.extras = map[string]object{}
		}
		if len(c.extras) < 1000 {
			c.extras[string(id)] = shared
		}
	}
	if len(elapsed) == 0 {
		return shared.b
	}
	// The duration goes to the end of recorded, which is last.
	all := make([]byte, 0, len(shared.b)+len(elapsed)+len(`, "Elapsed time": `))
	switch {
	case len(kind) > 0:
		all = append(append(all, bytes.TrimSuffix(shared.b, []byte("}}"))...), ", "...)
	case len(model) > 0:
		all = append(append(all, bytes.TrimSuffix(shared.b, []byte("}"))...), `, "recorded": {`...)
	default:
		all = append(all, `{"recorded": {`...)
	}
	all = append(all, `"Elapsed time": `...)
	if !json.Valid(elapsed) { // like .5
		elapsed = quoted(string(elapsed))
	}
	return append(append(all, elapsed...), "}}"...)
}
