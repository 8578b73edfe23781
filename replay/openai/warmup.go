package openai

import (
	"moontide/replay"
	"moontide/trace"
)

// PrepareAgain spells out a request that Prepare had spelled out and the server
// refused: a body is given away when it is sent. It is no other prompt, so
// PromptDigest does not change.
func (c *Client) PrepareAgain(r trace.Request, row int) (replay.Call, error) {
	return orError(c.prepare(r, row, untold))
}

// Warmup is a client of the same connections whose requests have the lengths of
// the rows and say what no row says: what they leave in the server's cache is
// no part of a measured prompt. PromptDigest does not change.
func (c *Client) Warmup() replay.Client { return warmup{c} }

type warmup struct{ client *Client }

// Prepare implements replay.Client.
func (w warmup) Prepare(r trace.Request, row int) (replay.Call, error) {
	// What no block covers is the row's own, and no trace has such a row.
	lengths := trace.Request{InputLength: r.InputLength, OutputLength: r.OutputLength}
	return orError(w.client.prepare(lengths, -1-row, untold))
}

func untold(int, []byte) {}

// orError keeps an interface with a nil in it from being taken for a call.
func orError(c *call, err error) (replay.Call, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}
