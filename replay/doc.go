// Package replay sends the requests of a trace at their scheduled times and
// records the outcome of each.
//
// [Scan] a trace, then [Runner.Run] it:
//
//	runner := replay.Runner{Client: client, Recorder: recorder, MaxConcurrency: 64}
//	tally, err := runner.Run(ctx, requests)
//
// Requests are paced only by the trace's arrivals: apply speed, rates and windows
// to the stream first. A [Client] prepares and sends requests (see package
// openai); a [Recorder] stores a [Record] of each (see package runfile). A
// [VirtualRunner] replays against a model, in virtual time.
//
// A row waits for others if the trace's graph says so: a turn for the turn before,
// the next request of an agent for its sub-agents. [SessionLimits] limit such sessions.
// What later prompts contain of earlier responses is the client's: see package
// transcript.
//
// All times are offsets from the start of the run. Due times are absolute, so a
// late request does not delay later ones. Client queue time (ready - due) and the
// wait for a connection (ConnectTime) are separate from the client's own lateness:
// see [Record.ClientLag].
package replay
