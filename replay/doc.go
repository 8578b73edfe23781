// Package replay is when: it follows the arrivals of a trace, has each request
// sent at its time, and records what happened.
//
// A [Runner] joins three parties. The trace is a [trace.Requests] whose
// arrivals are the only pacing rule: speed, rate and windows are transforms of
// the stream, applied before it gets here. A [Client] knows how a request is
// made and sent; replay knows no HTTP. A [Recorder] keeps each [Record] as its
// request ends; a [Folder] is one that writes a run's folder to disk.
//
// A closed loop, the end of a run, requests that are sent again and a run that
// goes on where an earlier one was cut ([ResumeState]) are a Runner's fields.
//
// Due times are absolute offsets from the start, never gaps to sleep, so being
// late once does not move what follows. Connections are opened a moment ahead,
// and an alarm wakes the one loop that reads the clock. What the client adds
// itself stays apart from waiting for a slot or for an earlier turn of the
// session (ready - due) and for a connection (opening): see
// [Record.ClientLag].
package replay
