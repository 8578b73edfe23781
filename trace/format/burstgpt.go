package format

import (
	"encoding/json"
	"fmt"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Optional columns of BurstGPT.
const (
	burstModel = iota + columnOptional
	burstTotal
	burstKind
	burstSession
	burstElapsed
)

func parseBurstGPT(c *csvRows, r *trace.Request) (err error) {
	if field := c.field(burstTotal); len(field) > 0 {
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
	r.SessionID = string(c.field(burstSession))
	elapsed := c.field(burstElapsed)
	if len(elapsed) > 0 {
		if _, err := parseSeconds(elapsed); err != nil {
			return keyed("Elapsed time", err)
		}
	}
	r.Extra = burstExtra(c.field(burstModel), c.field(burstKind), elapsed)
	return nil
}

// burstExtra returns the unknown keys of a row.
func burstExtra(model, kind, elapsed []byte) []byte {
	var recorded jsonscan.Object
	if len(kind) > 0 {
		recorded.Add("Log Type", quoted(string(kind)))
	}
	if len(elapsed) > 0 {
		if !json.Valid(elapsed) { // like .5
			elapsed = quoted(string(elapsed))
		}
		recorded.Add("Elapsed time", elapsed)
	}
	if len(model) > 0 {
		model = quoted(string(model))
	}
	return unknownKeys(model, recorded, false)
}
