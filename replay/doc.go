// Package replay sends the requests of a trace at their scheduled times and
// records the outcome of each.
//
// [Scan] a trace, then [Runner.Run] it:
//
//	runner := replay.Runner{Client: client, Recorder: recorder, MaxConcurrency: 64}
//	tally, err := runner.Run(ctx, requests)
//
// The arrivals of the trace are the only pacing rule: apply speed, rates and
// windows to the stream before. A [Client] makes and sends requests (package
// openai has one); a [Recorder] keeps a [Record] of each (package runfile has
// one). A [VirtualRunner] replays against a model, in virtual time.
//
// All times are offsets from the start of the run. Due times are absolute, so
// being late once does not delay later requests. Waiting for a slot or for an
// earlier turn (ready - due) and for a connection (ConnectTime) is kept apart from
// the client's own lateness: see [Record.ClientLag].
package replay
