package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"moontide/trace"
	"moontide/trace/jsonscan"
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
	r.Extra = c.extra(c.optional(burstModel), c.optional(burstKind), elapsed)
	return nil
}

// extra returns the unknown keys of a row. There are few models and kinds, so
// rows share all but the duration.
func (c *csvRows) extra(model, kind, elapsed []byte) []byte {
	var key [128]byte
	id := append(append(append(key[:0], model...), '\n'), kind...)
	if len(elapsed) > 0 {
		id = append(id, '\n')
	}
	shared, ok := c.extras[string(id)]
	if !ok {
		shared = sharedExtra(model, kind, len(elapsed) > 0)
		if c.extras == nil {
			c.extras = map[string][]byte{}
		}
		if len(c.extras) < 1000 {
			c.extras[string(id)] = shared
		}
	}
	if len(elapsed) == 0 {
		return shared
	}
	if !json.Valid(elapsed) { // like .5
		elapsed = quoted(string(elapsed))
	}
	return slices.Concat(shared, elapsed, []byte("}}"))
}

// sharedExtra returns the unknown keys of rows with one model and kind. If timed,
// the caller appends the duration and two closing braces.
func sharedExtra(model, kind []byte, timed bool) []byte {
	var all, recorded jsonscan.Object
	if len(model) > 0 {
		all.Add("model", quoted(string(model)))
	}
	if len(kind) > 0 {
		recorded.Add("Log Type", quoted(string(kind)))
	}
	if timed {
		recorded.Add("Elapsed time", nil)
	}
	if b := recorded.Bytes(); b != nil {
		all.Add("recorded", b)
	}
	if timed {
		return bytes.TrimSuffix(all.Bytes(), []byte("}}"))
	}
	return all.Bytes()
}
